import { FirebreakError } from '@firebreak/core'

/** Why a change source cannot run. */
export type WatchErrorCode =
  | 'FB_WATCH_REFUSED'
  | 'FB_WATCH_MIN_REPLICAS'
  | 'FB_WATCH_SENTINEL'
  | 'FB_WATCH_PROTOCOL'
  | 'FB_WATCH_AOF'
  | 'FB_WATCH_MAPPING'
  | 'FB_WATCH_BINLOG'

/** A change source failed; `isFatal` means that retrying is pointless until the settings change. */
export class WatchError extends FirebreakError {
  readonly isFatal: boolean

  constructor(code: WatchErrorCode, message: string, options: ErrorOptions & { isFatal?: boolean } = {}) {
    super(code, message, options)
    this.isFatal = options.isFatal ?? false
  }
}
