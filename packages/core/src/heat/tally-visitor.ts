/** Gets what was counted in an interval. */
export interface TallyVisitor {
  /** A key, its bytes from `start` to `end` until it returns, its hash and counts. Gives whether it is to be watched. */
  onKey(
    bytes: Uint8Array,
    start: number,
    end: number,
    hash: number,
    count: number,
    writes: number,
    byteCount: number,
  ): boolean
  /** Reads of some keys: entries of a report in `bytes` from `start` to `end` until it returns. */
  onPiece(bytes: Uint8Array, start: number, end: number, keys: number, count: number): void
}
