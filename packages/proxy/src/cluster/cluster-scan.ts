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
  /** So much is held of what was found before the call ends with fewer. */
  readonly maxBytes: number
  /** Asks a node from a cursor of its own on; its reply goes to `target`. */
  readonly ask: (node: number, cursor: bigint, target: ReplyTarget) => void
  readonly onReply: (reply: Uint8Array) => void
  readonly onLost: (error: UpstreamLostError, wasSent: boolean) => void
}

/** Where SCAN says nothing of it. */
const defaultCount = 10
/** So many keys a node is asked for at a time, however many the client wants: the node works for others in between. */
const maxStepKeys = 10_000
const maxCount = 2n ** 63n - 1n
const head = /^\*2\r\n\$\d+\r\n(\d+)\r\n\*(\d+)\r\n/

/**
 * One call of SCAN: where a node has no more and has given fewer keys than were asked for, the next one is asked in the
 * same call, so that few keys on many nodes take no more calls than on one. What was found is held until the call ends,
 * for its cursor comes first; a call for very many ends with fewer, as SCAN may.
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

/** How many keys SCAN is asked for, and the options that one node is asked with at a time. */
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

/** As `integerIn`, of all that Redis takes. */
function countIn(word: Uint8Array): number | undefined {
  const text = Buffer.from(word).toString('latin1')
  return /^[1-9]\d{18}$/.test(text) && BigInt(text) <= maxCount ? Number(text) : integerIn(word)
}
