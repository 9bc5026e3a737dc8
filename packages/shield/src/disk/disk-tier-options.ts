import { InvalidOptionError } from '@firebreak/core'

/** Where replies go that memory has no room for. */
export interface DiskTierOptions {
  /** A folder for this process alone; it is made where it is missing. Values lie in it as they are. */
  readonly path: string
  /** Bytes that the folder takes at most; half of them hold replies, the rest is what LMDB needs to rewrite pages. @default 1 GiB */
  readonly maxBytes?: number
  /**
   * True: what is in the folder is used again after a restart, each reply once Redis has confirmed that it would answer
   * the same. Replies are then written when they are read, not only when memory is full.
   * @default false
   */
  readonly survivesRestart?: boolean
}

/** `DiskTierOptions` with every default filled in. */
export type ResolvedDiskTierOptions = Required<DiskTierOptions>

const leastBytes = 1 << 20

/** Checks the options and fills the defaults in. */
export function resolveDiskTierOptions(options: DiskTierOptions): ResolvedDiskTierOptions {
  const { path, maxBytes = 2 ** 30, survivesRestart = false } = options
  if (typeof path !== 'string' || path === '')
    throw new InvalidOptionError('diskTier.path', path, 'the path of a folder')
  if (!Number.isFinite(maxBytes) || maxBytes < leastBytes)
    throw new InvalidOptionError('diskTier.maxBytes', maxBytes, `a number of bytes from ${leastBytes} on`)
  return { path, maxBytes, survivesRestart }
}
