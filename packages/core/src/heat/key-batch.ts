/**
 * Accesses that are noted and not counted yet: where their keys stand, and their two hashes once `KeyHasher` has made
 * them. Noting is a write to the next place of three arrays; all that waits for memory comes later, for the whole batch at
 * once.
 *
 * Keys are noted where they stand in what came off the wire, the *source*, and it must stay until `settle`: that copies
 * them, all of a source in one piece with what stands between them. One copy of many keys costs less than reading each
 * byte by byte, which is the only way to read from memory that is another's at every event.
 */
export class KeyBatch {
  /** What the offsets of settled keys point into. */
  readonly bytes = new Uint8Array(roomBytes + slackBytes)
  readonly view = new DataView(this.bytes.buffer)
  /** How many are noted. */
  size = 0
  /** Keys before this one have their hashes. */
  hashed = 0
  readonly starts = new Int32Array(batchKeys)
  readonly ends = new Int32Array(batchKeys)
  /** Bytes that an access wrote; -1 for a read. */
  readonly written = new Float64Array(batchKeys)
  readonly hashes = new Int32Array(batchKeys)
  readonly checks = new Int32Array(batchKeys)
  #source: Uint8Array = nothing
  /** Goes on an offset of the source to make it one of `bytes`. */
  #shift = 0
  /** True where the source is copied as it is: of a small one a view of a part would cost more. */
  #isWhole = false
  /** The first key of the source. */
  #first = 0
  /** The end of the last key. */
  #end = 0

  /** Notes an access of the key in `source` from `start` to `end`; false where the source, or room, is another. */
  note(source: Uint8Array, start: number, end: number, written: number): boolean {
    const at = this.size
    const from = start + this.#shift
    const to = end + this.#shift
    if (source !== this.#source || at === batchKeys || to > roomBytes || from < this.#end) return false
    this.starts[at] = from
    this.ends[at] = to
    this.written[at] = written
    this.size = at + 1
    this.#end = to
    return true
  }

  /** Gives the key that was noted last its hashes. */
  setHashes(hash: number, check: number): void {
    const at = this.size - 1
    if (this.hashed !== at) return
    this.hashes[at] = hash
    this.checks[at] = check
    this.hashed = at + 1
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
    const from = this.starts[this.#first]!
    if (this.#isWhole) this.bytes.set(source, shift)
    else this.bytes.set(source.subarray(from - shift, this.#end - shift), from)
  }

  /** Forgets all. */
  clear(): void {
    this.#source = nothing
    this.#end = 0
    this.size = 0
    this.hashed = 0
  }
}

const nothing = new Uint8Array(0)
const batchKeys = 256
const roomBytes = 16 * 1024
const maxWholeBytes = 4096
/** Keys are read eight bytes at a time, the last ones beyond their end. */
const slackBytes = 8
