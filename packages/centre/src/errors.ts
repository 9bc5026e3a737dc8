import { FirebreakError } from '@firebreak/core'

/** What can go wrong with a config centre; each code is listed in `docs/reference/errors.md`. */
export type CentreErrorCode = 'FB_CENTRE_DOWN' | 'FB_CENTRE_REFUSED' | 'FB_CENTRE_ZOOKEEPER'

/** A config centre could not do what was asked. */
export class CentreError extends FirebreakError {
  override readonly code: CentreErrorCode

  constructor(code: CentreErrorCode, message: string, options?: ErrorOptions) {
    super(code, message, options)
    this.code = code
  }
}

/** Makes the error for a centre that cannot be reached: down, unreachable, or silent for too long. */
export type DownError = (message: string, cause?: unknown) => Error

export const centreDown: DownError = (message, cause) =>
  new CentreError('FB_CENTRE_DOWN', message, cause === undefined ? undefined : { cause })

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error)
}
