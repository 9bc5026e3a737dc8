import { type Clock, type Runtime, systemRuntime, type Timers } from '@firebreak/core'
import type { Answer, LimiterCounts } from '../answer.ts'
import { LimitCostError } from '../errors.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { capacityOf, spanMs, specId } from '../spec/specs.ts'
import { requireWhole } from '../spec/whole-ratio.ts'
import { WaitingLine, type WaitOptions } from '../wait/waiting-line.ts'
import { type Algorithm, denied } from './algorithm.ts'
import { Blocks } from './blocks.ts'
import { KeyTable } from './key-table.ts'
import { makeAlgorithm } from './make-algorithm.ts'
import { RecentIds } from './recent-ids.ts'
import { clockFor } from './turn-clock.ts'

/** Options of a limiter in this process. */
export interface LocalLimiterOptions {
  /**
   * Its clock.
   * @default the steady clock, read once in a burst of one turn (see `TurnClock`); the wall clock for `calendarWindow`
   */
  readonly clock?: Clock
  /** Maximum number of keys; beyond that, those nearest to unused start over, denied ones last. @default 100000 */
  readonly maxKeys?: number
  /** The name in answers of `all` and in metrics. @default derived from the spec */
  readonly name?: string
  /** Maximum number of waiting calls of `wait`. @default 1000 */
  readonly maxWaiting?: number
  /** How `wait` sleeps. @default the runtime's timers */
  readonly timers?: Timers
  /** Time and timers, unless given separately. @default the system's */
  readonly runtime?: Runtime
}

/** A limiter whose state is in this process; every call but `wait` is synchronous. */
export class LocalLimiter {
  readonly spec: LimitSpec
  readonly name: string
  readonly counts: LimiterCounts = { allowed: 0, denied: 0, unavailable: 0, evicted: 0 }
  readonly #clock: Clock
  readonly #algorithm: Algorithm
  readonly #table: KeyTable
  readonly #blocks: Blocks
  readonly #refunded: RecentIds
  readonly #line: WaitingLine

  constructor(spec: LimitSpec, options: LocalLimiterOptions = {}) {
    const { runtime = systemRuntime, maxKeys = 100_000, name = specId(spec), maxWaiting = 1000 } = options
    requireWhole('maxKeys', maxKeys, 1, 2 ** 24)
    requireWhole('maxWaiting', maxWaiting, 1)
    this.spec = spec
    this.name = name
    this.#clock = options.clock ?? clockFor(runtime, spec.kind)
    this.#algorithm = makeAlgorithm(spec)
    this.#table = new KeyTable(this.#algorithm, maxKeys)
    this.#blocks = new Blocks(maxKeys)
    this.#refunded = new RecentIds(Math.max(spanMs(spec), 60_000))
    this.#line = new WaitingLine({
      spec,
      take: (key, cost) => this.take(key, cost),
      peek: (key) => this.peek(key),
      refund: (key, cost) => this.refund(key, cost),
      isSynchronous: true,
      clock: options.clock ?? runtime.clock,
      timers: options.timers ?? runtime.timers,
      maxWaiting,
    })
  }

  /** Number of keys remembered. */
  get size(): number {
    return this.#table.size
  }

  /** Calls of `wait` not served yet. */
  get waiting(): number {
    return this.#line.waiting
  }

  /** Requests `cost` units; charged only if admitted. */
  take(key: string, cost = 1, requestId?: string): Answer {
    const answer = this.#decide(key, cost, true, requestId)
    if (answer.allowed) this.counts.allowed++
    else this.counts.denied++
    return answer
  }

  /** What `take(key, cost)` would answer, without charging; with cost 0 the current state. */
  peek(key: string, cost = 0): Answer {
    return this.#decide(key, cost, false)
  }

  /** Returns `units`, once per request id if one is given. False if that id was used before. */
  refund(key: string, units = 1, requestId?: string): boolean {
    requireCost(units)
    if (units === 0) return true
    const nowMs = Math.floor(this.#clock.now())
    // A hold of `concurrency` is returned by its name, which cannot happen twice.
    const isMarked = requestId !== undefined && this.spec.kind !== 'concurrency'
    if (isMarked && !this.#refunded.isFirst(`${key}\0${requestId}`, nowMs)) return false
    const slot = this.#table.find(key)
    if (slot !== undefined) this.#algorithm.refund(slot, nowMs, units, requestId)
    this.#line.poke(key)
    return true
  }

  /**
   * Like `refund` if the units may have been charged elsewhere: undefined if nothing was charged here that could be
   * returned; then the id may be used again.
   * @internal
   */
  refundCharged(key: string, units: number, requestId?: string): boolean | undefined {
    const nowMs = Math.floor(this.#clock.now())
    const slot = this.#table.find(key)
    if (requestId !== undefined && this.#refunded.has(`${key}\0${requestId}`, nowMs)) return false
    if (slot === undefined) return undefined
    const before = this.#algorithm.take(slot, nowMs, 0, false).remaining
    this.#algorithm.refund(slot, nowMs, units, requestId)
    if (this.#algorithm.take(slot, nowMs, 0, false).remaining === before) return undefined
    if (requestId !== undefined) this.#refunded.isFirst(`${key}\0${requestId}`, nowMs)
    this.#line.poke(key)
    return true
  }

  /** Forgets a key: unused and not blocked. */
  reset(key: string): void {
    this.#table.remove(key)
    this.#blocks.delete(key)
    this.#line.poke(key)
  }

  /** Denies a key for this long, regardless of its limit. */
  block(key: string, forMs: number): void {
    requireWhole('forMs', forMs, 0)
    this.#blocks.set(key, Math.floor(this.#clock.now()), forMs)
  }

  /** Waits for its turn instead of being denied: first come, first served for each key, bounded in time and number. */
  async wait(key: string, cost = 1, options: WaitOptions = {}): Promise<Answer> {
    requireCost(cost)
    return this.#line.wait(key, cost, options)
  }

  #decide(key: string, cost: number, charges: boolean, requestId?: string): Answer {
    requireCost(cost)
    const nowMs = Math.floor(this.#clock.now())
    if (!this.#blocks.isEmpty) {
      const leftMs = this.#blocks.leftMs(key, nowMs)
      if (leftMs > 0) return denied(0, cost > capacityOf(this.spec) ? null : leftMs, leftMs)
    }
    let slot = this.#table.find(key)
    if (slot === undefined) {
      slot = this.#table.add(key, nowMs)
      this.counts.evicted = this.#table.evicted
    }
    const answer = this.#algorithm.take(slot, nowMs, cost, charges, requestId)
    // A cost that is never admitted says nothing about the key.
    if (charges && answer.retryAfterMs !== null) this.#table.mark(key, slot, !answer.allowed)
    return answer
  }
}

/** A limiter in this process. */
export function localLimiter(spec: LimitSpec, options?: LocalLimiterOptions): LocalLimiter {
  return new LocalLimiter(spec, options)
}

/** Whether a cost is a whole number from 0 up. */
export function isCost(cost: number): boolean {
  return cost === 1 || (cost >= 0 && Number.isSafeInteger(cost))
}

/** Throws unless it is. */
export function requireCost(cost: number): void {
  if (!isCost(cost)) throw new LimitCostError(cost)
}
