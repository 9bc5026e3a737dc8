import { FirebreakError } from '@firebreak/core'

/** An access of a hot key was refused because its RateLimit is used up. */
export class KeyLimitedError extends FirebreakError {
  readonly key: string
  /** After how many milliseconds the access would be admitted if no others arrived; null if unknown. */
  readonly retryAfterMs: number | null

  constructor(key: string, retryAfterMs: number | null) {
    const when = retryAfterMs === null ? 'later' : `in ${Math.ceil(retryAfterMs)} ms`
    super('FB_KEY_LIMITED', `the hot key ${JSON.stringify(key)} is over its limit; try again ${when}`)
    this.key = key
    this.retryAfterMs = retryAfterMs
  }
}

/** A disk tier was requested without the package that it needs. */
export class DiskDriverMissingError extends FirebreakError {
  constructor(cause: unknown) {
    super('FB_DISK_DRIVER_MISSING', 'diskTier needs the package lmdb, which cannot be loaded: npm install lmdb', {
      cause,
    })
  }
}
