import type { CommandMark, ProxyCommand } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import type { ReplyTarget } from '../upstream/shared-lane.ts'
import type { UpstreamConnection } from '../upstream/upstream-connection.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { Line } from './line.ts'
import { confirmationKinds, messageKinds, Subscriptions, subscriptionReplyOf } from './subscriptions.ts'

/** The client that a connection is pinned to. */
export interface PinnedOwner {
  /** A piece of the reply for a slot. */
  onPinnedReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void
  /** A whole reply for a slot, which `complete` turns into the client's answer. */
  onPinnedPart(slot: number, reply: Buffer, complete: NonNullable<ReplyMark['complete']>): void
  /** Bytes that answer no request: a message, a push, everything on a pipe. */
  onPinnedPush(bytes: Uint8Array, start: number, end: number): void
  /** From now on bytes are passed through: replies are no longer matched to requests. */
  onPinnedPipe(): void
  /** The client's bytes on a pipe; true if the owner has sent them, or the part that may be sent. */
  guardPipe(pinned: PinnedLane, bytes: Uint8Array, start: number, end: number): boolean
  /** Nothing needs the connection any more. */
  onPinnedFree(): void
  onPinnedLost(error: UpstreamLostError): void
  /**
   * With a cluster: an error arrived. Returns what the client gets instead, or undefined if the request continues
   * elsewhere.
   */
  onPinnedError?(slot: number, reply: Buffer): Buffer | undefined
  /** True if the client uses RESP3, judging by the answers so far. */
  isResp3(): boolean
  /** True while the client has more unread output before the reply for a slot than allowed. */
  isBehind(slot: number): boolean
  whenCaughtUp(callback: () => void, slot: number): void
}

/** What the reply to a request means for the connection's state. */
export interface ReplyMark {
  readonly command: ProxyCommand
  /** For SUBSCRIBE and similar: how many channels it names. */
  readonly channels?: number
  /**
   * Even if it is refused, part of it may have been carried out: the client keeps this connection, whose state only the
   * server knows.
   */
  readonly staysIfRefused?: boolean
  /** Called with the reply unless it is an error or QUEUED. */
  readonly onDone?: () => void
  /** Turns the server's reply into the client's, now or later. */
  readonly complete?: (reply: Buffer, answer: (reply: Buffer) => void) => void
}

/** Which command was sent and when; undefined if it may wait for other clients, which says nothing about the server. */
export interface RequestTimes {
  readonly commandId: number
  readonly sentMs: number | undefined
}

interface Expected {
  readonly slot: number
  readonly mark: ReplyMark | undefined
  readonly times: RequestTimes | undefined
  /** Confirmations still to come; -1 before it is first in line. */
  left: number
}

const hidden = -1
/** After this many bytes, one reply or many messages, the reader's backlog is checked. */
const weighedBytes = 4096
/** How much may be queued for Redis before the client that sends it has to wait. */
const maxQueuedBytes = 1024 * 1024
const plus = 0x2b
const minus = 0x2d
const array = 0x2a
const push = 0x3e

/**
 * A client's dedicated connection to Redis, and the state that prevents it from being shared: a transaction, watched
 * keys, subscriptions, tracking. The state is learned from the replies, never guessed from the requests, so a refused
 * command leaves none. Once all of it has ended the connection is free again.
 */
export class PinnedLane {
  readonly node: UpstreamNode
  readonly connection: UpstreamConnection
  readonly #owner: PinnedOwner
  readonly #expected = new Line<Expected>()
  #isInTransaction = false
  #isWatching = false
  #isTracking = false
  readonly #subscriptions = new Subscriptions()
  /** Pinned until the client leaves: something has changed that cannot be undone. */
  stays = false
  /** Nobody else may use the connection after this client. */
  isTainted = false
  #isPipe = false
  /** It becomes a pipe once the expected replies have arrived. */
  #isPipeNext = false
  /** Its client no longer uses it: handling a reply may have ended it. */
  #isOver = false
  #pieces: Buffer[] | undefined
  /** Bytes received since the client's backlog was last checked. */
  #unweighedBytes = 0
  #onSettled: (() => void)[] = []
  /** A request went over it that was not kept. */
  hasStreamed = false
  /** The rest of a request is still to be sent: nobody else may use the connection, whatever has been answered. */
  isMidRequest = false
  /** A command of the open transaction was refused in a way that makes EXEC fail. */
  isSpoiled = false
  /** Its id on the server, once its client has asked for it. */
  serverId: number | undefined
  /** The sender of the requests, for the slow log. */
  asker: ReplyTarget | undefined
  /** Unanswered MULTI, EXEC and DISCARD, and whether the last of them opens a transaction. */
  #transactionMarks = 0
  #isLastMulti = false

  constructor(node: UpstreamNode, connection: UpstreamConnection, owner: PinnedOwner) {
    this.node = node
    this.connection = connection
    this.#owner = owner
  }

  get isPipe(): boolean {
    return this.#isPipe || this.#isPipeNext
  }

  get isSubscribed(): boolean {
    return this.#subscriptions.isAny
  }

  get isInTransaction(): boolean {
    return this.#isInTransaction
  }

  /** MULTI was sent and not ended: by the answers, or by the requests as long as answers are pending. */
  get hasSentMulti(): boolean {
    return this.#transactionMarks > 0 ? this.#isLastMulti : this.#isInTransaction
  }

  get inFlight(): number {
    return this.#expected.length
  }

  /** True while Redis has accepted too little of what was sent for more to follow. */
  get mustWait(): boolean {
    const { outlet, isClosed } = this.connection
    if (isClosed || outlet.queuedBytes <= maxQueuedBytes) return false
    outlet.flush()
    return outlet.queuedBytes > maxQueuedBytes
  }

  /** True when the connection is in its initial state and owes nothing. */
  get isFree(): boolean {
    return this.inFlight === 0 && !this.stays && !this.#isPipe && !this.#hasState && !this.isMidRequest
  }

  get #hasState(): boolean {
    return this.#isInTransaction || this.#isWatching || this.#isTracking || this.isSubscribed
  }

  /** Sends a request whose reply goes to `slot`. */
  send(bytes: Uint8Array, start: number, end: number, slot: number, mark?: ReplyMark, times?: RequestTimes): void {
    this.#expect({ slot, mark, times, left: -1 })
    this.connection.outlet.put(bytes, start, end)
  }

  /**
   * Sends a request whose reply is discarded; with it, the MULTI of a transaction that the client thinks is already
   * open.
   */
  sendHidden(bytes: Uint8Array, mark?: ReplyMark): void {
    this.#expect({ slot: hidden, mark, times: undefined, left: -1 })
    this.connection.outlet.put(bytes, 0, bytes.length)
  }

  #expect(expected: Expected): void {
    this.#expected.push(expected)
    const kind = expected.mark?.command.mark
    // A HELLO may be partly carried out and the rest refused: an error says nothing about the connection's user.
    if (kind === 'hello' || kind === 'auth') this.isTainted = true
    else if (kind === 'name') this.connection.name = undefined
    else if (isOfTransaction(kind)) {
      this.#transactionMarks++
      this.#isLastMulti = kind === 'multi'
    }
  }

  /** From now on bytes pass through both ways; replies to be discarded come first. */
  becomePipe(): void {
    this.settle()
    this.stays = true
    this.isTainted = true
    this.#isPipeNext = this.#expected.last?.slot === hidden
    if (!this.#isPipeNext) this.#beginPipe()
  }

  #beginPipe(): void {
    this.#isPipe = true
    this.connection.isRaw = true
  }

  /** Bytes of a pipe, or of a large request. */
  forward(bytes: Uint8Array, start: number, end: number): void {
    if (!this.isPipe || !this.#owner.guardPipe(this, bytes, start, end)) this.connection.outlet.put(bytes, start, end)
  }

  onReply(bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    // Pushes do not wait for a turn.
    const slot = this.#expected.first?.slot ?? hidden
    this.#route(bytes, start, end, isLast, type)
    this.#unweighedBytes += end - start
    // Once returned, it already belongs to another client.
    if (this.#unweighedBytes < weighedBytes || this.#isOver) return
    this.#unweighedBytes = 0
    if (!this.#owner.isBehind(slot)) return
    this.connection.pause()
    this.#owner.whenCaughtUp(() => {
      if (!this.#isOver) this.connection.resume()
    }, slot)
  }

  onLost(error: UpstreamLostError): void {
    this.settle()
    this.#owner.onPinnedLost(error)
  }

  /** Closes the connection, whatever its state. */
  abandon(): void {
    this.#isOver = true
    this.settle()
    this.node.dispose(this.connection)
  }

  /** Returns the connection to the node, or closes it if nobody else can use it. */
  release(): void {
    this.#isOver = true
    this.settle()
    if (this.isTainted || !this.isFree || !this.connection.isReady) this.node.dispose(this.connection)
    else this.node.giveBack(this.connection)
  }

  #route(bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    if (this.#isPipe) {
      this.#owner.onPinnedPush(bytes, start, end)
      return
    }
    const expected = this.#expected.first
    const mayBeMessage = type === push || (type === array && this.#mayBeMessage(expected))
    if (mayBeMessage || this.#pieces !== undefined || this.#needsWhole(expected, type)) {
      if (!isLast || this.#pieces !== undefined) {
        this.#pieces ??= []
        this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
        if (!isLast) return
      }
      const whole = this.#pieces === undefined ? bytes.subarray(start, end) : Buffer.concat(this.#pieces)
      this.#pieces = undefined
      if (mayBeMessage) this.#message(whole, type)
      else this.#answer(expected, whole, 0, whole.length, true, type)
    } else this.#answer(expected, bytes, start, end, isLast, type)
  }

  /** True if an array may be a message: in RESP3 messages have their own type. */
  #mayBeMessage(expected: Expected | undefined): boolean {
    return (this.isSubscribed || isSubscribing(expected)) && !this.#owner.isResp3()
  }

  /** Short replies that reveal something about the connection's state are examined in one piece. */
  #needsWhole(expected: Expected | undefined, type: number): boolean {
    if (type === minus && this.#owner.onPinnedError !== undefined) return true
    if (expected?.mark?.complete !== undefined) return true
    return expected?.mark !== undefined && (type === plus || type === minus)
  }

  #answer(
    expected: Expected | undefined,
    bytes: Buffer,
    start: number,
    end: number,
    isLast: boolean,
    type: number,
  ): void {
    if (expected === undefined) {
      this.#owner.onPinnedPush(bytes, start, end)
      return
    }
    if (type === minus && this.#owner.onPinnedError !== undefined && expected.slot !== hidden) {
      const reply = this.#owner.onPinnedError(expected.slot, bytes.subarray(start, end))
      if (reply === undefined) return
      bytes = reply
      start = 0
      end = reply.length
    }
    if (isLast) {
      this.#expected.shift()
      this.#time(expected)
      if (expected.mark !== undefined) this.#learn(expected.mark, bytes, start, end, type)
      this.#settleIfQuiet()
      if (this.inFlight === 0 && this.#isPipeNext) this.#beginPipe()
    }
    const complete = expected.mark?.complete
    if (complete !== undefined)
      this.#owner.onPinnedPart(expected.slot, Buffer.from(bytes.subarray(start, end)), complete)
    else if (expected.slot !== hidden) this.#owner.onPinnedReply(expected.slot, bytes, start, end, isLast)
    if (this.#isPipe) this.#owner.onPinnedPipe()
    else if (isLast && !this.#isOver && this.isFree) this.#owner.onPinnedFree()
  }

  #settleIfQuiet(): void {
    if (this.inFlight === 0 && !this.#isInTransaction) this.settle()
  }

  #time({ times }: Expected): void {
    if (times?.sentMs !== undefined && this.asker !== undefined) {
      this.node.record(times.commandId, times.sentMs, this.asker)
    }
  }

  #message(whole: Buffer, type: number): void {
    const expected = this.#expected.first
    const { kind, count } = subscriptionReplyOf(whole)
    if (messageKinds.has(kind) || (type === push && !confirmationKinds.has(kind))) {
      this.#owner.onPinnedPush(whole, 0, whole.length)
      return
    }
    if (!confirmationKinds.has(kind)) {
      this.#answer(expected, whole, 0, whole.length, true, type)
      return
    }
    const isAsked = isSubscribing(expected) && expected!.mark!.command.name.toLowerCase() === kind
    if (isAsked && expected!.left < 0) {
      const { command, channels = 0 } = expected!.mark!
      expected!.left = this.#subscriptions.confirmationsOf(command.name, channels)
    }
    this.#subscriptions.confirm(kind, count)
    if (!isAsked) {
      this.#owner.onPinnedPush(whole, 0, whole.length)
      return
    }
    const isLast = --expected!.left === 0
    if (isLast) {
      this.#expected.shift()
      this.#settleIfQuiet()
    }
    this.#owner.onPinnedReply(expected!.slot, whole, 0, whole.length, isLast)
    if (isLast && !this.#isOver && this.isFree) this.#owner.onPinnedFree()
  }

  #learn(mark: ReplyMark, bytes: Buffer, start: number, end: number, type: number): void {
    const kind = mark.command.mark
    if (isOfTransaction(kind)) this.#transactionMarks--
    const text =
      type === plus || type === minus ? bytes.subarray(start, Math.min(end, start + 64)).toString('latin1') : ''
    if (text.startsWith('+QUEUED')) {
      // It takes effect with EXEC, if at all: the client keeps this connection, whose state only the server knows.
      if (kind === 'subscribe' || kind === 'unsubscribe') this.becomePipe()
      else if (kind !== 'unwatch' && kind !== 'watch') this.stays = true
      if (this.stays) this.isTainted = true
      return
    }
    if (type === minus) {
      if (mark.staysIfRefused === true) this.stays = true
      // The server may still have it under another name.
      if (kind === 'name') this.isTainted = true
      if (kind === 'exec' && !text.includes('EXEC without MULTI')) this.#endTransaction()
      return
    }
    if (kind === 'multi') this.#isInTransaction = true
    else if (kind === 'exec' || kind === 'discard') this.#endTransaction()
    else if (kind === 'watch') this.#isWatching = true
    else if (kind === 'unwatch') this.#isWatching = false
    else if (kind === 'unknown') this.stays = this.isTainted = true
    mark.onDone?.()
  }

  /**
   * Calls back once everything sent so far has been answered and no transaction is open, or the connection is closed.
   */
  whenSettled(callback: () => void): void {
    if (this.isPipe) callback()
    else this.#onSettled.push(callback)
  }

  /** Notifies those that wait for this connection: nothing more will come. */
  settle(): void {
    const callbacks = this.#onSettled
    if (callbacks.length === 0) return
    this.#onSettled = []
    for (const callback of callbacks) callback()
  }

  /** CLIENT TRACKING was turned on or off. */
  setTracking(isOn: boolean): void {
    this.#isTracking = isOn
  }

  #endTransaction(): void {
    this.#isInTransaction = this.isSpoiled = false
    this.#isWatching = false
  }
}

function isOfTransaction(kind: CommandMark | undefined): boolean {
  return kind === 'multi' || kind === 'exec' || kind === 'discard'
}

function isSubscribing(expected: Expected | undefined): boolean {
  const mark = expected?.mark?.command.mark
  return mark === 'subscribe' || mark === 'unsubscribe'
}
