import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { IdsError, messageOf } from '../errors.ts'
import { DecimalCounter } from '../snowflake/decimal-counter.ts'
import { type AllocatedSegment, isStep, type SegmentStore } from './segment-store.ts'
import { nextStep } from './step-policy.ts'

/** What a buffer needs to know. */
export interface BufferOptions {
  /** How long callers wait for a running load before they get an error. */
  readonly waitTimeoutMs: number
  /** How soon to retry a failed load. */
  readonly retryMs: number
  /** How many callers may wait at once. */
  readonly maxWaiters: number
  /** A clock that never steps. */
  readonly clock: Clock
  readonly timers: Timers
  readonly onFailure: (error: IdsError) => void
  readonly onRecovery: () => void
}

/** A buffer for the console. */
export interface BufferStatus {
  readonly tag: string
  readonly store: string
  /** The next id of the current segment and the first one after it, as text; equal before the first load. */
  readonly next: string
  readonly end: string
  readonly left: number
  /** Ids of the next segment, which is ready. */
  readonly ready: number
  /** How many ids the last load brought, and the table's own step. */
  readonly step: number
  readonly tableStep: number
  readonly isLoading: boolean
  readonly waiting: number
  /** How long the last load took. */
  readonly loadMs: number
  readonly loads: number
  readonly error: string | undefined
}

interface Waiter {
  resolve(id: string): void
  reject(error: IdsError): void
}

/**
 * Two segments of one tag: ids come from the current one, and when a tenth of it is used the next is fetched, so that
 * callers never see the database as long as it answers within the other nine tenths.
 *
 * Callers who find both segments empty queue for the running load, first come, first served; a load that brings fewer
 * ids than there are callers is immediately followed by the next. Nobody waits on a database that does not answer: when
 * a load runs longer than `waitTimeoutMs` all waiting callers get `FB_IDS_SEGMENTS_EMPTY`, when it fails
 * `FB_IDS_DATABASE_DOWN`, and so does every new one at once, until a load succeeds. Failed loads are repeated by a
 * timer, with or without callers.
 *
 * A table that was emptied or restored from a backup would issue ids twice. This process knows how far its own went: it
 * does not use a segment below that, raises the table, and raises an alarm that other processes' ids may still repeat.
 */
export class SegmentBuffer {
  readonly tag: string
  readonly #store: SegmentStore
  readonly #options: BufferOptions
  readonly #digits = new DecimalCounter()
  #left = 0
  #end = 0n
  /** The next segment is fetched when fewer ids than this are left; -1 when that has been done. */
  #refillBelow = 0
  #ready: AllocatedSegment | undefined
  #step = 0
  #tableStep: number
  #isLoading = false
  #isOverdue = false
  #loadedAt: number | undefined
  #loadMs = 0
  #loads = 0
  /** The end of the last segment that this process had of the tag. */
  #highest: bigint
  #failure: IdsError | undefined
  #waiters: Waiter[] = []
  #retry: TimerHandle | undefined
  #closed: IdsError | undefined

  /** @param highest where the segments of an earlier buffer of this tag ended */
  constructor(tag: string, tableStep: number, store: SegmentStore, options: BufferOptions, highest = 0n) {
    this.tag = tag
    this.#tableStep = tableStep
    this.#store = store
    this.#options = options
    this.#highest = highest
  }

  /** Ids of this tag from here on were never issued by this process. */
  get highest(): bigint {
    return this.#highest
  }

  get store(): SegmentStore {
    return this.#store
  }

  /** An id that is in memory, or undefined: then `wait`. */
  take(): string | undefined {
    if (this.#left === 0 && !this.#switchOver()) return undefined
    if (--this.#left < this.#refillBelow) this.#refill()
    return this.#digits.next()
  }

  /** The next id, once a load has brought it. */
  wait(): Promise<string> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed)
    if (this.#failure !== undefined && (!this.#isLoading || this.#isOverdue)) return Promise.reject(this.#failure)
    if (this.#waiters.length >= this.#options.maxWaiters) {
      const sentence = `${this.#waiters.length} callers are already waiting for ids of "${this.tag}" ; raise its step or maxWaiters`
      return Promise.reject(new IdsError('FB_IDS_OVERLOADED', sentence, { tag: this.tag }))
    }
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject })
      this.#load()
    })
  }

  /** The table's step, as last read. */
  set tableStep(step: number) {
    this.#tableStep = step
  }

  status(): BufferStatus {
    return {
      tag: this.tag,
      store: this.#store.name,
      next: String(this.#end - BigInt(this.#left)),
      end: String(this.#end),
      left: this.#left,
      ready: this.#ready?.size ?? 0,
      step: this.#step,
      tableStep: this.#tableStep,
      isLoading: this.#isLoading,
      waiting: this.#waiters.length,
      loadMs: Math.round(this.#loadMs),
      loads: this.#loads,
      error: this.#failure?.message,
    }
  }

  /** No more ids; waiting callers get the error. */
  close(error: IdsError): void {
    this.#closed = error
    this.#retry?.cancel()
    this.#left = 0
    this.#ready = undefined
    this.#rejectAll(error)
  }

  #switchOver(): boolean {
    if (this.#ready === undefined) return false
    this.#begin(this.#ready)
    this.#ready = undefined
    return true
  }

  #begin({ maxId, size }: AllocatedSegment): void {
    this.#digits.reset(maxId - BigInt(size))
    this.#end = maxId
    this.#left = size
    // A tenth of one id is one id: the load starts with the first.
    this.#refillBelow = Math.max(1, Math.floor(size * 0.9))
  }

  #refill(): void {
    this.#refillBelow = -1
    if (this.#ready === undefined) this.#load()
  }

  #load(): void {
    if (this.#isLoading || this.#closed !== undefined) return
    this.#retry?.cancel()
    this.#isLoading = true
    this.#isOverdue = false
    const { clock, timers, waitTimeoutMs } = this.#options
    const startedAt = clock.now()
    const overdue = timers.setTimeout(() => {
      this.#isOverdue = true
      const sentence = `both segments of "${this.tag}" are used up and ${this.#store.name} has not answered for ${waitTimeoutMs} ms; raise its step, or find out why the database is slow`
      this.#fail(new IdsError('FB_IDS_SEGMENTS_EMPTY', sentence, { tag: this.tag, store: this.#store.name }))
    }, waitTimeoutMs)
    const size = this.#nextSize(startedAt)
    this.#allocate(size).then(
      (segment) => {
        overdue.cancel()
        this.#isLoading = false
        this.#loadMs = clock.now() - startedAt
        this.#loaded(segment, startedAt)
      },
      (error: unknown) => {
        overdue.cancel()
        this.#isLoading = false
        if (this.#closed !== undefined) return
        this.#fail(error)
        this.#retry = timers.setTimeout(() => this.#load(), this.#options.retryMs)
      },
    )
  }

  /** A segment beyond everything that this process has had for the tag. */
  async #allocate(size: number | undefined): Promise<AllocatedSegment> {
    const segment = await this.#store.allocate(this.tag, size)
    if (!isStep(segment.size) || segment.maxId < BigInt(segment.size)) {
      const sentence = `${this.#store.name} gave ${segment.size} ids up to ${segment.maxId} for "${this.tag}", which is not a segment`
      throw new IdsError('FB_IDS_TAG_INVALID', sentence, { tag: this.tag, store: this.#store.name })
    }
    if (segment.maxId - BigInt(segment.size) >= this.#highest) {
      this.#highest = segment.maxId
      return segment
    }
    const sentence = `max_id of "${this.tag}" in ${this.#store.name} went back to ${segment.maxId} from ${this.#highest} or more: ids of other processes may repeat; this process issues none until it has passed that ${this.#highest}`
    const error = new IdsError('FB_IDS_SEGMENT_BACKWARD', sentence, { tag: this.tag, store: this.#store.name })
    if (this.#store.raise === undefined) throw error
    this.#options.onFailure(error)
    await this.#store.raise(this.tag, this.#highest)
    return this.#allocate(size)
  }

  /** How many ids to ask for; undefined for the table's own step. */
  #nextSize(now: number): number | undefined {
    return this.#loadedAt === undefined ? undefined : nextStep(this.#step, this.#tableStep, now - this.#loadedAt)
  }

  #loaded(segment: AllocatedSegment, startedAt: number): void {
    if (this.#closed !== undefined) return
    this.#loads++
    this.#loadedAt = startedAt
    this.#step = segment.size
    this.#tableStep = segment.tableStep
    if (this.#failure !== undefined) {
      this.#failure = undefined
      this.#options.onRecovery()
    }
    if (this.#left === 0 && this.#ready === undefined) this.#begin(segment)
    else this.#ready = segment
    let served = 0
    while (served < this.#waiters.length) {
      const id = this.take()
      if (id === undefined) break
      this.#waiters[served++]!.resolve(id)
    }
    this.#waiters = this.#waiters.slice(served)
    if (this.#waiters.length > 0) this.#load()
  }

  #fail(cause: unknown): void {
    const isKnown = cause instanceof IdsError
    const error = isKnown
      ? cause
      : new IdsError(
          'FB_IDS_DATABASE_DOWN',
          `${this.#store.name} returned no segment for "${this.tag}" (${messageOf(cause)}); ids continue when it answers again`,
          { tag: this.tag, store: this.#store.name },
          { cause },
        )
    if (this.#failure === undefined) this.#options.onFailure(error)
    this.#failure = error
    this.#rejectAll(error)
  }

  #rejectAll(error: IdsError): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }
}
