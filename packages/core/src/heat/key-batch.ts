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
 * Accesses that are noted and not counted yet: where their keys stand, and their two hashes once they are made. Noting is
 * a write to the next place of an array; all that waits for memory comes later, for the whole batch at once.
 *
 * Keys are noted where they stand in what came off the wire, the *source*, and it must stay until `settle`: that copies
 * them, all of a source in one piece with what stands between them. One copy of many keys costs less than reading each
 * byte by byte, which is the only way to read from memory that is another's at every event.
 */
export class KeyBatch {
  /** What the offsets of settled keys point into. */
  readonly bytes: Uint8Array
  /** How many are noted. */
  size = 0
  /** Keys before this one have their hashes. */
  #hashed = 0
  /** Where each key stands in `bytes`: its start, and its length from `lengthBit` on. */
  readonly #places: Int32Array
  /** Bytes that an access wrote; -1 for a read. */
  readonly written: Int32Array
  #hasWrites = false
  readonly hashes: Int32Array
  readonly checks: Int32Array
  readonly #kernel: TallyKernel
  readonly #seed: number
  #source: Uint8Array = nothing
  /** Goes on an offset of the source to make it one of `bytes`. */
  #shift = 0
  /** True where the source is copied as it is: of a small one a view of a part would cost more. */
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

  /** Notes an access of the key in `source` from `start` to `end`; false where the source is another or has no room. */
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

  /** Gives the key that was noted last its hashes. */
  setHashes(hash: number, check: number): void {
    const at = this.size - 1
    if (this.#hashed !== at) return
    this.hashes[at] = hash
    this.checks[at] = check
    this.#hashed = at + 1
  }

  /** Goes on with keys of a source, the next of which begins at `start`. */
  begin(source: Uint8Array, start: number): void {
    this.settle()
    this.#source = source
    this.#first = this.size
    this.#isWhole = source.length <= maxWholeBytes && this.#end + source.length <= roomBytes
    this.#shift = this.#isWhole ? this.#end : this.#end - start
  }

  /** The source is about to change: its keys are copied. */
  settle(): void {
    const source = this.#source
    this.#source = nothing
    if (source === nothing || this.#first === this.size) return
    const shift = this.#shift
    const from = this.startOf(this.#first)
    if (this.#isWhole) this.bytes.set(source, shift)
    else this.bytes.set(source.subarray(from - shift, this.#end - shift), from)
  }

  /** Makes the hashes that keys of a settled batch do not have yet. */
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

  /** Forgets all. */
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
