import type { UpstreamLostError } from '../errors.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { ReplyReceiver, UpstreamConnection } from '../upstream/upstream-connection.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'

/** Who gets the joined array, in pieces. */
export interface StreamSink {
  onPiece(bytes: Uint8Array, start: number, end: number, isLast: boolean): void
  onLost(error: UpstreamLostError): void
  /** True while who gets it leaves more unread than it may. */
  isBehind(): boolean
  whenCaughtUp(callback: () => void): void
}

interface Part {
  readonly node: UpstreamNode
  connection: UpstreamConnection
  /** The first line of the reply, until it is whole. */
  line: Buffer
  count: number
  /** What came behind the first line before it was this part's turn. */
  waiting: Buffer[]
  isWhole: boolean
}

/**
 * One array out of the arrays of all nodes (KEYS), streamed: as soon as every node has said how many items it has, the
 * sum goes out, then one node's items after the other's. A node whose turn it is not is not read, nor is any while the
 * client is slow, so nothing but the kernel's buffers fills up. Each has a connection of its own for it.
 */
export class KeysStream {
  readonly #sink: StreamSink
  readonly #parts: Part[]
  #turn = 0
  #isDone = false

  constructor(nodes: readonly UpstreamNode[], state: ConnectionState, request: Uint8Array, sink: StreamSink) {
    this.#sink = sink
    this.#parts = nodes.map((node) => {
      const part: Part = {
        node,
        connection: undefined as unknown as UpstreamConnection,
        line: Buffer.alloc(0),
        count: -1,
        waiting: [],
        isWhole: false,
      }
      const receiver: ReplyReceiver = {
        onReply: (bytes, start, end, isLast) => this.#onReply(part, bytes, start, end, isLast),
        onLost: (error) => this.#fail(error),
      }
      part.connection = node.own(state, receiver)
      part.connection.outlet.put(request, 0, request.length)
      return part
    })
  }

  /** Ends it early: the client is gone. */
  cancel(): void {
    this.#isDone = true
    for (const part of this.#parts) if (!part.isWhole) part.node.dispose(part.connection)
  }

  #onReply(part: Part, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isDone) return
    let from = start
    if (part.count < 0) {
      const lineEnd = bytes.subarray(start, end).indexOf(0x0a)
      from = lineEnd < 0 ? end : start + lineEnd + 1
      part.line = Buffer.concat([part.line, bytes.subarray(start, from)])
      if (lineEnd >= 0 && !this.#head(part)) return
    }
    part.isWhole = isLast
    const isTurn = this.#parts[this.#turn] === part && this.#isCounted
    if (!isTurn) {
      part.waiting.push(Buffer.from(bytes.subarray(from, end)))
      if (isLast) part.node.giveBack(part.connection)
      else part.connection.pause()
      return
    }
    if (isLast) part.node.giveBack(part.connection)
    const isEnd = isLast && this.#turn === this.#parts.length - 1
    if (from < end || isEnd) this.#sink.onPiece(bytes, from, end, isEnd)
    if (isLast && !isEnd) this.#nextTurn()
    else if (!isLast && this.#sink.isBehind()) {
      part.connection.pause()
      this.#sink.whenCaughtUp(() => {
        if (!part.isWhole) part.connection.resume()
      })
    }
  }

  get #isCounted(): boolean {
    return this.#hasStarted
  }

  #hasStarted = false

  /** Reads how many items a node has; false where it answered with an error. */
  #head(part: Part): boolean {
    if (part.line[0] !== 0x2a) {
      this.#isDone = true
      this.cancel()
      this.#sink.onPiece(part.line, 0, part.line.length, true)
      return false
    }
    part.count = Number(part.line.toString('latin1', 1, part.line.length - 2))
    if (this.#parts.every(({ count }) => count >= 0)) {
      // After this piece is put where it belongs.
      queueMicrotask(() => this.#start())
    }
    return true
  }

  #start(): void {
    if (this.#isDone) return
    this.#hasStarted = true
    const total = this.#parts.reduce((sum, { count }) => sum + count, 0)
    const head = Buffer.from(`*${total}\r\n`)
    this.#turn = -1
    this.#sink.onPiece(head, 0, head.length, false)
    this.#nextTurn()
  }

  #nextTurn(): void {
    for (;;) {
      this.#turn++
      const part = this.#parts[this.#turn]!
      const isLastPart = this.#turn === this.#parts.length - 1
      const pieces = part.waiting
      part.waiting = []
      for (const piece of pieces) this.#sink.onPiece(piece, 0, piece.length, false)
      if (!part.isWhole) {
        part.connection.resume()
        return
      }
      if (isLastPart) {
        this.#sink.onPiece(nothing, 0, 0, true)
        return
      }
    }
  }

  #fail(error: UpstreamLostError): void {
    if (this.#isDone) return
    this.cancel()
    this.#sink.onLost(error)
  }
}

const nothing = Buffer.alloc(0)
