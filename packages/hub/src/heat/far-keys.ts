import { type BinaryReportCursor, HeatWindow, keyName, maxPreload, type WindowRules } from '@firebreak/core'
import type { NearLines } from './near-lines.ts'

export interface FarKeysOptions {
  readonly redisClusterId: string
  readonly lines: NearLines
  readonly maxKeys: number
  readonly now: number
  /** Against keys that were chosen to collide. */
  readonly hashSeed: number
  /** Which part of the keys is counted here, of how many. */
  readonly shard: number
  readonly shardCount: number
}

/** Slices of a far key's window. */
export const farSlices = 10
export const pastFields: number = farSlices + 1

/** One entry of a report whose key is near, or may be; the same object for every entry. */
export interface FarRow<Near> {
  /** What the key is linked to; undefined where it is not near yet. */
  near: Near | undefined
  keyStart: number
  keyEnd: number
  count: number
  writes: number
  byteCount: number
  /** The key's slices, newest first, this entry left out, and how long ago the newest began; where it may be wanted. */
  readonly past: Float64Array
  /** The key's accesses in `windowMs`, those of this entry included. */
  heat: number
  windowMs: number
  /** The heat from which on its rule makes the key near. */
  nearHeat: number
}

/** A row to fill. */
export function emptyRow<Near>(): FarRow<Near> {
  const numbers = { keyStart: 0, keyEnd: 0, count: 0, writes: 0, byteCount: 0, heat: 0, windowMs: 0, nearHeat: 0 }
  return { near: undefined, past: new Float64Array(pastFields), ...numbers }
}

/** Who takes what is near. */
export interface NearSide<Near> {
  /** A key without a link needs a higher rate than this to be among the hottest. */
  readonly candidateLine: number
  /** Whether the past of linked keys is wanted too. */
  readonly wantsPast: boolean
  onRow(row: FarRow<Near>): void
  /** Told of every entry that was counted, near or far. */
  onSlot(slot: number, count: number): void
}

/** Entries that are decoded together, so that the dict can fetch for all of them at once. */
const batch = {
  hashes: new Int32Array(maxPreload),
  starts: new Int32Array(maxPreload),
  ends: new Int32Array(maxPreload),
  counts: new Float64Array(maxPreload),
  writes: new Float64Array(maxPreload),
  byteCounts: new Float64Array(maxPreload),
}

/**
 * The keys of one cluster that are far from any threshold, which is nearly all of them: core's windows on the progressive
 * dict count them, at some hundred bytes a key and without an object. What comes near is linked to `Near`, which the
 * engine keeps; the windows here go on counting it, so that a key that goes far again needs nothing.
 */
export class FarKeys<Near> {
  readonly #redisClusterId: string
  readonly #window: HeatWindow
  readonly #links: (Near | undefined)[] = []
  /** What is near and not counted here at this moment, by the key's bytes as Latin-1: linked when it comes. */
  readonly #absent = new Map<string, Near>()
  readonly #shard: number
  readonly #shardCount: number
  readonly #row = emptyRow<Near>()
  #lines: NearLines
  #wasNew = false
  #overflowCount = 0

  constructor({ redisClusterId, lines, maxKeys, now, hashSeed, shard, shardCount }: FarKeysOptions) {
    this.#redisClusterId = redisClusterId
    this.#lines = lines
    this.#shard = shard
    this.#shardCount = shardCount
    this.#window = new HeatWindow({
      rules: this.#windowRules(),
      startMs: now,
      slices: farSlices,
      maxKeys,
      hashSeed,
      onNewKey: () => {
        this.#wasNew = true
      },
      onForget: (index) => {
        const near = this.#links[index]
        if (near === undefined) return
        this.#links[index] = undefined
        this.#absent.set(latin1(this.#window.dict.keyAt(index)), near)
      },
    })
  }

  get size(): number {
    return this.#window.size
  }

  get memoryBytes(): number {
    return this.#window.dict.bytes
  }

  /** True where nothing is counted and nothing linked. */
  get isEmpty(): boolean {
    return this.size === 0 && this.#absent.size === 0
  }

  /** Entries whose key found no room, since start. */
  get overflowCount(): number {
    return this.#overflowCount
  }

  /** Counts the entries of the cursor's section that fall to this shard, and gives those that matter to `side`, in order. */
  addSection(cursor: BinaryReportCursor, now: number, side: NearSide<Near>): void {
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
      for (let nth = 0; nth < size; nth++) this.#add(bytes, nth, side)
    }
  }

  /** Links a key by its bytes as Latin-1. */
  link(id: string, near: Near): void {
    const index = this.#window.find(Buffer.from(id, 'latin1'))
    if (index >= 0) this.#links[index] = near
    else this.#absent.set(id, near)
  }

  unlink(id: string): void {
    this.#absent.delete(id)
    const index = this.#window.find(Buffer.from(id, 'latin1'))
    if (index >= 0) this.#links[index] = undefined
  }

  setLines(lines: NearLines): void {
    this.#lines = lines
    this.#window.setRules(this.#windowRules())
  }

  sweep(now: number, steps: number): void {
    this.#window.moveTo(now)
    this.#window.sweep(steps)
  }

  #add(bytes: Uint8Array, nth: number, side: NearSide<Near>): void {
    const window = this.#window
    const start = batch.starts[nth]!
    const end = batch.ends[nth]!
    const count = batch.counts[nth]!
    this.#wasNew = false
    const index = window.add(bytes, start, end, count, 0, 0, -1, batch.hashes[nth]!)
    if (index < 0) {
      this.#overflowCount++
      return
    }
    side.onSlot(window.slotOf(index), count)
    if (this.#wasNew && this.#absent.size > 0) this.#adopt(index, latin1(bytes, start, end))
    const near = this.#links[index]
    const line = this.#lines.lines[window.ruleOf(index)]!
    const heat = window.heatOf(index)
    if (near === undefined && !isNearAt(heat, line.windowMs, line.heat, side.candidateLine)) return
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
    if (near === undefined || side.wantsPast) {
      window.slicesOf(index, row.past)
      row.past[0]! -= count
    }
    side.onRow(row)
  }

  /** Links a key that was near before it was counted, or was forgotten here while it was near. */
  #adopt(index: number, id: string): void {
    const near = this.#absent.get(id)
    if (near === undefined) return
    this.#absent.delete(id)
    this.#links[index] = near
  }

  #windowRules(): WindowRules {
    const { lines } = this.#lines
    const scope = this.#lines.scope(this.#redisClusterId)
    const thresholds = { levels: [], minHoldMs: 0 }
    return {
      rules: lines.map(({ windowMs }) => ({ windowMs, thresholds, candidateAt: Number.POSITIVE_INFINITY })),
      match: (bytes, start, end) => scope.match(nameOf(bytes, start, end)) + 1,
    }
  }
}

/** True where a key is near by its rule, or among the hottest of all. */
export function isNearAt(heat: number, windowMs: number, nearHeat: number, candidateLine: number): boolean {
  return heat >= nearHeat || (heat * 1000) / windowMs > candidateLine
}

/** The dict's tables use the low bits of the hash: the shard is of bits that depend on all of them. */
function shardOf(hash: number, shardCount: number): number {
  return (Math.imul(hash, 0x9e3779b1) >>> 16) % shardCount
}

/** `keyName` without a copy, for the usual key: every new one comes by here. */
function nameOf(bytes: Uint8Array, start: number, end: number): string {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!
    if (byte > 0x7f || byte === 0) return keyName(bytes.subarray(start, end))
  }
  return latin1(bytes, start, end)
}

/** Bytes as Latin-1, which V8 makes without decoding. */
export function latin1(bytes: Uint8Array, start = 0, end: number = bytes.length): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}
