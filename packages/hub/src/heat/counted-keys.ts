import { type BinaryReportCursor, keyName } from '@firebreak/core'
import { HeatWindow, maxPreload, type WindowRules, windowSlices } from '@firebreak/core/heat'
import type { NearLines } from './near-lines.ts'

export interface CountedKeysOptions {
  readonly redisClusterId: string
  readonly lines: NearLines
  readonly maxKeys: number
  readonly now: number
  /** The seed, so that nobody can choose keys that collide. */
  readonly hashSeed: number
  /** Which part of the keys is counted here, out of how many. */
  readonly shard: number
  readonly shardCount: number
}

/** A key's slices and the age of the newest. */
export const pastFields: number = windowSlices + 1

/** One entry of a report whose key is near, or may be; the same object for every entry. */
export interface NearRow<Near> {
  /** The object of the key; undefined if it is not near yet. */
  near: Near | undefined
  keyStart: number
  keyEnd: number
  count: number
  writes: number
  byteCount: number
  /** The key's slices without this entry, newest first, and how long ago the newest began; if it may be needed. */
  readonly past: Float64Array
  /** The key's accesses in `windowMs`, including this entry. */
  heat: number
  windowMs: number
  /** The heat from which its rule makes the key near. */
  nearHeat: number
}

/** A row to fill. */
export function emptyRow<Near>(): NearRow<Near> {
  const numbers = { keyStart: 0, keyEnd: 0, count: 0, writes: 0, byteCount: 0, heat: 0, windowMs: 0, nearHeat: 0 }
  return { near: undefined, past: new Float64Array(pastFields), ...numbers }
}

/** Receives what was counted. */
export interface CountListener<Near> {
  /** The rate above which a key is near whatever its rule: it is among the hottest. */
  readonly nearRate: number
  /** Whether the past of keys that are already near is needed too. */
  readonly wantsPast: boolean
  onRow(row: NearRow<Near>): void
  /** Called for every entry that was counted. */
  onSlot(slot: number, count: number): void
}

/** Entries decoded together, so that the dict can preload for all of them at once. */
const batch = {
  hashes: new Int32Array(maxPreload),
  starts: new Int32Array(maxPreload),
  ends: new Int32Array(maxPreload),
  counts: new Float64Array(maxPreload),
  writes: new Float64Array(maxPreload),
  byteCounts: new Float64Array(maxPreload),
}

/**
 * Counts all keys of one cluster: core's windows on the progressive dict, at about a hundred bytes per key and without
 * an object. A near key also has a `Near`, which the caller creates and keeps; counting continues, so a key that is no
 * longer near needs nothing.
 */
export class CountedKeys<Near> {
  readonly #redisClusterId: string
  readonly #window: HeatWindow
  /** The objects of near keys, by their index; these are marked in the window. */
  readonly #near = new Map<number, Near>()
  /** Near keys that are not currently counted, by their bytes as Latin-1: they wait for the key's next access. */
  readonly #absent = new Map<string, Near>()
  readonly #shard: number
  readonly #shardCount: number
  readonly #row = emptyRow<Near>()
  #lines: NearLines

  constructor({ redisClusterId, lines, maxKeys, now, hashSeed, shard, shardCount }: CountedKeysOptions) {
    this.#redisClusterId = redisClusterId
    this.#lines = lines
    this.#shard = shard
    this.#shardCount = shardCount
    this.#window = new HeatWindow({
      rules: this.#windowRules(),
      startMs: now,
      maxKeys,
      hashSeed,
      onForgetMarked: (index) => {
        this.#absent.set(latin1(this.#window.dict.keyAt(index)), this.#near.get(index)!)
        this.#near.delete(index)
      },
    })
  }

  setRoom(maxKeys: number, maxBytes: number): void {
    this.#window.maxKeys = maxKeys
    this.#window.dict.maxBytes = maxBytes
  }

  get size(): number {
    return this.#window.size
  }

  get memoryBytes(): number {
    return this.#window.dict.bytes
  }

  /** True if nothing is counted and nothing is near. */
  get isEmpty(): boolean {
    return this.size === 0 && this.#absent.size === 0
  }

  /** Entries since the start whose key found no room. */
  get overflowCount(): number {
    return this.#window.refusedCount
  }

  /** Counts the entries of the cursor's section that belong to this shard, and reports those that matter, in order. */
  addSection(cursor: BinaryReportCursor, now: number, listener: CountListener<Near>): void {
    this.#window.moveTo(now)
    const { bytes } = cursor
    const { dict } = this.#window
    for (let hasMore = true; hasMore; ) {
      let size = 0
      while (size < maxPreload && (hasMore = cursor.nextEntry())) {
        const hash = dict.hash(bytes, cursor.keyStart, cursor.keyEnd)
        if (this.#shardCount > 1 && shardOf(hash, this.#shardCount) !== this.#shard) continue
        batch.hashes[size] = hash
        batch.starts[size] = cursor.keyStart
        batch.ends[size] = cursor.keyEnd
        batch.counts[size] = cursor.count
        batch.writes[size] = cursor.writes
        batch.byteCounts[size] = cursor.byteCount
        size++
      }
      dict.preload(batch.hashes, size)
      for (let nth = 0; nth < size; nth++) this.#add(bytes, nth, listener)
    }
  }

  /** The key is near from now on, given by its bytes as Latin-1. */
  addNear(id: string, near: Near): void {
    const index = this.#window.find(Buffer.from(id, 'latin1'))
    if (index < 0) this.#absent.set(id, near)
    else this.#setNear(index, near)
  }

  /** It is no longer near. */
  removeNear(id: string): void {
    this.#absent.delete(id)
    const index = this.#window.find(Buffer.from(id, 'latin1'))
    if (index < 0) return
    this.#near.delete(index)
    this.#window.setMark(index, false)
  }

  setLines(lines: NearLines): void {
    this.#lines = lines
    this.#window.setRules(this.#windowRules())
  }

  sweep(now: number, steps: number): void {
    this.#window.moveTo(now)
    this.#window.sweep(steps)
  }

  #add(bytes: Uint8Array, nth: number, listener: CountListener<Near>): void {
    const window = this.#window
    const start = batch.starts[nth]!
    const end = batch.ends[nth]!
    const count = batch.counts[nth]!
    const index = window.add(bytes, start, end, count, batch.hashes[nth]!)
    if (index < 0) return
    listener.onSlot(window.slotOf(index), count)
    if (window.wasNew && this.#absent.size > 0) this.#adopt(index, latin1(bytes, start, end))
    const near = window.isMarked(index) ? this.#near.get(index) : undefined
    const line = this.#lines.lines[window.ruleOf(index)]!
    const heat = window.lastHeat
    if (near === undefined && !isNearAt(heat, line.windowMs, line.heat, listener.nearRate)) return
    const row = this.#row
    row.near = near
    row.keyStart = start
    row.keyEnd = end
    row.count = count
    row.writes = batch.writes[nth]!
    row.byteCount = batch.byteCounts[nth]!
    row.heat = heat
    row.windowMs = line.windowMs
    row.nearHeat = line.heat
    if (near === undefined || listener.wantsPast) {
      window.slicesOf(index, row.past)
      row.past[0]! -= count
    }
    listener.onRow(row)
  }

  /** Counts a key again that was near before it was counted, or whose count was dropped meanwhile. */
  #adopt(index: number, id: string): void {
    const near = this.#absent.get(id)
    if (near === undefined) return
    this.#absent.delete(id)
    this.#setNear(index, near)
  }

  #setNear(index: number, near: Near): void {
    this.#near.set(index, near)
    this.#window.setMark(index, true)
  }

  #windowRules(): WindowRules {
    const scope = this.#lines.scope(this.#redisClusterId)
    return {
      windowsMs: this.#lines.lines.map(({ windowMs }) => windowMs),
      match: (bytes, start, end) => scope.match(nameOf(bytes, start, end)) + 1,
    }
  }
}

/** True if a key is near by its rule, or among the hottest of all. */
export function isNearAt(heat: number, windowMs: number, nearHeat: number, nearRate: number): boolean {
  return heat >= nearHeat || (heat * 1000) / windowMs > nearRate
}

/** The dict's tables use the low bits of the hash, so the shard is derived from all of them. */
function shardOf(hash: number, shardCount: number): number {
  return (Math.imul(hash, 0x9e3779b1) >>> 16) % shardCount
}

/** `keyName` without a copy, for the usual key: every new key passes here. */
function nameOf(bytes: Uint8Array, start: number, end: number): string {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte > 0x7f || byte === 0) return keyName(bytes.subarray(start, end))
  }
  return latin1(bytes, start, end)
}

/** Bytes as Latin-1, which V8 creates without decoding. */
export function latin1(bytes: Uint8Array, start = 0, end: number = bytes.length): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}
