import { ByteAccessCounter, type KeyBatch, type KeyHasher, KeyTally, type TallyVisitor } from '@firebreak/core/heat'
import type { BurstWatch } from './access-buffer.ts'

/** Accesses that are counted together, if there are as many: the memory of more would leave the processor's cache. */
const capacity = 512
/** Counted after no fewer than this many, however near a crossing is. */
const smallest = 8

/**
 * Counts accesses by the bytes of their keys, in place in the received chunk: no string is made. Nearly all are counted
 * in a `KeyTally`; what does not fit there goes to a `ByteAccessCounter`, which is exact too. Without WebAssembly
 * everything goes there, at about 100 ns per access.
 *
 * Accesses are noted and looked up in groups, so that the processor waits for the memory of all of them at once.
 * `settle` ends each chunk: its keys wait for those of later chunks unless one is about to cross a threshold.
 *
 * While keys are hot, one hash serves both the counter and the table of hot keys: `take` a key, look it up by the hash,
 * then `noteTaken`.
 */
export class ByteAccesses {
  readonly #hasher: KeyHasher
  readonly #tally: KeyTally | undefined
  readonly #batch: KeyBatch | undefined
  readonly #maxKeys: number
  readonly #bursts: BurstWatch
  readonly #onBurst: () => void
  #rest: ByteAccessCounter | undefined
  #counted = 0
  /** A key that is about to cross must not wait for others. */
  #limit = capacity

  constructor(maxKeys: number, hasher: KeyHasher, bursts: BurstWatch, onBurst: () => void) {
    this.#maxKeys = maxKeys
    this.#hasher = hasher
    this.#tally = tallyOf(hasher)
    this.#batch = this.#tally?.batch
    this.#bursts = bursts
    this.#onBurst = onBurst
  }

  /** Accesses not yet handed over by `drain`. */
  get count(): number {
    return this.#counted + (this.#batch?.size ?? 0) + (this.#tally?.heldCount ?? 0)
  }

  /** Notes one access of a key; `-1` for a read, otherwise the bytes written. */
  note(bytes: Uint8Array, start: number, end: number, written: number): void {
    if (this.#batch?.note(bytes, start, end, written) !== true) this.#noteElsewhere(bytes, start, end, written)
  }

  /** Makes a key the current one; returns its hash. */
  take(bytes: Uint8Array, start: number, end: number): number {
    return this.#hasher.hash(bytes, start, end)
  }

  /** Like `note`, for the current key. */
  noteTaken(bytes: Uint8Array, start: number, end: number, written: number, hash: number): void {
    if (this.#batch?.note(bytes, start, end, written) === true) this.#batch.setHashes(hash, this.#hasher.check)
    else this.#noteElsewhere(bytes, start, end, written)
  }

  /** The current bytes are about to be overwritten. */
  settle(): void {
    const batch = this.#batch
    if (batch === undefined) return
    batch.settle()
    if (batch.size >= this.#limit) this.flush()
  }

  /** Counts what was noted. */
  flush(): void {
    const tally = this.#tally
    if (tally === undefined || tally.batch.size === 0) return
    const { batch } = tally
    const { size } = batch
    batch.settle()
    tally.prepare()
    const limit = this.#bursts.burstCount
    for (let at = tally.addAll(0, limit); at < size; at = tally.addAll(at + 1, limit)) {
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

  /**
   * Ends the interval. Keys read fewer than `below` times may be passed in pieces, at the latest when the next one
   * ends.
   */
  drain(visitor: TallyVisitor, below: number): void {
    this.flush()
    this.#tally?.drain(visitor, below)
    if (this.#rest === undefined || this.#rest.keyCount === 0) return
    const rest = this.#rest.swap()
    if (rest === undefined) return
    const onKey = (key: Uint8Array, count: number, writes: number, byteCount: number) =>
      void visitor.onKey(key, 0, key.length, this.#hasher.hash(key, 0, key.length), count, writes, byteCount)
    while (rest.take(4096, onKey));
  }

  /** Starts a new interval. */
  restart(): void {
    this.#counted = 0
    this.#setLimit()
  }

  #setLimit(): void {
    this.#limit = Math.max(smallest, Math.min(capacity, this.#bursts.leftCount - this.#counted))
  }

  #noteElsewhere(bytes: Uint8Array, start: number, end: number, written: number): void {
    const batch = this.#batch
    batch?.begin(bytes, start)
    if (batch?.note(bytes, start, end, written) === true) return
    this.flush()
    batch?.begin(bytes, start)
    // What it does not take now is larger than the room it has.
    if (batch?.note(bytes, start, end, written) !== true) this.#add(bytes, start, end, 1, written)
  }

  #add(bytes: Uint8Array, start: number, end: number, count: number, written: number): void {
    this.#counted += count
    const hash = this.#hasher.hash(bytes, start, end)
    const { check } = this.#hasher
    const isWrite = written >= 0
    const [writes, byteCount] = isWrite ? [count, written] : [0, 0]
    const sum = this.#tally?.add(bytes, start, end, hash, check, count, writes, byteCount) ?? 0
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

function tallyOf({ seed }: KeyHasher): KeyTally | undefined {
  try {
    return new KeyTally(seed)
  } catch {
    return undefined
  }
}
