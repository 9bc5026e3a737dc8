import { FirebreakError } from '@firebreak/core'

/** What can go wrong with ids; each code is listed in `docs/reference/errors.md`. */
export type IdsErrorCode =
  | 'FB_IDS_ADDRESS_TAKEN'
  | 'FB_IDS_CACHE_BROKEN'
  | 'FB_IDS_CACHE_FOREIGN'
  | 'FB_IDS_CACHE_LOCKED'
  | 'FB_IDS_CACHE_MISSING'
  | 'FB_IDS_CACHE_STALE'
  | 'FB_IDS_CLOCK_BACKWARD'
  | 'FB_IDS_CLOCK_REFUSED'
  | 'FB_IDS_CLOCK_STALLED'
  | 'FB_IDS_CLOSED'
  | 'FB_IDS_DATABASE_DOWN'
  | 'FB_IDS_DRIVER_MISSING'
  | 'FB_IDS_ID_INVALID'
  | 'FB_IDS_MARK_REACHED'
  | 'FB_IDS_OVERLOADED'
  | 'FB_IDS_PAUSED'
  | 'FB_IDS_PEERS_DISAGREE'
  | 'FB_IDS_PERIODS_DIFFER'
  | 'FB_IDS_REGISTRY_DOWN'
  | 'FB_IDS_SEGMENT_BACKWARD'
  | 'FB_IDS_SEGMENTS_EMPTY'
  | 'FB_IDS_SERVICE_DOWN'
  | 'FB_IDS_TAG_EXHAUSTED'
  | 'FB_IDS_TAG_EXISTS'
  | 'FB_IDS_TAG_INVALID'
  | 'FB_IDS_TAG_UNKNOWN'
  | 'FB_IDS_WORKER_ABANDONED'
  | 'FB_IDS_WORKER_LOST'
  | 'FB_IDS_WORKERS_FULL'

/** An id could not be issued, or a node could not start; `code` says why, `data` carries the values in the message. */
export class IdsError extends FirebreakError {
  override readonly code: IdsErrorCode
  readonly data: Readonly<Record<string, string | number>>

  constructor(
    code: IdsErrorCode,
    message: string,
    data: Readonly<Record<string, string | number>> = {},
    options?: ErrorOptions,
  ) {
    super(code, message, options)
    this.code = code
    this.data = data
  }
}

/** The error for a registry that cannot be queried: down, unreachable, or silent for too long. */
export function registryDown(message: string, cause?: unknown): IdsError {
  return new IdsError('FB_IDS_REGISTRY_DOWN', message, {}, ...(cause === undefined ? [] : ([{ cause }] as const)))
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
