/**
 * Accesses that are noted and not counted yet, of keys in one piece of bytes: where the keys stand, and their two hashes
 * once `KeyHasher` has made them. Noting is a write to the next place of three arrays; all that waits for memory comes
 * later, for the whole batch at once. The bytes must stay until then.
 */
export class KeyBatch {
  /** What the offsets point into. */
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

  /** Begins anew, with keys in other bytes. */
  restart(bytes: Uint8Array = nothing): void {
    this.bytes = bytes
    this.size = 0
    this.hashed = 0
  }
}

const nothing = new Uint8Array(0)
const batchKeys = 64
const maxOffset = 2 ** 31 - 1
