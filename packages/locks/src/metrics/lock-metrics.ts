import type { LossReason } from '../errors.ts'

/** Upper bounds of the histograms' buckets in milliseconds; the last bucket has none. */
export const bucketBoundsMs: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000]

/** Durations by bucket. */
export interface DurationSnapshot {
  readonly count: number
  readonly sumMs: number
  readonly maxMs: number
  /** One count for each of `bucketBoundsMs`, and one for longer durations. */
  readonly buckets: readonly number[]
}

/** Counters of a process' locks since its start. */
export interface LockMetricsSnapshot {
  /** First acquisitions. */
  readonly acquired: number
  /** First acquisitions that had to wait. */
  readonly contended: number
  /** First acquisitions that another task of the process handed over. */
  readonly handedOver: number
  /** Requests that ended without the lock: not free, out of time, aborted. */
  readonly refused: number
  readonly released: number
  readonly lost: Readonly<Record<LossReason, number>>
  readonly renewals: number
  readonly renewalErrors: number
  /** From the request to the lock, for contended ones. */
  readonly wait: DurationSnapshot
  /** From the lock to its release or loss. */
  readonly hold: DurationSnapshot
}

/** Durations counted into fixed buckets. */
export class DurationHistogram {
  #count = 0
  #sumMs = 0
  #maxMs = 0
  readonly #buckets = new Array<number>(bucketBoundsMs.length + 1).fill(0)

  record(ms: number): void {
    this.#count++
    this.#sumMs += ms
    if (ms > this.#maxMs) this.#maxMs = ms
    let bucket = 0
    while (bucket < bucketBoundsMs.length && ms > bucketBoundsMs[bucket]!) bucket++
    this.#buckets[bucket]!++
  }

  snapshot(): DurationSnapshot {
    return { count: this.#count, sumMs: this.#sumMs, maxMs: this.#maxMs, buckets: [...this.#buckets] }
  }
}

/** The counters behind a snapshot. */
export class LockMetrics {
  acquired = 0
  contended = 0
  handedOver = 0
  refused = 0
  released = 0
  readonly lost: Record<LossReason, number> = { expired: 0, taken: 0 }
  readonly wait = new DurationHistogram()
  readonly hold = new DurationHistogram()

  snapshot(watchdog: { readonly renewals: number; readonly renewalErrors: number }): LockMetricsSnapshot {
    return {
      acquired: this.acquired,
      contended: this.contended,
      handedOver: this.handedOver,
      refused: this.refused,
      released: this.released,
      lost: { ...this.lost },
      renewals: watchdog.renewals,
      renewalErrors: watchdog.renewalErrors,
      wait: this.wait.snapshot(),
      hold: this.hold.snapshot(),
    }
  }
}
