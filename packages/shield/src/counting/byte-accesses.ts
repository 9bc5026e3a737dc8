import { ByteAccessCounter, KeyBatch, type KeyHasher, KeyTally, type TallyVisitor } from '@firebreak/core'
import type { BurstWatch } from './access-buffer.ts'

/** Accesses that are counted together, if there are as many: more of them would hold up requests for too long. */
const capacity = 4096
/** They are counted after this many at least, however near a crossing is. */
const smallest = 8

/**
 * Accesses counted by the bytes of their keys, where they stand in what came off the wire: no string is made. Nearly all
 * are counted in a `KeyTally`; what has no place there, in a `ByteAccessCounter`, exactly too.
 *
 * Accesses are noted, and looked up together, so that the processor waits for the memory of all of them at once and not for
 * each. `settle` ends each piece of bytes: its keys wait for those of the next ones, as long as none is about to cross a
 * threshold.
 *
 * While keys are hot, one hash serves the counter and the table of hot keys: `take` a key, look with the hash at what it
 * is, and `noteTaken` it.
 */
export class ByteAccesses {
  readonly #hasher: KeyHasher
  readonly #tally = new KeyTally()
  readonly #batch = new KeyBatch()
  readonly #maxKeys: number
  readonly #bursts: BurstWatch
  readonly #onBurst: () => void
  #rest: ByteAccessCounter | undefined
  #counted = 0
  /** Where a key is about to cross, it must not wait for others. */
  #limit = capacity

  constructor(maxKeys: number, hasher: KeyHasher, bursts: BurstWatch, onBurst: () => void) {
    this.#maxKeys = maxKeys
    this.#hasher = hasher
    this.#bursts = bursts
    this.#onBurst = onBurst
  }

  /** Accesses since the last `drain`. */
  get count(): number {
    return this.#counted + this.#batch.size
  }

  /** Notes one access of a key, with the bytes that it writes, or -1 for a read. */
  note(bytes: Uint8Array, start: number, end: number, written: number): void {
    if (!this.#batch.note(bytes, start, end, written)) this.#noteElsewhere(bytes, start, end, written)
  }

  /** Makes a key the one at hand; gives its hash. */
  take(bytes: Uint8Array, start: number, end: number): number {
    return this.#hasher.hash(bytes, start, end)
  }

  /** As `note`, for the key at hand. */
  noteTaken(bytes: Uint8Array, start: number, end: number, written: number, hash: number): void {
    if (this.#batch.note(bytes, start, end, written)) this.#batch.setHashes(hash, this.#hasher.check)
    else this.#noteElsewhere(bytes, start, end, written)
  }

  /** The bytes at hand are about to be another's. */
  settle(): void {
    this.#batch.settle()
    if (this.#batch.size >= this.#limit) this.flush()
  }

  /** Counts what was noted. */
  flush(): void {
    const batch = this.#batch
    const { size } = batch
    if (size === 0) return
    const tally = this.#tally
    batch.settle()
    this.#hasher.hashAll(batch)
    tally.preload(batch)
    const limit = this.#bursts.burstCount
    for (let at = tally.addAll(batch, 0, limit); at < size; at = tally.addAll(batch, at + 1, limit)) {
      const hash = batch.hashes[at]!
      if (tally.sum > 0) this.#grew(hash, tally.sum - 1, tally.sum)
      else this.#addToRest(batch.bytes, batch.startOf(at), batch.endOf(at), hash, 1, batch.written[at]!)
    }
    this.#counted += size
    batch.clear()
    this.#setLimit()
  }

  /** Counts many reads of one key at once. */
  addReads(key: Uint8Array, count: number): void {
    this.#add(key, 0, key.length, count, -1)
  }

  /** Ends the interval. Keys that were read fewer than `below` times may go in pieces. */
  drain(visitor: TallyVisitor, below: number): void {
    this.flush()
    this.#tally.drain(visitor, below)
    if (this.#rest === undefined || this.#rest.keyCount === 0) return
    const rest = this.#rest.swap()
    if (rest === undefined) return
    const onKey = (key: Uint8Array, count: number, writes: number, byteCount: number) =>
      void visitor.onKey(key, 0, key.length, this.#hasher.hash(key, 0, key.length), count, writes, byteCount)
    while (rest.take(4096, onKey));
  }

  /** A new interval begins. */
  restart(): void {
    this.#counted = 0
    this.#setLimit()
  }

  #setLimit(): void {
    this.#limit = Math.max(smallest, Math.min(capacity, this.#bursts.leftCount - this.#counted))
  }

  #noteElsewhere(bytes: Uint8Array, start: number, end: number, written: number): void {
    const batch = this.#batch
    batch.begin(bytes, start)
    if (batch.note(bytes, start, end, written)) return
    this.flush()
    batch.begin(bytes, start)
    // What it does not take now is larger than its room.
    if (!batch.note(bytes, start, end, written)) this.#add(bytes, start, end, 1, written)
  }

  #add(bytes: Uint8Array, start: number, end: number, count: number, written: number): void {
    this.#counted += count
    const hash = this.#hasher.hash(bytes, start, end)
    const { check } = this.#hasher
    const isWrite = written >= 0
    const sum = this.#tally.add(bytes, start, end, hash, check, count, isWrite ? count : 0, isWrite ? written : 0)
    if (sum > 0) this.#grew(hash, sum - count, sum)
    else this.#addToRest(bytes, start, end, hash, count, written)
  }

  #addToRest(bytes: Uint8Array, start: number, end: number, hash: number, count: number, written: number): void {
    const rest = (this.#rest ??= new ByteAccessCounter({ maxKeys: this.#maxKeys, hashSeed: this.#hasher.seed }))
    const ownHash = rest.hash(bytes, start, end)
    for (let nth = 0; nth < count; nth++) {
      const sum = rest.add(bytes, start, end, ownHash, written >= 0, Math.max(0, written))
      this.#grew(hash, sum - 1, sum)
    }
  }

  #grew(hash: number, before: number, sum: number): void {
    if (sum >= this.#bursts.burstCount && this.#bursts.isBurst(hash, before, sum)) this.#onBurst()
  }
}
