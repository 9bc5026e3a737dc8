import { InvalidOptionError } from '@firebreak/core'

/** Where replies go that memory has no room for. */
export interface DiskTierOptions {
  /** A folder for this process alone; it is made where it is missing. Values lie in it as they are. */
  readonly path: string
  /**
   * Bytes that the folder takes at most; half of them hold replies, the rest is what LMDB needs to rewrite pages. Where the
   * file system has less than twice as much free, half of that. @default 1 GiB
   */
  readonly maxBytes?: number
  /** Where the file could not be written (the disk is full), a new one is tried after this time. @default 60000 */
  readonly retryAfterMs?: number
  /**
   * True: what is in the folder is used again after a restart, each reply once Redis has confirmed that it would answer
   * the same. Replies are then written when they are read, not only when memory is full.
   * @default false
   */
  readonly survivesRestart?: boolean
}

/** `DiskTierOptions` with every default filled in. */
export type ResolvedDiskTierOptions = Required<DiskTierOptions>

/** With fewer bytes there is no tier. */
export const leastBytes: number = 1 << 20

/** Checks the options and fills the defaults in. */
export function resolveDiskTierOptions(options: DiskTierOptions): ResolvedDiskTierOptions {
  const { path, maxBytes = 2 ** 30, retryAfterMs = 60_000, survivesRestart = false } = options
  if (typeof path !== 'string' || path === '')
    throw new InvalidOptionError('diskTier.path', path, 'the path of a folder')
  if (!Number.isFinite(maxBytes) || maxBytes < leastBytes)
    throw new InvalidOptionError('diskTier.maxBytes', maxBytes, `a number of bytes from ${leastBytes} on`)
  if (!Number.isFinite(retryAfterMs) || retryAfterMs <= 0)
    throw new InvalidOptionError('diskTier.retryAfterMs', retryAfterMs, 'a number of milliseconds above 0')
  return { path, maxBytes, retryAfterMs, survivesRestart }
}
