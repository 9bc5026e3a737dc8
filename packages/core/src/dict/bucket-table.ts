const segmentShift = 16
const segmentBuckets = 1 << segmentShift
const segmentMask = segmentBuckets - 1

/** Read in place of a segment that has never been written to. */
const emptySegment = new Int32Array(segmentBuckets)

/**
 * The buckets of a dict: heads of chains, 0 for an empty one, n + 1 for entry n.
 *
 * A table is made of segments of 65,536 buckets, allocated on the first write to them. A single `Int32Array` would be
 * simpler, but the runtime zeroes it when it is created: 134 MB of zeros for the table of 20 million keys is a pause of
 * 14 ms. A segment takes some ten microseconds.
 */
export class BucketTable {
  /** Number of buckets. */
  readonly length: number
  readonly #segments: Int32Array[]
  readonly #perSegment: number

  constructor(length: number) {
    this.length = length
    this.#perSegment = Math.min(length, segmentBuckets)
    this.#segments = new Array<Int32Array>(Math.ceil(length / segmentBuckets)).fill(emptySegment)
  }

  get(bucket: number): number {
    return this.#segments[bucket >>> segmentShift]![bucket & segmentMask]!
  }

  set(bucket: number, entry: number): void {
    const nth = bucket >>> segmentShift
    const segment = this.#segments[nth]!
    if (segment === emptySegment) this.#open(nth)[bucket & segmentMask] = entry
    else segment[bucket & segmentMask] = entry
  }

  /** Frees the memory of the buckets from `first` up to `end`, where that covers a whole segment. */
  releaseBetween(first: number, end: number): void {
    for (let nth = first >>> segmentShift; nth < end >>> segmentShift; nth++) this.#segments[nth] = emptySegment
  }

  #open(nth: number): Int32Array {
    const segment = new Int32Array(this.#perSegment)
    this.#segments[nth] = segment
    return segment
  }
}
