import { ByteAccessCounter, hashBytes, KeyTally, type TallyVisitor } from '@firebreak/core'
import type { BurstWatch } from './access-buffer.ts'

const capacity = 64

/**
 * Accesses counted by the bytes of their keys, where they stand in what came off the wire: no string is made. Nearly all
 * are counted in a `KeyTally`; what has no place there, in a `ByteAccessCounter`, exactly too.
 *
 * One hash serves the counter and the table of hot keys: `take` a key, look with the hash at what it is, and `note` it.
 * Noted accesses are looked up together (`flush`, before the bytes go away), so that the processor waits for the
 * memory of all of them at once and not for each.
 */
export class ByteAccesses {
  readonly #tally: KeyTally
  readonly #maxKeys: number
  readonly #seed: number
  readonly #bursts: BurstWatch
  readonly #onBurst: () => void
  #rest: ByteAccessCounter | undefined
  #bytes: Uint8Array = new Uint8Array(0)
  readonly #hashes = new Int32Array(capacity)
  readonly #checks = new Int32Array(capacity)
  readonly #starts = new Float64Array(capacity)
  readonly #ends = new Float64Array(capacity)
  readonly #writes = new Uint8Array(capacity)
  readonly #byteCounts = new Float64Array(capacity)
  #noted = 0
  #counted = 0

  constructor(maxKeys: number, seed: number, bursts: BurstWatch, onBurst: () => void) {
    this.#maxKeys = maxKeys
    this.#seed = seed
    this.#bursts = bursts
    this.#onBurst = onBurst
    this.#tally = new KeyTally(seed)
  }

  /** Accesses since the last `drain`. */
  get count(): number {
    return this.#counted + this.#noted
  }

  /** Makes a key the one at hand; gives its hash. */
  take(bytes: Uint8Array, start: number, end: number): number {
    return this.#tally.take(bytes, start, end)
  }

  /** Notes one access of the key at hand; the bytes must stay until `flush`. */
  note(bytes: Uint8Array, start: number, end: number, hash: number, isWrite: boolean, byteCount: number): void {
    if (bytes !== this.#bytes || this.#noted === capacity) {
      const { check } = this.#tally
      this.flush()
      this.#tally.check = check
      this.#bytes = bytes
    }
    const at = this.#noted++
    this.#hashes[at] = hash
    this.#checks[at] = this.#tally.check
    this.#starts[at] = start
    this.#ends[at] = end
    this.#writes[at] = isWrite ? 1 : 0
    this.#byteCounts[at] = byteCount
  }

  /** Counts what was noted. */
  flush(): void {
    const noted = this.#noted
    if (noted === 0) return
    this.#noted = 0
    this.#counted += noted
    this.#tally.preload(this.#hashes, noted)
    for (let at = 0; at < noted; at++) {
      this.#add(
        this.#bytes,
        this.#starts[at]!,
        this.#ends[at]!,
        this.#hashes[at]!,
        this.#checks[at]!,
        1,
        this.#writes[at]!,
        this.#byteCounts[at]!,
      )
    }
  }

  /** Counts many reads of one key at once. */
  addReads(key: Uint8Array, count: number): void {
    this.#counted += count
    const hash = this.#tally.take(key, 0, key.length)
    this.#add(key, 0, key.length, hash, this.#tally.check, count, 0, 0)
  }

  /** Ends the interval. */
  drain(visit: TallyVisitor): void {
    this.flush()
    this.#counted = 0
    this.#tally.drain(visit)
    if (this.#rest === undefined || this.#rest.keyCount === 0) return
    const rest = this.#rest.swap()
    if (rest === undefined) return
    const onKey = (key: Uint8Array, count: number, writes: number, byteCount: number) =>
      visit(key, 0, key.length, hashBytes(key, 0, key.length, this.#seed), count, writes, byteCount)
    while (rest.take(4096, onKey));
  }

  #add(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    check: number,
    count: number,
    writes: number,
    byteCount: number,
  ): void {
    const sum = this.#tally.add(bytes, start, end, hash, check, count, writes, byteCount)
    if (sum === 0) this.#addToRest(bytes, start, end, hash, count, writes, byteCount)
    else if (sum >= this.#bursts.burstCount && this.#bursts.isBurst(hash, sum - count, sum)) this.#onBurst()
  }

  #addToRest(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    count: number,
    writes: number,
    byteCount: number,
  ): void {
    const rest = (this.#rest ??= new ByteAccessCounter({ maxKeys: this.#maxKeys, hashSeed: this.#seed }))
    for (let nth = 0; nth < count; nth++) {
      const sum = rest.add(bytes, start, end, hash, nth < writes, nth === 0 ? byteCount : 0)
      if (sum >= this.#bursts.burstCount && this.#bursts.isBurst(hash, sum - 1, sum)) this.#onBurst()
    }
  }
}
