import type { UpstreamLostError } from '../errors.ts'
import { integerIn, isWord } from '../requests/words.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import { joinCursor } from './scan-cursor.ts'

/** What a SCAN over a cluster's nodes needs. */
export interface ClusterScanOptions {
  /** The index of the node that the cursor is on. */
  readonly node: number
  readonly nodeCount: number
  /** Number of keys that one call asks for. */
  readonly count: number
  /** How much found data is held before the call ends with fewer keys. */
  readonly maxBytes: number
  /** Queries a node from its own cursor on; the reply goes to `target`. */
  readonly ask: (node: number, cursor: bigint, target: ReplyTarget) => void
  readonly onReply: (reply: Uint8Array) => void
  readonly onLost: (error: UpstreamLostError, wasSent: boolean) => void
}

/** SCAN's default count. */
const defaultCount = 10
/** The most keys to ask a node for at a time, whatever the client wants: the node serves others in between. */
const maxStepKeys = 10_000
const maxCount = 2n ** 63n - 1n
const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n\*(\d+)\r\n/

/**
 * One call of SCAN: if a node is exhausted and has returned fewer keys than requested, the next node is asked in the
 * same call, so that few keys on many nodes take no more calls than on one. Results are held until the call ends,
 * because its cursor comes first; a call for very many keys returns fewer, as SCAN may.
 */
export class ClusterScan implements ReplyTarget {
  readonly #options: ClusterScanOptions
  #node: number
  #pieces: Buffer[] = []
  readonly #items: Buffer[] = []
  #itemCount = 0
  #heldBytes = 0

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
    const { nodeCount, count, maxBytes, ask, onReply } = this.#options
    const match = head.exec(reply.toString('latin1', 0, Math.min(reply.length, 96)))
    if (match === null) {
      onReply(reply)
      return
    }
    this.#items.push(reply.subarray(match[0].length))
    this.#itemCount += Number(match[2])
    this.#heldBytes += reply.length
    const cursor = BigInt(match[1]!)
    const wantsMore = this.#itemCount < count && this.#heldBytes < maxBytes
    if (wantsMore && cursor === 0n && this.#node + 1 < nodeCount) {
      this.#node++
      ask(this.#node, 0n, this)
      return
    }
    if (wantsMore && cursor !== 0n && count > maxStepKeys) {
      ask(this.#node, cursor, this)
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

/** The number of keys that SCAN asks for, and the options for one step on one node. */
export function scanSteps(options: readonly Uint8Array[]): {
  readonly count: number
  readonly stepOptions: readonly Uint8Array[]
} {
  const index = options.findIndex((option) => isWord(option, 'count'))
  const word = options[index + 1]
  const count = (index < 0 || word === undefined ? undefined : countIn(word)) ?? defaultCount
  if (count <= maxStepKeys) return { count, stepOptions: options }
  return { count, stepOptions: options.with(index + 1, Buffer.from(String(maxStepKeys))) }
}

/** Like `integerIn`, for everything that Redis accepts. */
function countIn(word: Uint8Array): number | undefined {
  const text = Buffer.from(word).toString('latin1')
  return /^[1-9]\d{18}$/.test(text) && BigInt(text) <= maxCount ? Number(text) : integerIn(word)
}
