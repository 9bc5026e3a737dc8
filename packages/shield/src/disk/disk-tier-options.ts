import { InvalidOptionError } from '@firebreak/core'

/** Options for the tier that takes replies that do not fit in memory. */
export interface DiskTierOptions {
  /** A folder for this process alone; created if it is missing. Values are stored in it unencrypted. */
  readonly path: string
  /**
   * Maximum bytes used in the folder; half of them hold replies, the rest is what LMDB needs to rewrite pages. If the
   * file system has less than twice as much free, half of what is free. @default 1 GiB
   */
  readonly maxBytes?: number
  /** If the file could not be written (the disk is full), a new one is tried after this time. @default 60000 */
  readonly retryAfterMs?: number
  /**
   * True: the contents of the folder are reused after a restart, each reply once Redis has confirmed that it would
   * answer the same. Replies are then written when they are read, not only when memory is full.
   * @default false
   */
  readonly survivesRestart?: boolean
}

/** `DiskTierOptions` with every default filled in. */
export type ResolvedDiskTierOptions = Required<DiskTierOptions>

/** With fewer bytes there is no tier. */
export const leastBytes: number = 1 << 20

/** Validates the options and fills in the defaults. */
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
