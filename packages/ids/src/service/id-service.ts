import { InvalidOptionError } from '@firebreak/core'
import { IdsError } from '../errors.ts'
import type { SnowflakeNode } from '../node/snowflake-node.ts'
import type { SegmentIds } from '../segment/segment-ids.ts'

/** The default maximum of ids per request. */
export const maxIdsPerRequest = 10_000

/** What a service gives out: snowflake ids, segment ids, or both. */
export interface IdServiceOptions {
  readonly snowflake?: SnowflakeNode
  readonly segments?: SegmentIds
  /** Maximum number of ids per request. @default 10000 */
  readonly maxCount?: number
}

/** One or more ids, now or as soon as the database has answered. */
export type Given<T> = T | Promise<T>

/** Ids by kind and key, the same for HTTP and RESP. Answers from memory come without a promise. */
export class IdService {
  /** Set later by a service that must report its time to its peers before it has joined them. */
  snowflake: SnowflakeNode | undefined
  readonly segments: SegmentIds | undefined
  readonly maxCount: number
  /** Number of ids issued since the start. */
  given = 0

  constructor(options: IdServiceOptions) {
    this.snowflake = options.snowflake
    this.segments = options.segments
    this.maxCount = options.maxCount ?? maxIdsPerRequest
  }

  /** The next segment id of a tag. */
  segment(tag: string): Given<string> {
    const id = this.takeSegment(tag)
    if (id !== undefined) return id
    this.given++
    return this.#segments().next(tag)
  }

  segmentMany(tag: string, count: number): Promise<string[]> {
    this.given += this.#checkCount(count)
    return this.#segments().nextMany(tag, count)
  }

  /** The next snowflake id; the key is for the caller's own use, all keys share the worker's ids. */
  nextSnowflake(): string {
    const id = this.#node().next()
    this.given++
    return id
  }

  snowflakeMany(count: number): string[] {
    this.given += this.#checkCount(count)
    return this.#node().nextMany(count)
  }

  /** A segment id from memory; undefined if `segment` must be called, or would throw. */
  takeSegment(tag: string): string | undefined {
    const id = this.segments?.take(tag)
    if (id !== undefined) this.given++
    return id
  }

  /** A snowflake id; undefined if `nextSnowflake` would throw. */
  takeSnowflake(): string | undefined {
    try {
      return this.nextSnowflake()
    } catch {
      return undefined
    }
  }

  #checkCount(count: number): number {
    if (Number.isInteger(count) && count >= 1 && count <= this.maxCount) return count
    throw new InvalidOptionError('count', count, `a whole number from 1 to ${this.maxCount}`)
  }

  #segments(): SegmentIds {
    if (this.segments !== undefined) return this.segments
    throw new IdsError('FB_IDS_TAG_UNKNOWN', 'this service issues no segment ids; start it with a database')
  }

  #node(): SnowflakeNode {
    if (this.snowflake !== undefined) return this.snowflake
    throw new IdsError(
      'FB_IDS_WORKER_LOST',
      'this service issues no snowflake ids (yet); start it with a registry or a worker id',
    )
  }
}
