import { BinaryReportCursor } from '@firebreak/core'
import { slotCount } from '@firebreak/core/commands'
import { CountedClusters } from '../heat/counted-clusters.ts'
import { type CountListener, latin1, type NearRow } from '../heat/counted-keys.ts'
import {
  type KeyId,
  rowFields,
  type SlotSums,
  type ThreadAnswer,
  type ThreadData,
  type ThreadOrder,
} from './thread-messages.ts'

/** A key that is, or may be, near in the main thread: all of its rows are sent. */
interface SentKey {
  /** The last batch from which one of its rows was sent. */
  batch: number
}

/** Sums by slot are sent at most this often, by the reports' time. */
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

  /** Extends the list by `count`; the caller fills it from the former length on. */
  grow(count: number): Float64Array {
    this.#length += count
    if (this.#length > this.#numbers.length) {
      const larger = new Float64Array(this.#numbers.length * 2)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    return this.#numbers
  }

  /** What was pushed since the last call, in its own buffer. */
  take(): Float64Array {
    const taken = this.#numbers.slice(0, this.#length)
    this.#length = 0
    return taken
  }
}

/**
 * One shard of the counted keys, run by a thread: counts its keys, and sends back the rows of keys that are or may be
 * near.
 *
 * *May be*: the main thread decides whether a key is near, when it gets to the row. This side is never stricter: its rate
 * for the hottest is at most the main thread's, and a key stays near here until the main thread has seen all rows sent
 * for it. So the main thread sees at least what a hub without threads would act on, and ignores the rest.
 */
export class IngestShard implements CountListener<SentKey> {
  readonly #keys: CountedClusters<SentKey>
  readonly #sent = new Map<string, Map<string, SentKey>>()
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
  nearRate = 0
  /** The main thread may have forgotten a key that is near here, and need it again. */
  readonly wantsPast = true

  constructor(data: ThreadData) {
    this.#keys = new CountedClusters(data)
  }

  /** Handles a message; returns an answer if one is due. */
  handle(order: ThreadOrder): ThreadAnswer | undefined {
    switch (order.kind) {
      case 'batch':
        return this.#take(order)
      case 'near':
        for (const id of order.keys) this.#addNear(id, order.now)
        return undefined
      case 'rules':
        this.#keys.setRules(order.rules, order.hubCount)
        this.#wantsSlots = order.wantsSlots
        return undefined
      case 'sweep':
        this.#keys.sweep(order.now)
        for (const redisClusterId of [...this.#sums.keys()]) this.#endSums(redisClusterId)
        return this.#answer(0)
    }
  }

  onRow(row: NearRow<SentKey>): void {
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
    // Near until the main thread says otherwise.
    const name = { redisClusterId: this.#redisClusterId, id: row.near ? '' : latin1(this.#bytes, keyStart, keyEnd) }
    const sent = row.near ?? this.#addNear(name, this.#now)
    sent.batch = this.#batch
  }

  onSlot(slot: number, count: number): void {
    this.#slotCounts[slot]! += count
    if (this.#wantsSlots) this.#slots.push(this.#report, this.#section, slot, count)
  }

  #take(order: Extract<ThreadOrder, { kind: 'batch' }>): ThreadAnswer {
    const { number, block, reports, nearRate, nearNoMore, applied } = order
    this.#batch = number
    this.nearRate = nearRate
    for (const [redisClusterId, ids] of nearNoMore) {
      for (const id of ids) this.#removeNear({ redisClusterId, id }, applied)
    }
    // A copy: shared bytes are slower to read, and text decoders refuse them.
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
      const keys = this.#keys.keysOf(redisClusterId, now)
      this.#redisClusterId = redisClusterId
      this.#slotCounts = this.#countsOf(redisClusterId, now)
      if (keys === undefined) while (cursor.nextEntry());
      else keys.addSection(cursor, now, this)
    }
  }

  #addNear({ redisClusterId, id }: KeyId, now: number): SentKey {
    let keys = this.#sent.get(redisClusterId)
    if (keys === undefined) {
      keys = new Map()
      this.#sent.set(redisClusterId, keys)
    }
    let sent = keys.get(id)
    if (sent === undefined) {
      sent = { batch: this.#batch }
      keys.set(id, sent)
    }
    sent.batch = this.#batch
    this.#keys.addNear(redisClusterId, id, sent, now)
    return sent
  }

  #removeNear({ redisClusterId, id }: KeyId, applied: number): void {
    const keys = this.#sent.get(redisClusterId)
    const sent = keys?.get(id)
    if (keys === undefined || sent === undefined || sent.batch > applied) return
    keys.delete(id)
    if (keys.size === 0) this.#sent.delete(redisClusterId)
    this.#keys.removeNear(redisClusterId, id)
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
    const { size, memoryBytes, overflowCount } = this.#keys
    const slotSums = this.#done
    this.#done = []
    return { number, rows: this.#rows.take(), slots: this.#slots.take(), slotSums, size, memoryBytes, overflowCount }
  }
}
