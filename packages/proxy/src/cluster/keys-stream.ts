import type { Runtime } from '@firebreak/core'
import type { UpstreamLostError } from '../errors.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { ReplyReceiver, UpstreamConnection } from '../upstream/upstream-connection.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { UpstreamTopology } from '../upstream/upstream-topology.ts'
import { redirectOf } from './redirect.ts'

/** What all nodes are asked. */
export interface KeysStreamOptions {
  readonly runtime: Runtime
  readonly topology: UpstreamTopology
  readonly state: ConnectionState
  readonly request: Uint8Array
  /** How long to keep retrying a lost node, or its replacement. */
  readonly retryForMs: number
}

const nothing = Buffer.alloc(0)
const laterMs = 20

/** Receives the joined array, in pieces. */
export interface KeysSink {
  onPiece(bytes: Uint8Array, start: number, end: number, isLast: boolean): void
  onLost(error: UpstreamLostError): void
  /** True while the receiver has more unread output than allowed. */
  isBehind(): boolean
  whenCaughtUp(callback: () => void): void
}

interface Part {
  /** Its owner is asked. */
  readonly slot: number
  node: UpstreamNode
  connection: UpstreamConnection
  /** The first line of the reply, until it is complete. */
  line: Buffer
  count: number
  /** What arrived after the first line before it was this part's turn. */
  waiting: Buffer[]
  isWhole: boolean
}

/**
 * Joins the arrays of all nodes (KEYS) into one, streamed: as soon as every node has announced its number of items, the
 * sum is sent, followed by one node's items after another. A node whose turn it is not is not read, nor is any while
 * the client is slow, so that only the kernel's buffers fill up. Each node gets a dedicated connection for this. Until
 * the sum has been sent, a node that is lost or not yet ready is asked again.
 */
export class KeysStream {
  readonly #options: KeysStreamOptions
  readonly #sink: KeysSink
  readonly #deadlineMs: number
  readonly #parts: Part[]
  #turn = 0
  /** The sum has been sent. */
  #hasStarted = false
  #isDone = false

  constructor(options: KeysStreamOptions, sink: KeysSink) {
    this.#options = options
    this.#sink = sink
    this.#deadlineMs = options.runtime.clock.now() + options.retryForMs
    this.#parts = options.topology.homeSlots.map((slot) => ({
      slot,
      node: options.topology.nodeOf(slot),
      connection: undefined as unknown as UpstreamConnection,
      line: nothing,
      count: -1,
      waiting: [],
      isWhole: false,
    }))
    for (const part of this.#parts) this.#ask(part)
  }

  #ask(part: Part): void {
    const { topology, state, request } = this.#options
    const receiver: ReplyReceiver = {
      onReply: (bytes, start, end, isLast) => this.#onReply(part, bytes, start, end, isLast),
      onLost: (error) => this.#lost(part, error),
    }
    part.node = topology.nodeOf(part.slot)
    part.connection = part.node.own(state, receiver)
    part.connection.outlet.put(request, 0, request.length)
  }

  get #mayAskAgain(): boolean {
    return !this.#hasStarted && this.#options.runtime.clock.now() < this.#deadlineMs
  }

  #askAgain(part: Part): void {
    part.node.dispose(part.connection)
    part.line = nothing
    part.count = -1
    part.waiting = []
    const { topology, runtime } = this.#options
    void topology.refresh().then(() => {
      runtime.timers.setTimeout(() => {
        if (!this.#isDone && !topology.nodeOf(part.slot).isClosed) this.#ask(part)
      }, laterMs)
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
    const isTurn = this.#parts[this.#turn] === part && this.#hasStarted
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

  /** Reads how many items a node has; false if it answered with an error. */
  #head(part: Part): boolean {
    if (redirectOf(part.line)?.kind === 'later' && this.#mayAskAgain) {
      this.#askAgain(part)
      return false
    }
    if (part.line[0] !== 0x2a) {
      this.#isDone = true
      this.cancel()
      this.#sink.onPiece(part.line, 0, part.line.length, true)
      return false
    }
    part.count = Number(part.line.toString('latin1', 1, part.line.length - 2))
    if (this.#parts.every(({ count }) => count >= 0)) {
      // After this piece has been put in its place.
      queueMicrotask(() => this.#start())
    }
    return true
  }

  #start(): void {
    if (this.#isDone || this.#parts.some(({ count }) => count < 0)) return
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

  #lost(part: Part, error: UpstreamLostError): void {
    if (this.#isDone) return
    if (error.refusal === undefined && this.#mayAskAgain) {
      this.#askAgain(part)
      return
    }
    this.cancel()
    this.#sink.onLost(error)
  }
}
