import { BinaryReportCursor, slotCount } from '@firebreak/core'
import { type FarRow, latin1, type NearSide } from '../heat/far-keys.ts'
import { FarTier } from '../heat/far-tier.ts'
import {
  type LinkName,
  rowFields,
  type SlotSums,
  type ThreadAnswer,
  type ThreadData,
  type ThreadOrder,
} from './thread-messages.ts'

/** A key that the main thread holds as near: its rows are all sent. */
interface Link {
  /** The last batch of which a row of it was sent. */
  batch: number
}

/** Sums by slot are sent so often at most, by the reports' time. */
const slotSumsMs = 100

/** A growing list of numbers. */
class Numbers {
  #numbers = new Float64Array(1024)
  #length = 0

  get length(): number {
    return this.#length
  }

  push(...values: readonly number[]): void {
    const at = this.#length
    this.grow(values.length).set(values, at)
  }

  /** Makes the list longer by `count`; the caller fills it from the length before. */
  grow(count: number): Float64Array {
    this.#length += count
    if (this.#length > this.#numbers.length) {
      const larger = new Float64Array(this.#numbers.length * 2)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    return this.#numbers
  }

  /** What was pushed since the last call, in a buffer of its own. */
  take(): Float64Array {
    const taken = this.#numbers.slice(0, this.#length)
    this.#length = 0
    return taken
  }
}

/**
 * One shard of the far keys, as a thread runs it: counts what falls to it, and sends back the rows of keys that are near
 * or may be.
 *
 * *May be*: whether a key is near is the main thread's to say, at the moment at which it comes to the row. What this side
 * knows is never stricter: its line for the hottest is at most the main thread's, and a link goes only when the main
 * thread has seen all rows that were sent for it. So the main thread sees at least what a hub without threads would act
 * on, and leaves the rest.
 */
export class IngestShard implements NearSide<Link> {
  readonly #far: FarTier<Link>
  readonly #links = new Map<string, Map<string, Link>>()
  readonly #rows = new Numbers()
  readonly #slots = new Numbers()
  readonly #sums = new Map<string, { readonly at: number; readonly counts: Float64Array }>()
  #done: SlotSums[] = []
  #wantsSlots = false
  #batch = 0
  #report = 0
  #section = 0
  #redisClusterId = ''
  #bytes: Uint8Array = new Uint8Array(0)
  #now = 0
  #slotCounts: Float64Array = new Float64Array(slotCount)
  candidateLine = 0
  /** The main thread may have forgotten a key that is linked here, and want it again. */
  readonly wantsPast = true

  constructor(data: ThreadData) {
    this.#far = new FarTier(data)
  }

  /** Does what is asked; an answer where one is due. */
  handle(order: ThreadOrder): ThreadAnswer | undefined {
    switch (order.kind) {
      case 'batch':
        return this.#take(order)
      case 'link':
        for (const name of order.links) this.#link(name, order.now)
        return undefined
      case 'rules':
        this.#far.setRules(order.rules, order.hubCount)
        this.#wantsSlots = order.wantsSlots
        return undefined
      case 'sweep':
        this.#far.sweep(order.now)
        for (const redisClusterId of [...this.#sums.keys()]) this.#endSums(redisClusterId)
        return this.#answer(0)
    }
  }

  onRow(row: FarRow<Link>): void {
    const { keyStart, keyEnd, count, writes, byteCount, heat, windowMs, nearHeat } = row
    const { length } = this.#rows
    const numbers = this.#rows.grow(rowFields)
    numbers[length] = this.#report
    numbers[length + 1] = this.#section
    numbers[length + 2] = keyStart
    numbers[length + 3] = keyEnd
    numbers[length + 4] = count
    numbers[length + 5] = writes
    numbers[length + 6] = byteCount
    numbers[length + 7] = heat
    numbers[length + 8] = windowMs
    numbers[length + 9] = nearHeat
    numbers.set(row.past, length + 10)
    // Linked until the main thread says otherwise.
    const name = { redisClusterId: this.#redisClusterId, id: row.near ? '' : latin1(this.#bytes, keyStart, keyEnd) }
    const link = row.near ?? this.#link(name, this.#now)
    link.batch = this.#batch
  }

  onSlot(slot: number, count: number): void {
    this.#slotCounts[slot]! += count
    if (this.#wantsSlots) this.#slots.push(this.#report, this.#section, slot, count)
  }

  #take(order: Extract<ThreadOrder, { kind: 'batch' }>): ThreadAnswer {
    const { number, block, reports, candidateLine, unlinks, applied } = order
    this.#batch = number
    this.candidateLine = candidateLine
    for (const [redisClusterId, ids] of unlinks) {
      for (const id of ids) this.#unlink({ redisClusterId, id }, applied)
    }
    // A copy of our own: shared bytes are slower to read, and text decoders refuse them.
    const bytes = new Uint8Array(reports.at(-2) ?? 0)
    bytes.set(new Uint8Array(block, 0, bytes.length))
    for (this.#report = 0; this.#report * 3 < reports.length; this.#report++) {
      const [start, end, now] = reports.subarray(this.#report * 3) as unknown as [number, number, number]
      this.#takeReport(bytes.subarray(start, end), now)
    }
    return this.#answer(number)
  }

  #takeReport(bytes: Uint8Array, now: number): void {
    const cursor = new BinaryReportCursor(bytes)
    this.#bytes = bytes
    this.#now = now
    for (this.#section = 0; cursor.nextSection(); this.#section++) {
      const { redisClusterId } = cursor
      const keys = this.#far.keysOf(redisClusterId, now)
      this.#redisClusterId = redisClusterId
      this.#slotCounts = this.#countsOf(redisClusterId, now)
      if (keys === undefined) while (cursor.nextEntry());
      else keys.addSection(cursor, now, this)
    }
  }

  #link({ redisClusterId, id }: LinkName, now: number): Link {
    let links = this.#links.get(redisClusterId)
    if (links === undefined) {
      links = new Map()
      this.#links.set(redisClusterId, links)
    }
    let link = links.get(id)
    if (link === undefined) {
      link = { batch: this.#batch }
      links.set(id, link)
    }
    link.batch = this.#batch
    this.#far.link(redisClusterId, id, link, now)
    return link
  }

  #unlink({ redisClusterId, id }: LinkName, applied: number): void {
    const links = this.#links.get(redisClusterId)
    const link = links?.get(id)
    if (links === undefined || link === undefined || link.batch > applied) return
    links.delete(id)
    if (links.size === 0) this.#links.delete(redisClusterId)
    this.#far.unlink(redisClusterId, id)
  }

  #countsOf(redisClusterId: string, now: number): Float64Array {
    const at = Math.floor(now / slotSumsMs) * slotSumsMs
    const known = this.#sums.get(redisClusterId)
    if (known?.at === at) return known.counts
    this.#endSums(redisClusterId)
    const sums = { at, counts: new Float64Array(slotCount) }
    this.#sums.set(redisClusterId, sums)
    return sums.counts
  }

  #endSums(redisClusterId: string): void {
    const sums = this.#sums.get(redisClusterId)
    if (sums === undefined) return
    this.#sums.delete(redisClusterId)
    const pairs = new Numbers()
    sums.counts.forEach((count, slot) => {
      if (count > 0) pairs.push(slot, count)
    })
    this.#done.push({ redisClusterId, at: sums.at, pairs: pairs.take() })
  }

  #answer(number: number): ThreadAnswer {
    const { size, memoryBytes, overflowCount } = this.#far
    const slotSums = this.#done
    this.#done = []
    return { number, rows: this.#rows.take(), slots: this.#slots.take(), slotSums, size, memoryBytes, overflowCount }
  }
}
