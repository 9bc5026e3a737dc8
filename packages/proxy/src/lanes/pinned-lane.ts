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
  /** A whole reply for a slot that `complete` makes the client's answer of. */
  onPinnedPart(slot: number, reply: Buffer, complete: NonNullable<ReplyMark['complete']>): void
  /** Bytes that answer nothing: a message, a push, all of a pipe. */
  onPinnedPush(bytes: Uint8Array, start: number, end: number): void
  /** From now on replies come as they are: what is owed is no longer answered one by one. */
  onPinnedPipe(): void
  /** The client's bytes of a pipe; true where the owner has sent them, or what may be sent of them. */
  guardPipe(pinned: PinnedLane, bytes: Uint8Array, start: number, end: number): boolean
  /** Nothing needs the connection any more. */
  onPinnedFree(): void
  onPinnedLost(error: UpstreamLostError): void
  /** Of a cluster: an error came. What the client gets in its place, or undefined where the request goes on elsewhere. */
  onPinnedError?(slot: number, reply: Buffer): Buffer | undefined
  /** True where the client speaks RESP3, by the answers so far. */
  isResp3(): boolean
  /** True while the client leaves more unread than it may before the reply for a slot. */
  isBehind(slot: number): boolean
  whenCaughtUp(callback: () => void, slot: number): void
}

/** What the reply to a request means for the connection's state. */
export interface ReplyMark {
  readonly command: ProxyCommand
  /** Of SUBSCRIBE and its like: how many channels it names. */
  readonly channels?: number
  /** Refused, a part of it may have been carried out: the client keeps this connection, whose state only the server knows. */
  readonly staysIfRefused?: boolean
  /** Called with the reply where it is no error and not QUEUED. */
  readonly onDone?: () => void
  /** Makes what the client gets of the server's reply, now or later. */
  readonly complete?: (reply: Buffer, answer: (reply: Buffer) => void) => void
}

/** Which command was sent and when; undefined where it may wait for others, which says nothing about the server. */
export interface RequestTimes {
  readonly commandId: number
  readonly sentMs: number | undefined
}

interface Expected {
  readonly slot: number
  readonly mark: ReplyMark | undefined
  readonly times: RequestTimes | undefined
  /** Confirmations to come; -1 before it is the first in line. */
  left: number
}

const hidden = -1
/** How many bytes are worth a look at their reader's backlog, be they one reply or many messages. */
const weighedBytes = 4096
/** So much may wait on its way to Redis before the client that sends it has to wait. */
const maxQueuedBytes = 1024 * 1024
const plus = 0x2b
const minus = 0x2d
const array = 0x2a
const push = 0x3e

/**
 * A connection to Redis that one client has for itself, and the state that keeps it from sharing: a transaction, watched
 * keys, subscriptions, tracking. The state is learnt from the replies, never guessed from the requests, so a command that
 * the server refused leaves none. Where all of it has ended the connection is free again.
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
  /** Pinned until the client goes: something changed that cannot be undone. */
  stays = false
  /** Nobody else may have the connection after this client. */
  isTainted = false
  #isPipe = false
  /** It is a pipe once what is expected has come. */
  #isPipeNext = false
  /** Its client has none or another one by now: what a reply led to may have been the end of this. */
  #isOver = false
  #pieces: Buffer[] | undefined
  /** Bytes that came since the client's backlog was looked at. */
  #unweighedBytes = 0
  #onSettled: (() => void)[] = []
  /** A request went over it that nobody has kept. */
  hasStreamed = false
  /** The rest of a request is still to be sent: nobody else may have the connection, whatever was answered. */
  isMidRequest = false
  /** A command of the open transaction was refused, in a way that EXEC is refused for. */
  isSpoiled = false
  /** The server's id of it, once its client has asked for it. */
  serverId: number | undefined
  /** Whose requests they are, for the slow log. */
  asker: ReplyTarget | undefined
  /** MULTI, EXEC and DISCARD that are not answered yet, and whether the last of them is to open a transaction. */
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

  /** MULTI was sent and not ended: by the answers, or by the requests as long as those are to come. */
  get hasSentMulti(): boolean {
    return this.#transactionMarks > 0 ? this.#isLastMulti : this.#isInTransaction
  }

  get inFlight(): number {
    return this.#expected.length
  }

  /** True while Redis has not taken enough of what was sent for more to come. */
  get mustWait(): boolean {
    const { outlet, isClosed } = this.connection
    if (isClosed || outlet.queuedBytes <= maxQueuedBytes) return false
    outlet.flush()
    return outlet.queuedBytes > maxQueuedBytes
  }

  /** True when the connection is as it was made and owes nothing. */
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

  /** Sends a request whose reply nobody gets; with it MULTI of a transaction that the client thinks is open already. */
  sendHidden(bytes: Uint8Array, mark?: ReplyMark): void {
    this.#expect({ slot: hidden, mark, times: undefined, left: -1 })
    this.connection.outlet.put(bytes, 0, bytes.length)
  }

  #expect(expected: Expected): void {
    this.#expected.push(expected)
    const kind = expected.mark?.command.mark
    // Of HELLO a part may be carried out and the rest refused: an error says nothing about who the connection is.
    if (kind === 'hello' || kind === 'auth') this.isTainted = true
    else if (kind === 'name') this.connection.name = undefined
    else if (isOfTransaction(kind)) {
      this.#transactionMarks++
      this.#isLastMulti = kind === 'multi'
    }
  }

  /** From now on bytes go both ways as they are; replies that nobody gets come first. */
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
    // What answers nothing waits for no turn.
    const slot = this.#expected.first?.slot ?? hidden
    this.#route(bytes, start, end, isLast, type)
    this.#unweighedBytes += end - start
    // Given back it is another's already.
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

  /** The connection is closed, whatever state it has. */
  abandon(): void {
    this.#isOver = true
    this.settle()
    this.node.dispose(this.connection)
  }

  /** The connection goes back to the node, or is closed where it cannot be another's. */
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

  /** True where an array may be a message: in RESP3 messages have a type of their own. */
  #mayBeMessage(expected: Expected | undefined): boolean {
    return (this.isSubscribed || isSubscribing(expected)) && !this.#owner.isResp3()
  }

  /** Short replies that say something about the connection's state are looked at in one piece. */
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
      // The server may go on to know it by another's name.
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

  /** Calls back once all that was sent so far is answered and no transaction is open, or the connection is given up. */
  whenSettled(callback: () => void): void {
    if (this.isPipe) callback()
    else this.#onSettled.push(callback)
  }

  /** Whoever waits for this connection is told: nothing more is to come. */
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
