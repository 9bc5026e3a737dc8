import type { Answer } from '../answer.ts'
import type { SlidingWindowSpec } from '../spec/spec.ts'
import { type Algorithm, admitted, denied, grown } from './algorithm.ts'

/**
 * A sliding window in buckets: the bucket of an instant is floor(now × buckets / windowMs), so that buckets need not
 * divide the window.
 *
 * `classic` counts the newest `buckets` buckets. The oldest of them is dropped whole at a bucket's edge, up to a bucket
 * before its hits are `windowMs` old: more than the limit can pass within a window. `strict` counts one bucket more. A
 * hit of bucket j is then forgotten at the start of bucket j + buckets + 1, which is more than `windowMs` after any
 * instant of bucket j; the price is that it may be remembered for up to a bucket too long.
 *
 * A key has a row of counts, bucket b at position b % span; only those of (newest − span, newest] are valid.
 */
export class Buckets implements Algorithm {
  readonly #limit: number
  readonly #windowMs: number
  readonly #buckets: number
  readonly #span: number
  #newest = new Float64Array(0)
  #counts = new Float64Array(0)

  constructor(spec: SlidingWindowSpec) {
    this.#limit = spec.limit
    this.#windowMs = spec.windowMs
    this.#buckets = spec.buckets
    this.#span = spec.mode === 'strict' ? spec.buckets + 1 : spec.buckets
  }

  grow(slots: number): void {
    this.#newest = grown(this.#newest, slots)
    this.#counts = grown(this.#counts, slots * this.#span)
  }

  take(slot: number, nowMs: number, cost: number, charges: boolean): Answer {
    const limit = this.#limit
    const bucket = this.#settle(slot, nowMs)
    const used = this.#used(slot, bucket)
    if (used + cost > limit) {
      const retryAfterMs = cost > limit ? null : this.#retryAfterMs(slot, bucket, nowMs, used + cost - limit)
      return denied(limit - used, retryAfterMs, this.#resetMs(slot, bucket, nowMs))
    }
    if (charges && cost > 0) this.#add(slot, bucket, cost)
    const resetMs = cost > 0 ? this.#forgottenAt(bucket) - nowMs : this.#resetMs(slot, bucket, nowMs)
    return admitted(limit - used - cost, resetMs, 0)
  }

  refund(slot: number, nowMs: number, units: number): void {
    const bucket = this.#settle(slot, nowMs)
    this.#add(slot, bucket, 0)
    let left = units
    for (let at = bucket; at > bucket - this.#span && at >= 0 && left > 0; at--) {
      const place = this.#place(slot, at)
      const back = Math.min(left, this.#counts[place]!)
      this.#counts[place] = this.#counts[place]! - back
      left -= back
    }
  }

  unusedAtMs(slot: number): number {
    const newest = this.#newest[slot]!
    return Math.max(0, this.#resetMs(slot, newest, 0))
  }

  clear(slot: number): void {
    this.#counts.fill(0, slot * this.#span, (slot + 1) * this.#span)
    this.#newest[slot] = 0
  }

  /**
   * The bucket that counts as now's. If the clock stepped back, later counts are moved into it; with `classic`, which
   * forgets a bucket too early, it is the one after now's, so that a step of a whole window is absorbed.
   */
  #settle(slot: number, nowMs: number): number {
    const bucket = Math.floor((nowMs * this.#buckets) / this.#windowMs)
    const newest = this.#newest[slot]!
    if (bucket >= newest) return bucket
    const isFollowed = newest - bucket > this.#buckets || this.#used(slot, newest) === 0
    const latest = isFollowed ? bucket : Math.min(newest, bucket + this.#buckets + 1 - this.#span)
    let moved = 0
    for (let at = newest; at > latest && at > newest - this.#span; at--) {
      const place = this.#place(slot, at)
      moved += this.#counts[place]!
      this.#counts[place] = 0
    }
    const place = this.#place(slot, latest)
    this.#counts[place] = this.#counts[place]! + moved
    this.#newest[slot] = latest
    return latest
  }

  #used(slot: number, bucket: number): number {
    let used = 0
    const oldest = bucket - this.#span + 1
    for (let at = this.#newest[slot]!; at >= oldest && at > this.#newest[slot]! - this.#span; at--) {
      used += this.#count(slot, at)
    }
    return used
  }

  #add(slot: number, bucket: number, cost: number): void {
    const newest = this.#newest[slot]!
    const skipped = Math.min(bucket - newest, this.#span)
    for (let index = 0; index < skipped; index++) this.#counts[this.#place(slot, bucket - index)] = 0
    this.#newest[slot] = bucket
    const place = this.#place(slot, bucket)
    this.#counts[place] = this.#counts[place]! + cost
  }

  /** Until the oldest buckets that hold `excess` are forgotten. */
  #retryAfterMs(slot: number, bucket: number, nowMs: number, excess: number): number {
    let left = excess
    let at = bucket - this.#span
    while (left > 0) left -= this.#live(slot, ++at)
    return this.#forgottenAt(at) - nowMs
  }

  #resetMs(slot: number, bucket: number, nowMs: number): number {
    for (let at = bucket; at > bucket - this.#span; at--) {
      if (this.#live(slot, at) > 0) return this.#forgottenAt(at) - nowMs
    }
    return 0
  }

  /** The count of a bucket that may be newer than the newest in the row, or older than the row. */
  #live(slot: number, at: number): number {
    const newest = this.#newest[slot]!
    return at > newest || at <= newest - this.#span ? 0 : this.#count(slot, at)
  }

  #count(slot: number, at: number): number {
    return at < 0 ? 0 : this.#counts[this.#place(slot, at)]!
  }

  #place(slot: number, at: number): number {
    return slot * this.#span + (at % this.#span)
  }

  /** The first millisecond at which a bucket no longer counts. */
  #forgottenAt(bucket: number): number {
    return Math.ceil(((bucket + this.#span) * this.#windowMs) / this.#buckets)
  }
}
