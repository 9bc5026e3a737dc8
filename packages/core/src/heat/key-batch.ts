import { highWord } from '../dict/hash-bytes.ts'
import {
  batchKeys,
  checksAt,
  hashesAt,
  lengthBit,
  placesAt,
  roomBytes,
  startMask,
  type TallyKernel,
  writtenAt,
} from './tally-kernel.ts'

/**
 * Accesses that have been recorded but not counted yet: where their keys are, and their two hashes once computed.
 * Recording is a write to the next place of an array; everything that waits for memory comes later, for the whole batch
 * at once.
 *
 * Keys are recorded as positions in the bytes off the wire, the *source*, which must stay unchanged until `settle`.
 * That copies all keys of a source in one piece, including what is between them. One copy of many keys costs less than
 * reading each one byte by byte, which is the only way to read at every event from memory that belongs to somebody
 * else.
 */
export class KeyBatch {
  /** The bytes that the offsets of settled keys point into. */
  readonly bytes: Uint8Array
  /** Number of recorded accesses. */
  size = 0
  /** Keys before this one have been hashed. */
  #hashed = 0
  /** The position of each key in `bytes`: its start, and its length from `lengthBit` up. */
  readonly #places: Int32Array
  /** Bytes that an access wrote; -1 for a read. */
  readonly written: Int32Array
  #hasWrites = false
  readonly hashes: Int32Array
  readonly checks: Int32Array
  readonly #kernel: TallyKernel
  readonly #seed: number
  #source: Uint8Array = nothing
  /** Added to an offset in the source to get one in `bytes`. */
  #shift = 0
  /** True if the source is copied whole: for a small one, a view of a part would cost more. */
  #isWhole = false
  /** The first key of the source. */
  #first = 0
  /** The end of the last key. */
  #end = 0

  constructor(kernel: TallyKernel, seed: number) {
    const { buffer } = kernel
    this.#kernel = kernel
    this.#seed = seed
    this.bytes = new Uint8Array(buffer, 0, roomBytes)
    this.#places = new Int32Array(buffer, placesAt, batchKeys)
    this.written = new Int32Array(buffer, writtenAt, batchKeys).fill(-1)
    this.hashes = new Int32Array(buffer, hashesAt, batchKeys)
    this.checks = new Int32Array(buffer, checksAt, batchKeys)
  }

  /**
   * Records an access to the key in `source` from `start` to `end`; false if this is a different source, or it does not
   * fit.
   */
  note(source: Uint8Array, start: number, end: number, written: number): boolean {
    const at = this.size
    const from = start + this.#shift
    const to = end + this.#shift
    if (source !== this.#source || at === batchKeys || to > roomBytes || from < this.#end) return false
    if (to - from > maxLength) return false
    this.#places[at] = from | ((to - from) << lengthBit)
    if (written >= 0) {
      this.written[at] = written
      this.#hasWrites = true
    }
    this.size = at + 1
    this.#end = to
    return true
  }

  /** Sets the hashes of the most recently recorded key. */
  setHashes(hash: number, check: number): void {
    const at = this.size - 1
    if (this.#hashed !== at) return
    this.hashes[at] = hash
    this.checks[at] = check
    this.#hashed = at + 1
  }

  /** Continues with the keys of a source, the next of which begins at `start`. */
  begin(source: Uint8Array, start: number): void {
    this.settle()
    this.#source = source
    this.#first = this.size
    this.#isWhole = source.length <= maxWholeBytes && this.#end + source.length <= roomBytes
    this.#shift = this.#isWhole ? this.#end : this.#end - start
  }

  /** Copies the keys of the source, which is about to change. */
  settle(): void {
    const source = this.#source
    this.#source = nothing
    if (source === nothing || this.#first === this.size) return
    const shift = this.#shift
    const from = this.startOf(this.#first)
    if (this.#isWhole) this.bytes.set(source, shift)
    else this.bytes.set(source.subarray(from - shift, this.#end - shift), from)
  }

  /** Computes the missing hashes of a settled batch's keys. */
  hash(): void {
    this.#kernel.loops.hashAll(this.#hashed, this.size, this.#seed | 0, highWord(this.#seed))
    this.#hashed = this.size
  }

  startOf(nth: number): number {
    return this.#places[nth]! & startMask
  }

  endOf(nth: number): number {
    const place = this.#places[nth]!
    return (place & startMask) + (place >>> lengthBit)
  }

  /** Empties the batch. */
  clear(): void {
    if (this.#hasWrites) this.written.fill(-1, 0, this.size)
    this.#hasWrites = false
    this.#source = nothing
    this.#end = 0
    this.size = 0
    this.#hashed = 0
  }
}

const maxLength = 2 ** (32 - lengthBit) - 1
const nothing = new Uint8Array(0)
const maxWholeBytes = 4096
