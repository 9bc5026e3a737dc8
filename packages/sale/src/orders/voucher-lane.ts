import { DeadLetterError } from '../errors.ts'
import type { GuardedStore } from './guarded-store.ts'
import type { OrdersStream } from './orders-stream.ts'
import { compareIds, type OrderEntry, parseEntry, type StreamEntry } from './stream-entry.ts'

/** How many of all workers' oldest pending entries are considered; later ones wait. */
const pendingLimit = 10_000

/** An idle voucher is skipped 1, 3, 7, … times, and at most this minus one. */
const longestRest = 32

/** What a worker has done since it was started. */
export interface OrderWorkerCounts {
  stored: number
  dead: number
  claimed: number
  /** Orders taken back because they were not paid in time. */
  expired: number
  failures: number
  /** How many times the store was down. */
  outages: number
}

/** What a lane needs from its worker. */
export interface LaneOptions {
  readonly batch: number
  readonly claimAfterMs: number
  readonly maxDeliveries: number
  readonly maxDeadLetters: number
  readonly maxHeld: number
  readonly counts: OrderWorkerCounts
  readonly nowMs: () => number
  readonly onError: (error: Error) => void
}

/**
 * One voucher's path from the stream to the store, through one worker.
 *
 * The events of a user are stored in the order of the stream, whichever workers they went to: each entry names the
 * user's previous entry and waits while that one is pending. Events of different users only share the voucher's total:
 * an order leaves room for all earlier ones that are not stored yet, and if the store has no room for it, it waits
 * until it is the oldest pending one and is retried once before it is given up.
 *
 * Waiting entries stay pending in the stream and are read from there again: nothing is kept in memory that a crash
 * could lose.
 */
export class VoucherLane {
  readonly stream: OrdersStream
  readonly #store: GuardedStore
  readonly #options: LaneOptions
  /** When to retry an entry that failed through its own fault. */
  readonly #retryAt = new Map<string, number>()
  /** How many entries were left pending by the last pass over them. */
  #held = 0
  #isBehind = true
  /** How many more times to skip it, and the length of the last rest. */
  #passes = 0
  #rest = 1
  /** When the stream is trimmed next, and when to check next whether the voucher can be removed. */
  trimAt = 0
  removeAt = 0

  constructor(stream: OrdersStream, store: GuardedStore, options: LaneOptions) {
    this.stream = stream
    this.#store = store
    this.#options = options
  }

  /** True while this worker has waiting entries. */
  get holds(): boolean {
    return this.#isBehind
  }

  /** Whether to check it this time. */
  isDue(): boolean {
    if (this.#passes === 0) return true
    this.#passes--
    return false
  }

  /** Nothing is in progress here: a worker with thousands of ended vouchers serves those that are selling. */
  rest(): void {
    this.#rest = Math.min(this.#rest * 2, longestRest)
    this.#passes = this.#rest - 1
  }

  /** Something happened here. */
  wake(): void {
    this.#rest = 1
    this.#passes = 0
  }

  /** Rereads what this worker has not settled: after a restart, an outage, or a notification. */
  rewind(): void {
    this.#isBehind = true
    this.wake()
  }

  /** Stores what this worker holds and what is new; returns how many entries were settled. */
  async drain(isClosed: () => boolean): Promise<number> {
    let settled = this.#isBehind ? await this.#again(isClosed) : 0
    while (!isClosed() && this.#held < this.#options.maxHeld) {
      const entries = await this.stream.readNew(this.#options.batch)
      if (entries.length === 0) break
      settled += await this.#work(entries)
    }
    return settled
  }

  /** Takes over what dead workers left. */
  async takeOver(): Promise<void> {
    const entries = await this.stream.claimIdle(this.#options.claimAfterMs, this.#options.batch)
    if (entries.length === 0) return
    this.#options.counts.claimed += entries.length
    this.#isBehind = true
  }

  async #again(isClosed: () => boolean): Promise<number> {
    this.#isBehind = false
    this.#held = 0
    let settled = 0
    let after = '0-0'
    const seen = new Set<string>()
    while (!isClosed()) {
      const { entries, deleted } = await this.#heldAfter(after)
      const last = [...entries.map(({ id }) => id), ...deleted].at(-1)
      if (last === undefined) break
      after = last
      const due = entries.filter(({ id }) => (this.#retryAt.get(id) ?? 0) <= this.#options.nowMs())
      for (const { id } of entries) seen.add(id)
      if (due.length < entries.length) this.#hold(entries.length - due.length)
      settled += await this.#work(due)
    }
    for (const id of this.#retryAt.keys()) if (!seen.has(id)) this.#retryAt.delete(id)
    return settled
  }

  async #heldAfter(after: string): Promise<{ entries: StreamEntry[]; deleted: string[] }> {
    let held: { entries: StreamEntry[]; deleted: string[] }
    try {
      held = await this.stream.readHeld(after, this.#options.batch)
    } catch (error) {
      // Whatever stopped the pass, the rest is still to be done.
      this.#isBehind = true
      throw error
    }
    if (held.deleted.length > 0) {
      const ids = held.deleted.join(', ')
      this.#options.onError(
        new DeadLetterError(this.stream.voucherId, ids, 'deleted from the stream before it was stored'),
      )
      await this.stream.settle(held.deleted)
    }
    return held
  }

  #hold(count: number): void {
    this.#held += count
    this.#isBehind = true
  }

  /** Stores entries, settles the stored ones, and leaves the others pending; returns how many were settled. */
  async #work(entries: readonly StreamEntry[]): Promise<number> {
    if (entries.length === 0) return 0
    try {
      const sound = await this.#parse(entries)
      const ready = await this.#inTurn(sound)
      if (ready.length < sound.length) this.#hold(sound.length - ready.length)
      const buried = entries.length - sound.length
      return buried + (ready.length === 0 ? 0 : await this.#storeAll(ready))
    } catch (error) {
      this.#hold(entries.length)
      throw error
    }
  }

  async #parse(entries: readonly StreamEntry[]): Promise<OrderEntry[]> {
    const sound: OrderEntry[] = []
    for (const entry of entries) {
      const parsed = parseEntry(this.stream.voucherId, entry)
      if (parsed.kind === 'event') sound.push(parsed)
      else await this.#bury(entry, parsed.reason)
    }
    return sound
  }

  /**
   * Entries whose user has no earlier entry pending, here or with another worker; each with the number of earlier
   * pending entries, for which the store must leave room.
   */
  async #inTurn(entries: readonly OrderEntry[]): Promise<OrderEntry[]> {
    if (entries.length === 0) return []
    const known = await this.stream.pendingUpTo(entries.at(-1)!.entry.id, pendingLimit)
    const places = new Map(known.map((id, index) => [id, index]))
    const lastSeen = known.length < pendingLimit ? undefined : known.at(-1)
    const waiting = new Set<string>()
    const ready: OrderEntry[] = []
    const own = new Set<string>()
    for (const item of entries) {
      const { entry, previous, event } = item
      // For an entry beyond the listed ones it is unknown what is pending before it.
      const isBeyond = lastSeen !== undefined && compareIds(entry.id, lastSeen) > 0
      // An entry that is not pending was settled by another worker.
      const place = places.get(entry.id) ?? known.length
      const isPreviousPending = previous !== undefined && places.has(previous) && !own.has(previous)
      if (isBeyond || isPreviousPending || (previous !== undefined && waiting.has(previous))) {
        waiting.add(entry.id)
        continue
      }
      ready.push({ ...item, event: { ...event, reserve: place - own.size } })
      own.add(entry.id)
    }
    return ready
  }

  async #storeAll(ready: readonly OrderEntry[]): Promise<number> {
    const outcome = await this.#store.store(
      this.stream.voucherId,
      ready.map(({ event }) => event),
    )
    if (outcome.kind === 'fault')
      return ready.length === 1 ? this.#fault(ready[0]!, outcome.error) : this.#oneByOne(ready)
    const rejected = ready.filter((_, index) => outcome.results[index]?.kind === 'rejected')
    const stored = ready.filter((_, index) => outcome.results[index]?.kind === 'stored')
    await this.#settle(stored)
    return stored.length + (await this.#giveUpOldest(rejected))
  }

  /** One bad entry must not hold up the others of its batch; only the user's own later entries wait for it. */
  async #oneByOne(ready: readonly OrderEntry[]): Promise<number> {
    let settled = 0
    for (const item of ready) {
      const inTurn = await this.#inTurn([item])
      if (inTurn.length === 0) this.#hold(1)
      else settled += await this.#storeAll(inTurn)
    }
    return settled
  }

  async #fault({ entry }: OrderEntry, error: Error): Promise<number> {
    this.#options.onError(error)
    const faults = await this.stream.noteFault(entry.id)
    if (faults >= this.#options.maxDeliveries) return this.#bury(entry, `it failed ${faults} times`, error.message)
    this.#retryAt.set(entry.id, this.#options.nowMs() + this.#options.claimAfterMs)
    this.#hold(1)
    return 0
  }

  /** A rejected entry is final once nothing before it is pending; otherwise it waits. */
  async #giveUpOldest(rejected: readonly OrderEntry[]): Promise<number> {
    let settled = 0
    for (const [index, item] of rejected.entries()) {
      if ((await this.stream.oldestPending()) !== item.entry.id) {
        this.#hold(rejected.length - index)
        return settled
      }
      const outcome = await this.#store.store(this.stream.voucherId, [{ ...item.event, reserve: 0 }])
      const result = outcome.kind === 'results' ? outcome.results[0] : undefined
      if (outcome.kind === 'fault') settled += await this.#fault(item, outcome.error)
      else if (result?.kind === 'rejected') settled += await this.#bury(item.entry, result.reason)
      else {
        await this.#settle([item])
        settled++
      }
    }
    return settled
  }

  async #settle(entries: readonly OrderEntry[]): Promise<void> {
    await this.stream.settle(entries.map(({ entry }) => entry.id))
    this.#options.counts.stored += entries.length
  }

  async #bury(entry: StreamEntry, reason: string, cause = ''): Promise<number> {
    const { maxDeadLetters, counts, onError } = this.#options
    const done = await this.stream.bury(entry, reason, cause, maxDeadLetters)
    if (done === 'gone') return 1
    if (done === 'full') {
      onError(
        new DeadLetterError(
          this.stream.voucherId,
          entry.id,
          `${reason}; there are ${maxDeadLetters} already, so it stays pending`,
        ),
      )
      this.#retryAt.set(entry.id, this.#options.nowMs() + this.#options.claimAfterMs)
      this.#hold(1)
      return 0
    }
    counts.dead++
    onError(new DeadLetterError(this.stream.voucherId, entry.id, cause === '' ? reason : `${reason} (${cause})`))
    return 1
  }
}
