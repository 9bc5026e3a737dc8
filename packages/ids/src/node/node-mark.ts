import { IdsError, messageOf } from '../errors.ts'
import type { TimeMark } from '../snowflake/snowflake.ts'
import type { WorkerCache } from './cache-file.ts'
import type { Joined } from './join.ts'
import type { ResolvedNodeOptions } from './node-options.ts'

/**
 * A node's stored mark: in the file if there is one, otherwise in the registry, otherwise nowhere. Neither the mark nor
 * the time next to it ever goes back, even if the clock does: an earlier run's mark still binds.
 */
export class NodeMark implements TimeMark {
  untilMs = 0
  readonly #options: ResolvedNodeOptions
  readonly #beforeExtend: () => void
  readonly #file: WorkerCache | undefined
  #joined: Joined
  #timestamp = 0

  constructor(
    options: ResolvedNodeOptions,
    file: WorkerCache | undefined,
    joined: Joined,
    /** Called before an id exceeds the mark; throws if it may not. */
    beforeExtend: () => void = () => {},
  ) {
    this.#beforeExtend = beforeExtend
    this.#options = options
    this.#file = file
    this.#joined = joined
    this.adopt(joined)
  }

  /** A mark for a newly acquired worker id. */
  adopt(joined: Joined): void {
    if (joined.workerId !== this.#joined.workerId) {
      // The old worker id's bound does not apply to this one.
      this.untilMs = 0
      this.#timestamp = 0
    }
    this.#joined = joined
    if (this.#file !== undefined) this.renew(joined)
    else if (this.#options.registry === undefined) this.untilMs = Number.MAX_SAFE_INTEGER
    else this.confirm(joined.reportedAt)
  }

  extend(nowMs: number): void {
    this.#beforeExtend()
    if (this.#file === undefined) {
      const sentence = `ids have reached the high-water mark ${this.untilMs} in the registry, which cannot be moved while the registry is down; a cacheFile would help`
      throw new IdsError('FB_IDS_MARK_REACHED', sentence, { untilMs: this.untilMs, nowMs })
    }
    this.#write(nowMs, Math.max(nowMs + this.#options.markAheadMs, this.untilMs))
  }

  /** Writes a later mark in time, if the file's mark is the one that counts. */
  renew(joined: Joined): void {
    this.#joined = joined
    const nowMs = Math.floor(this.#options.clock.now())
    this.#write(nowMs, Math.max(nowMs + this.#options.markAheadMs, this.untilMs, joined.afterMs))
  }

  /**
   * The registry has the mark of a report at this time. Without a file, ids may go up to it, but not for longer than
   * another node would wait for our next report.
   */
  confirm(reportedAt: number): void {
    if (this.#file !== undefined) return
    const { registryAheadMs, settleMs, maxPauseMs } = this.#options
    const aheadMs = Number.isFinite(maxPauseMs) ? Math.min(registryAheadMs, settleMs) : registryAheadMs
    this.untilMs = Math.max(this.untilMs, reportedAt + aheadMs)
  }

  /** The last mark of a clean stop: a restart need not wait. */
  settle(stoppedAt: number): void {
    if (this.#file !== undefined) this.#write(stoppedAt, stoppedAt)
  }

  #write(nowMs: number, mark: number): void {
    const { ip, port } = this.#options.address
    const { workerId, owner, reportedAt } = this.#joined
    this.#timestamp = Math.max(this.#timestamp, nowMs)
    try {
      this.#file!.write({
        workerId,
        ip,
        port,
        owner,
        timestamp: this.#timestamp,
        mark,
        reportedAt: Math.floor(reportedAt),
      })
    } catch (cause) {
      const sentence = `the mark cannot be written to ${this.#file!.path} (${messageOf(cause)}); no ids are issued beyond the last one`
      throw new IdsError('FB_IDS_MARK_REACHED', sentence, { untilMs: this.untilMs }, { cause })
    }
    this.untilMs = mark
  }
}
