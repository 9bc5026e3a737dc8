import type { UpstreamLostError } from '../errors.ts'
import { integerIn, isWord } from '../requests/words.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { joinCursor } from './scan-cursor.ts'

/** What one SCAN over a cluster's nodes needs. */
export interface ClusterScanOptions {
  /** The node that the cursor is on, by its place. */
  readonly node: number
  readonly nodeCount: number
  /** Keys that one call is asked for. */
  readonly count: number
  /** Asks a node from a cursor of its own on; its reply goes to `target`. */
  readonly ask: (node: number, cursor: bigint, target: ReplyTarget) => void
  readonly onReply: (reply: Uint8Array) => void
  readonly onLost: (error: UpstreamLostError, wasSent: boolean) => void
}

/** Where SCAN says nothing of it. */
const defaultCount = 10
const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n\*(\d+)\r\n/

/**
 * One call of SCAN: where a node has no more and has given fewer keys than were asked for, the next one is asked in the
 * same call, so that few keys on many nodes take no more calls than on one.
 */
export class ClusterScan implements ReplyTarget {
  readonly #options: ClusterScanOptions
  #node: number
  #pieces: Buffer[] = []
  readonly #items: Buffer[] = []
  #itemCount = 0

  constructor(options: ClusterScanOptions) {
    this.#options = options
    this.#node = options.node
  }

  start(cursor: bigint): void {
    this.#options.ask(this.#node, cursor, this)
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (!isLast) return
    const reply = Buffer.concat(this.#pieces)
    this.#pieces = []
    const { nodeCount, count, ask, onReply } = this.#options
    const match = head.exec(reply.toString('latin1', 0, Math.min(reply.length, 96)))
    if (match === null) {
      onReply(reply)
      return
    }
    this.#items.push(reply.subarray(match[0].length))
    this.#itemCount += Number(match[2])
    const cursor = BigInt(match[1]!)
    if (cursor === 0n && this.#itemCount < count && this.#node + 1 < nodeCount) {
      this.#node++
      ask(this.#node, 0n, this)
      return
    }
    const joined = String(joinCursor(this.#node, cursor, nodeCount))
    const beginning = Buffer.from(`*2\r\n$${joined.length}\r\n${joined}\r\n*${this.#itemCount}\r\n`)
    onReply(Buffer.concat([beginning, ...this.#items]))
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    this.#options.onLost(error, wasSent)
  }
}

/** How many keys SCAN is asked for. */
export function scanCount(options: readonly Uint8Array[]): number {
  const index = options.findIndex((option) => isWord(option, 'count'))
  const count = options[index + 1]
  return (index < 0 || count === undefined ? undefined : integerIn(count)) ?? defaultCount
}
