/** Receives the counts of an interval. */
export interface TallyVisitor {
  /**
   * A key: its bytes from `start` to `end` (valid during the call), its hash and counts. Returns whether to watch it.
   */
  onKey(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    count: number,
    writes: number,
    byteCount: number,
  ): boolean
  /** Reads of some keys: report entries in `bytes` from `start` to `end`, valid during the call. */
  onPiece(bytes: Uint8Array, start: number, end: number, keys: number, count: number): void
}
