/**
 * Accesses that are noted and not counted yet: where their keys stand, and their two hashes once `KeyHasher` has made
 * them. Noting is a write to the next place of three arrays; all that waits for memory comes later, for the whole batch at
 * once.
 *
 * Keys stand in *runs*, one for each piece of bytes. All keys but those of the last run have their hashes, and the bytes of
 * all must stay until the batch is counted.
 */
export class KeyBatch {
  /** What the offsets of the last run point into. */
  bytes: Uint8Array = nothing
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
  readonly #runBytes: Uint8Array[] = new Array(batchKeys).fill(nothing)
  /** The first key of each run. */
  readonly #runFirsts = new Int32Array(batchKeys)
  #runCount = 0

  /** Notes an access of the key in `bytes` from `start` to `end`; false where this batch has no place for it. */
  note(bytes: Uint8Array, start: number, end: number, written: number): boolean {
    const at = this.size
    if (bytes !== this.bytes || at === batchKeys || end > maxOffset) return false
    this.starts[at] = start
    this.ends[at] = end
    this.written[at] = written
    this.size = at + 1
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

  /** Goes on with keys in other bytes; those so far must have their hashes, and there must be room. */
  beginRun(bytes: Uint8Array): void {
    // A run in which no key was noted is no run.
    if (this.#runCount > 0 && this.#runFirsts[this.#runCount - 1] === this.size) this.#runCount--
    this.bytes = bytes
    this.#runBytes[this.#runCount] = bytes
    this.#runFirsts[this.#runCount++] = this.size
  }

  /** What the offsets of a key point into. */
  bytesOf(nth: number): Uint8Array {
    let run = this.#runCount - 1
    while (this.#runFirsts[run]! > nth) run--
    return this.#runBytes[run]!
  }

  /** Forgets all, the bytes too. */
  clear(): void {
    for (let run = 0; run < this.#runCount; run++) this.#runBytes[run] = nothing
    this.#runCount = 0
    this.bytes = nothing
    this.size = 0
    this.hashed = 0
  }
}

const nothing = new Uint8Array(0)
const batchKeys = 128
const maxOffset = 2 ** 31 - 1
