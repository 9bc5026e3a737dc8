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
  /** How long no segment is taken after the table went back, so that every process that lives has raised it. */
  readonly settleMs: number
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
 * A table that was emptied or restored from a backup would issue ids twice. Every process knows how far its own went, and
 * raises the table to that whenever it finds it lower: when it takes a segment, and each time the tags are read. A process
 * that finds it lower takes no segment for `settleMs`, in which every live process has read the tags. The segments that it
 * already has are its own: the table went back after the last one.
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
  /** No segment is taken before this time: the table went back. */
  #heldUntil = Number.NEGATIVE_INFINITY
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
    const { clock, timers, waitTimeoutMs } = this.#options
    const startedAt = clock.now()
    if (startedAt < this.#heldUntil) {
      this.#fail(this.#backward())
      this.#retryIn(this.#heldUntil - startedAt)
      return
    }
    this.#isLoading = true
    this.#isOverdue = false
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
        this.#retryIn(Math.max(this.#options.retryMs, this.#heldUntil - clock.now()))
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
    // Seen by a reading of the tags, while this segment was under way.
    if (this.#options.clock.now() < this.#heldUntil) throw this.#backward()
    if (segment.maxId - BigInt(segment.size) >= this.#highest) {
      this.#highest = segment.maxId
      return segment
    }
    await this.#store.raise?.(this.tag, this.#highest)
    if (this.#store.raise !== undefined) this.#hold()
    throw this.#backward(segment.maxId)
  }

  /** The table was read with this `maxId` when `highest` was as it is given: where it went back, raises it and waits. */
  async check(maxId: bigint, highest: bigint): Promise<void> {
    // Who has had nothing of the tag knows nothing of it.
    if (highest === 0n || maxId >= highest || this.#closed !== undefined) return
    // Where it need not be raised, a copy of the table that lags was read.
    if (!(await this.#store.raise?.(this.tag, this.#highest))) return
    this.#hold()
    this.#options.onFailure(this.#backward(maxId))
  }

  #hold(): void {
    this.#heldUntil = this.#options.clock.now() + this.#options.settleMs
  }

  #backward(maxId?: bigint): IdsError {
    const went = maxId === undefined ? 'went back' : `went back to ${maxId}`
    const sentence = `max_id of "${this.tag}" in ${this.#store.name} ${went}, from ${this.#highest} or more: this process takes none of those ids, and no new ones until every running process has raised it; ids of processes that no longer run may repeat unless it is set above them`
    return new IdsError('FB_IDS_SEGMENT_BACKWARD', sentence, { tag: this.tag, store: this.#store.name })
  }

  #retryIn(delayMs: number): void {
    this.#retry = this.#options.timers.setTimeout(() => this.#load(), delayMs)
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
    // An outage must not hide that the table went back behind it.
    if (this.#failure?.code !== error.code) this.#options.onFailure(error)
    this.#failure = error
    this.#rejectAll(error)
  }

  #rejectAll(error: IdsError): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }
}
