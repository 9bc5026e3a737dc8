import { encodeCommand } from '@firebreak/core/resp'
import { dispatchRare } from '../client/dispatch.ts'
import type { OwnConnection, ProxyClient } from '../client/proxy-client.ts'
import { isForOnlyNode } from '../cluster/only-node-commands.ts'
import { type CommandMark, multiCommand } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import { carryOut, markOf } from '../session/session-commands.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import { showName } from './connection-name.ts'
import { PinnedLane, type PinnedOwner, type ReplyMark } from './pinned-lane.ts'
import { PipeGuard } from './pipe-guard.ts'

const ping = encodeCommand(['PING'])
const multiBytes = encodeCommand(['MULTI'])
const askingBytes = encodeCommand(['ASKING'])
const crossSlotReply = Buffer.from("-CROSSSLOT Keys in request don't hash to the same slot\r\n")
const authReply = Buffer.from(
  '-ERR Firebreak: a client cannot change its user while it has its own connection to Redis: send RESET before AUTH\r\n',
)
const queuedReply = Buffer.from('+QUEUED\r\n')
/** Commands that Redis refuses to queue, after which it refuses EXEC. */
const spoilsTransaction = /^-ERR (unknown (sub)?command|wrong number of arguments)/i
const tryAgainReply = Buffer.from('-TRYAGAIN the slot of the key has moved, and nothing was done: send it again\r\n')

/** How long to wait before asking a cluster again that is not ready. */
const laterMs = 20

/** A request that may have to go to another node, and the ones of its transaction queued before it. */
interface RememberedRequest {
  readonly bytes: Buffer
  readonly mark: ReplyMark | undefined
  readonly before: readonly Uint8Array[]
  readonly sinceMs: number
}

/**
 * Commands that change the user or database of a connection, or may end the client: what follows waits for their
 * answer.
 */
const changesSession: ReadonlySet<CommandMark | undefined> = new Set(['select', 'auth', 'hello', 'kill'])

/**
 * A client's dedicated connection to Redis, while it has one: for a transaction, a subscription, a blocking command, a
 * value too large to hold. Decides which connection that is, what goes over it, and what to do when it is lost or the
 * wrong one.
 */
export class OwnLane implements PinnedOwner, OwnConnection {
  readonly #client: ProxyClient
  #pinned: PinnedLane | undefined
  /** Reads along if the pinned connection is a pipe that must be read along. */
  #guard: PipeGuard | undefined
  #remembered: RememberedRequest | undefined
  #waitsForAnswer = false
  /** The client's next requests wait until the connection is free again. */
  #holdsClient = false
  /** The last slot whose answer may depend on other clients; -1 if none. */
  #lastBlocking = -1

  constructor(client: ProxyClient) {
    this.#client = client
  }

  /** The connection, if the client has one. */
  get pinned(): PinnedLane | undefined {
    return this.#pinned
  }

  /** False if requests go to several nodes: then no node is the one for all later requests. */
  get mayStay(): boolean {
    return this.#client.cluster?.isSpread !== true
  }

  get mayBeBlocked(): boolean {
    const { slots } = this.#client
    return slots.owed > 0 && slots.head <= this.#lastBlocking
  }

  onPinnedReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    if (isLast) {
      this.#remembered = undefined
      if (this.#pinned?.connection.isFinished === true && this.#pinned.isFree) this.release()
    }
    this.#client.onReply(slot, bytes, start, end, isLast)
  }

  onPinnedPart(slot: number, reply: Buffer, complete: NonNullable<ReplyMark['complete']>): void {
    this.#remembered = undefined
    complete(reply, (whole) => this.#client.answer(slot, whole))
  }

  onPinnedPush(bytes: Uint8Array, start: number, end: number): void {
    const { isClosed, outlet } = this.#client
    if (isClosed) return
    if (this.#guard?.isResetting === true) this.#guard.passOn(bytes, start, end, outlet)
    else outlet.put(bytes, start, end)
  }

  guardPipe({ connection, isMidRequest }: PinnedLane, bytes: Uint8Array, start: number, end: number): boolean {
    const client = this.#client
    const { users, maxRequestBytes } = client.host
    const hidesPasswords = users !== undefined
    if (!hidesPasswords && client.session.startsPlain) return false
    // It is unknown where its next request begins.
    if (isMidRequest) queueMicrotask(() => client.destroy())
    else {
      const { outlet } = connection
      this.#guard ??= new PipeGuard({ outlet, maxRequestBytes, hidesPasswords, onReset: () => client.hold() })
      this.#guard.forward(bytes, start, end)
    }
    return true
  }

  /** RESET in a pipe was answered: the client is back in its initial state, and whatever it has sent since is taken. */
  #afterReset(held: Buffer): void {
    const client = this.#client
    this.unpin()
    client.session.reset()
    client.stateChanged()
    if (held.length > 0) client.onData(held, held.length)
    client.letGo()
  }

  onPinnedPipe(): void {
    this.#client.forgetOwed()
  }

  onPinnedFree(): void {
    this.release()
    this.#letClientGoOn()
  }

  #letClientGoOn(): void {
    if (!this.#holdsClient) {
      this.#client.goOn()
      return
    }
    this.#holdsClient = false
    this.#client.letGo()
  }

  /**
   * What the server knew about the client is gone with the connection: the client is closed, as Redis would close it.
   */
  onPinnedLost({ refusal }: UpstreamLostError): void {
    const client = this.#client
    if (client.isClosed) return
    if (this.#guard?.isAnswered === true) {
      this.#afterReset(this.#guard.held)
      return
    }
    this.unpin()
    if (refusal !== undefined && !client.slots.hasBegun) {
      while (client.slots.owed > 0) client.answer(client.slots.head, refusal)
      this.#letClientGoOn()
      return
    }
    client.end()
  }

  /** With a cluster: a node is not, or no longer, the right one for a request. */
  onPinnedError(_slot: number, reply: Buffer): Buffer | undefined {
    const pinned = this.#pinned
    const request = this.#remembered
    const redirect = pinned && this.#client.cluster?.redirected(pinned, reply, request?.sinceMs ?? 0)
    const isFirst = request !== undefined && pinned?.inFlight === 1 && !pinned.hasSentMulti
    if (redirect === undefined || pinned === undefined || (redirect === 'later' && !isFirst)) {
      this.#remembered = undefined
      if (pinned?.isInTransaction === true && spoilsTransaction.test(reply.toString('latin1'))) pinned.isSpoiled = true
      return reply
    }
    // EXEC will be refused because of the earlier error. As with a single Redis, this is queued and never carried out.
    if (pinned.isSpoiled) return queuedReply
    if (redirect === 'later') {
      this.#client.host.runtime.timers.setTimeout(() => {
        if (this.#pinned === pinned) pinned.forward(request!.bytes, 0, request!.bytes.length)
      }, laterMs)
      return undefined
    }
    if (pinned.hasStreamed) return tryAgainReply
    if (request === undefined || pinned.inFlight > 1) return crossSlotReply
    // Nothing has begun on that connection except possibly an empty transaction: it starts over on the right node.
    const slot = this.#client.slots.head
    this.unpin()
    const next = this.pinTo(redirect.node)
    if (pinned.hasSentMulti) next.sendHidden(multiBytes, { command: multiCommand })
    for (const bytes of request.before) next.sendHidden(bytes)
    if (redirect.isAsking) next.sendHidden(askingBytes)
    next.send(request.bytes, 0, request.bytes.length, slot, request.mark)
    if (pinned.connection.isFinished) this.finish()
    return undefined
  }

  isResp3(): boolean {
    return this.#client.session.version === 3
  }

  isBehind(slot: number): boolean {
    return this.#client.isBehind(slot)
  }

  whenCaughtUp(callback: () => void, slot: number): void {
    this.#client.whenCaughtUp(callback, slot)
  }

  /**
   * Sends the current request, which contains credentials, over a connection that nobody has used before or will use
   * afterwards. What the client sends after it waits for the answer: that connection has neither its database nor, if
   * the credentials are refused, its user.
   */
  sendFresh(): void {
    const { node, freshState } = this.#client.host
    const pinned = this.#pin(node, freshState, true)
    pinned.isTainted = true
    this.#holdsClient = true
    this.#client.hold()
    this.send(pinned)
  }

  /** Pins a dedicated connection to this client; on the server it has the client's name. */
  pinTo(node: UpstreamNode): PinnedLane {
    const { session } = this.#client
    const pinned = this.#pin(node, session.snapshot(), false)
    showName(pinned, session.name)
    return pinned
  }

  /**
   * The client sends no more. If only the server knows whether and when an answer will come (a blocking command, a
   * pipe, a request whose rest is missing), we tell it; it answers what it can and closes the connection.
   */
  finish(): void {
    const pinned = this.#pinned
    if (pinned === undefined || pinned.connection.isFinished) return
    if (!this.mayBeBlocked && !pinned.isPipe && !pinned.isMidRequest) return
    pinned.isTainted = true
    pinned.connection.finish()
  }

  /** Closes the dedicated connection, whatever its state. */
  unpin(): void {
    const pinned = this.#pinned
    this.#pinned = this.#guard = undefined
    pinned?.abandon()
  }

  /** Returns the connection, for others if they can use it. */
  release(): void {
    const pinned = this.#pinned
    this.#pinned = undefined
    pinned?.release()
  }

  /** Takes a dedicated connection for a request and all that follow it until it is free again. */
  borrow(node?: UpstreamNode): boolean {
    const { slots, host } = this.#client
    if (slots.owed > 0) return this.#client.waitForReplies()
    const pinned = this.#pinned ?? this.pinTo(node ?? host.node)
    const { name } = this.#client.request.command
    // WAIT concerns the writes of its own connection; any command moves a connection's offset to the newest write of
    // all.
    if (name === 'WAIT' || name === 'WAITAOF') pinned.sendHidden(ping)
    if (this.#client.cluster !== undefined) this.remember()
    return this.dispatch(pinned)
  }

  /**
   * Keeps the current request (and those before it) until it is answered, because a cluster may redirect it to another
   * node.
   */
  remember(before: readonly Uint8Array[] = []): void {
    const bytes = this.#client.request.copy()
    this.#remembered = { bytes, mark: markOf(this.#client), before, sinceMs: this.#client.host.turn.nowMs }
    this.#waitsForAnswer = true
  }

  /** Sends the current request over the dedicated connection, or carries it out. */
  dispatch(pinned: PinnedLane): boolean {
    const client = this.#client
    const { command, bytes, start, end } = client.request
    // Whatever gets an answer before it closes is answered; after that there are other connections.
    if (pinned.connection.isFinished) return client.waitForReplies()
    // The server refuses a subscriber's questions about the cluster.
    const isForProxy = command.way === 'own' || (isForOnlyNode(client) && (!pinned.isSubscribed || this.isResp3()))
    if (isForProxy && !pinned.hasSentMulti) {
      return !this.awaitsAnswers() && dispatchRare(client)
    }
    const showsPassword = command.mark === 'auth' || (command.mark === 'hello' && client.args.length > 2)
    if (showsPassword && client.host.users !== undefined) {
      if (this.awaitsAnswers()) return false
      client.answerNow(authReply)
      return true
    }
    if (command.name === 'QUIT') {
      // The server answers it, so that anyone who sees the answer knows that the connection's subscriptions and the
      // like have ended.
      this.send(pinned)
      client.endAfterReplies()
      return true
    }
    if (command.name === 'RESET') {
      if (client.slots.owed > 0) return client.waitForReplies()
      return carryOut(client)
    }
    if (command.way === 'pipe') {
      if (client.slots.owed > 0) return client.waitForReplies()
      pinned.becomePipe()
      pinned.forward(bytes, start, end)
      return true
    }
    if (command.way === 'stay') {
      pinned.isTainted = true
      pinned.stays ||= this.mayStay
    }
    const { shield } = client.host
    if (shield?.isActive === true) shield.seePinned(client, command, pinned)
    this.send(pinned)
    // The answer determines which keys the following requests refer to.
    if (changesSession.has(command.mark)) client.waitForReplies()
    return true
  }

  /**
   * True if an answer by the proxy itself has to wait: the pending answers may turn the connection into a pipe, and
   * then the server answers everything.
   */
  awaitsAnswers(): boolean {
    if (this.#pinned === undefined || this.#client.slots.owed === 0) return false
    this.#client.waitForReplies()
    return true
  }

  /** Sends the current request over a dedicated connection. */
  send(pinned: PinnedLane): void {
    const client = this.#client
    // The request that is sent may not be the client's own.
    const mark = markOf(client)
    const { command, bytes, start, end } = client.request
    const sentMs = command.mayBlock ? undefined : client.host.turn.nowMs
    const slot = client.slots.take()
    if (command.mayBlock && !pinned.hasSentMulti) this.#lastBlocking = slot
    else if (slot === 0) this.#lastBlocking = -1
    pinned.send(bytes, start, end, slot, mark, { commandId: command.id, sentMs })
    if (!this.#waitsForAnswer) return
    this.#waitsForAnswer = false
    client.waitForReplies()
  }

  /**
   * Starts sending a request of which only the first bytes have arrived; false if it has to wait. The client's next
   * bytes follow over the connection as they arrive (`forward`).
   */
  begin(node: UpstreamNode): boolean {
    const client = this.#client
    if (this.#pinned?.node !== node && client.slots.owed > 0) return client.waitForReplies()
    const pinned = this.#pinned ?? this.pinTo(node)
    const { shield } = client.host
    const { command, bytes, start, end } = client.request
    if (shield?.isActive === true) shield.seeLarge(client, command, pinned)
    pinned.hasStreamed = pinned.isMidRequest = true
    pinned.send(bytes, start, end, client.slots.take(), markOf(client))
    return true
  }

  #pin(node: UpstreamNode, state: ConnectionState, isFresh: boolean): PinnedLane {
    let pinned: PinnedLane
    const connection = node.own(
      state,
      {
        onReply: (bytes, start, end, isLast, type) => pinned.onReply(bytes, start, end, isLast, type),
        onLost: (error) => pinned.onLost(error),
        onDrain: () => this.#client.onUpstreamDrain(),
      },
      isFresh,
    )
    pinned = new PinnedLane(node, connection, this)
    pinned.asker = this.#client
    this.#pinned = pinned
    this.#guard = undefined
    return pinned
  }
}
