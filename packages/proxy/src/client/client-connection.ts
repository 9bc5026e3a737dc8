import { type BufferArgs, RequestError, type RequestParser } from '@firebreak/core'
import type { KeyLimitedError, KeySpace } from '@firebreak/shield'
import { ClusterDispatch } from '../cluster/cluster-dispatch.ts'
import type { ClusterSettings } from '../cluster/cluster-sender.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import { ClientLanes } from '../lanes/client-lanes.ts'
import { OwnLane } from '../lanes/own-lane.ts'
import { Backlog } from '../replies/backlog.ts'
import { lostReply } from '../replies/lost-reply.ts'
import { ReplySlots } from '../replies/reply-slots.ts'
import { ClientRequest } from '../requests/client-request.ts'
import { Input } from '../requests/input.ts'
import { LargeRequest } from '../requests/large-request.ts'
import type { Session } from '../session/session.ts'
import { beginEvent, endEvent, Outlet } from '../transport/outlet.ts'
import type { Transport, TransportOwner } from '../transport/transport.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { ClientHost } from './client-host.ts'
import { dispatchRare, dispatchToCluster } from './rare-dispatch.ts'

const largeBytes = 4096

/**
 * One client of the proxy: takes its requests off the wire, sends each the way it has to go, and writes the replies in
 * the order of the requests.
 *
 * Most requests go over a lane that clients share. What needs a connection of its own waits until all earlier requests
 * are answered, so that the server sees this client's requests in their order whatever connection they come on; then
 * everything goes over the pinned lane until that is free again.
 */
export class ClientConnection implements TransportOwner, ReplyTarget {
  /** Of the proxy: on none of its threads another has it. */
  readonly id: number
  readonly host: ClientHost
  readonly session: Session
  readonly outlet = new Outlet('client')
  readonly slots: ReplySlots = new ReplySlots(this.outlet)
  /** The request at hand. */
  readonly request: ClientRequest
  readonly args: BufferArgs
  readonly parser: RequestParser
  readonly #input = new Input()
  #transport!: Transport
  readonly lanes: ClientLanes = new ClientLanes(this)
  #cluster: ClusterDispatch | undefined
  #keySpace: KeySpace | undefined
  /** Set when a request that stood in a limit's line comes again: it was paid for, or is refused with this. */
  limitPass: 'paid' | KeyLimitedError | undefined
  /** The youngest hot key that the client has asked for. */
  youngestHot = 0
  /** The connection that the client has for itself, while it has one. */
  readonly own: OwnLane = new OwnLane(this)
  readonly #large: LargeRequest = new LargeRequest(this)
  /** Input waits until nothing is owed, or until what holds it lets go. */
  #isWaiting = false
  #isHeld = false
  /** It has not read what it was answered. */
  #isPaused = false
  /** As many requests as may be are on their way. */
  #isCrowded = false
  /** The client sends no more. */
  #hasEnded = false
  /** Its connection has broken, and what it has sent before is still carried out. */
  #isLost = false
  #isEnding = false
  #isClosed = false
  #gone: AbortController | undefined
  readonly backlog: Backlog
  lastActiveMs: number
  readonly sinceMs: number

  constructor(id: number, host: ClientHost, session: Session) {
    this.id = id
    this.host = host
    this.session = session
    this.request = new ClientRequest(host.maxRequestBytes)
    this.parser = this.request.parser
    this.args = this.request.args
    this.lastActiveMs = this.sinceMs = host.turn.nowMs
    this.backlog = new Backlog(host, this.outlet, this.slots, () => host.onSlowReader(this))
  }

  attach(transport: Transport): void {
    this.#transport = transport
    this.outlet.open(transport)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Aborted when the client sends no more or is gone: it stands in no line then. */
  get gone(): AbortSignal {
    return this.#hasEnded ? AbortSignal.abort() : (this.#gone ??= new AbortController()).signal
  }

  get transport(): Transport {
    return this.#transport
  }

  /** True when nothing is owed and nothing is begun. */
  get isIdle(): boolean {
    return this.slots.owed === 0 && this.own.pinned === undefined && !this.#isHeld
  }

  onData(bytes: Buffer, length: number): void {
    beginEvent()
    this.#receive(bytes, length)
    this.host.shield?.settle()
    endEvent()
  }

  #receive(bytes: Buffer, length: number): void {
    this.lastActiveMs = this.host.turn.nowMs = performance.now()
    if (this.#isEnding) return
    if (this.own.pinned?.isPipe === true && this.#input.isEmpty && !this.#isBlocked) {
      this.own.pinned.forward(bytes, 0, length)
      if (this.own.pinned.mustWait) this.#transport.pause()
      return
    }
    const start = this.#large.isOnItsWay ? this.#large.forward(bytes, length) : 0
    if (this.#large.mustWait) this.#transport.pause()
    if (start === length) return
    if (this.#input.isEmpty && !this.#isBlocked) {
      const taken = this.#take(bytes, start, length)
      if (taken < length && !this.#isEnding) this.#input.add(bytes, taken, length, this.#large.missingBytes)
    } else {
      this.#input.add(bytes, start, length, this.#large.missingBytes)
      this.#takeInput()
    }
    if (this.#isBlocked && this.#input.isFull) this.#transport.pause()
  }

  /** Redis has taken what was sent over the client's own connection: the rest of a large request, or more, may come. */
  onUpstreamDrain(): void {
    if ((this.#large.isOnItsWay || this.own.pinned?.isPipe === true) && !this.#isBlocked) this.#transport.resume()
  }

  onDrain(): void {
    if (this.backlog.drained()) this.goOn()
  }

  onEnd(): void {
    this.#hasEnded = true
    this.#gone?.abort()
    this.backlog.expectReading()
    this.#finish()
  }

  onClose(): void {
    if (this.#isEnding || !this.#isBlocked || this.#input.isEmpty) {
      this.#close()
      return
    }
    // What it has sent before is carried out all the same, as Redis does with what it has read.
    this.#isLost = true
    this.onEnd()
    this.onDrain()
  }

  /** Of a client that sends no more: it is closed once all that it has sent is answered. */
  #finish(): void {
    this.own.finish()
    // Of a pipe only the server knows what is owed, and closes it.
    if (!this.#isBlocked && !this.#isEnding && this.own.pinned?.isPipe !== true) this.endAfterReplies()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isEnding = true
    this.#input.clear()
    this.slots.clear()
    this.own.release()
    this.backlog.close()
    this.#gone?.abort()
    this.host.onClientGone(this)
  }

  onReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    if (this.#isClosed) return
    this.slots.reply(slot, bytes, start, end, isLast)
    this.backlog.weigh(end - start, isLast)
    if (!isLast) return
    if (this.slots.owed === 0) {
      if (this.#isEnding || this.#isBlocked) this.#drained()
    } else if (this.#isCrowded && this.slots.owed <= this.#maxOwed >> 1) this.goOn()
  }

  onLost(slot: number, error: UpstreamLostError, wasSent: boolean): void {
    if (this.#isClosed) return
    if (this.slots.hasBegun && slot === this.slots.head) {
      this.destroy()
      return
    }
    this.slots.drop(slot)
    this.answer(slot, lostReply(error, wasSent))
  }

  isStalled(slot: number): boolean {
    return this.backlog.isStalledAt(slot)
  }

  isBehind(slot?: number): boolean {
    return slot === undefined ? this.backlog.isBehind : this.backlog.isBehindAt(slot)
  }

  whenUnstalled(callback: () => void, slot: number): void {
    this.backlog.whenUnstalled(callback, slot)
  }

  whenCaughtUp(callback: () => void, slot?: number): void {
    this.backlog.whenCaughtUp(callback, slot)
  }

  /** Answers a slot with a whole reply. */
  answer(slot: number, reply: Uint8Array): void {
    this.onReply(slot, reply, 0, reply.length, true)
  }

  /** Answers the request at hand from here, in its turn, with the first `length` bytes of a reply that stays as it is. */
  answerNow(reply: Uint8Array, length = reply.length): void {
    if (this.slots.owed > 0) this.onReply(this.slots.take(), reply, 0, length, true)
    else if (!this.#isClosed) this.outlet.put(reply, 0, length, true)
    // A pipeline of short requests may ask for more than any buffer should hold.
    if (length >= largeBytes && this.backlog.isBehind) this.#pause()
  }

  /** Takes no more requests and closes once all that is owed has gone out. */
  endAfterReplies(): void {
    this.#isEnding = true
    this.#input.clear()
    if (this.slots.owed === 0) this.#drained()
  }

  /** Closes once what was answered so far has gone out. */
  end(): void {
    this.outlet.flush()
    this.#isEnding = true
    if (this.#isLost) this.#close()
    else this.#transport.end()
  }

  destroy(): void {
    this.#close()
    this.#transport.destroy()
  }

  /** No request is taken until `letGo`. */
  hold(): void {
    this.#isHeld = true
  }

  letGo(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.goOn()
  }

  /** User, protocol or database have changed: other connections from now on. */
  stateChanged(): void {
    this.lanes.forget()
    this.#keySpace = undefined
  }

  /** Sends the request at hand over a shared lane for a state. */
  sendShared(lane: SharedLane, target: ReplyTarget = this, slot: number = this.slots.take()): void {
    const { bytes, start, end, command } = this.request
    lane.send(bytes, start, end, target, slot, command.id, this.host.turn.nowMs)
  }

  /** Sends a request whose slot was taken before. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array): void {
    if (this.#cluster !== undefined) this.#cluster.sendInto(slot, command, request)
    else this.lanes.forCommands().send(request, 0, request.length, this, slot, command.id, performance.now())
  }

  /** The keys that this client can read, and which of them are hot. */
  keySpace(): KeySpace {
    return (this.#keySpace ??= this.host.shield!.spaceOf(this.session.identity, this.session.database))
  }

  get #isBlocked(): boolean {
    return this.#isWaiting || this.#isHeld || this.#isPaused || this.#isCrowded
  }

  /** Requests that may be on their way: over a connection of its own the client holds up nobody. */
  get #maxOwed(): number {
    return this.own.pinned === undefined ? this.backlog.window : this.host.maxInFlight
  }

  #takeInput(): void {
    const input = this.#input
    while (!input.isEmpty && !this.#isBlocked && !this.#isEnding) {
      const { start } = input
      if (this.own.pinned?.isPipe === true) {
        this.own.pinned.forward(input.bytes, start, input.end)
        input.clear()
        return
      }
      const taken = this.#take(input.bytes, start, input.end)
      input.consume(taken)
      if (taken === start) break
    }
  }

  /** Takes the requests that are there; gives the offset behind the last one. */
  #take(bytes: Buffer, start: number, end: number): number {
    let at = start
    const { parser } = this
    const { shield } = this.host
    this.backlog.renewWindow()
    if (this.backlog.isBehind) this.#pause()
    while (at < end && !this.#isBlocked) {
      let next: number
      try {
        next = parser.parse(bytes, at, end)
        if (next === 0 && this.#large.begin(bytes, at, end)) return end
      } catch (error) {
        if (!(error instanceof RequestError)) throw error
        if (this.own.awaitsAnswers()) return at
        this.answerNow(Buffer.from(`-${error.reply}\r\n`, 'latin1'))
        this.endAfterReplies()
        return end
      }
      if (next === 0) break
      if (shield !== undefined) shield.canRepeat = false
      if (parser.length > 0) {
        this.request.take(bytes, at, next)
        if (!this.#dispatch()) return at
      }
      at = shield?.canRepeat === true ? shield.repeat(this, bytes, at, next, end) : next
      if (this.#isEnding) return end
      if (this.own.pinned?.isPipe === true) {
        this.own.pinned.forward(bytes, at, end)
        return end
      }
      if (this.slots.owed > this.#maxOwed) this.#isCrowded = true
    }
    return at
  }

  /** Sends one request its way; false where it has to wait. */
  #dispatch(): boolean {
    const { command } = this.request
    if (this.host.cluster !== undefined) return dispatchToCluster(this, this.host.cluster)
    if (this.own.pinned !== undefined) return this.own.dispatch(this.own.pinned)
    if (command.isShared && !this.host.isIsolated && this.session.isKnown && !this.backlog.isHeavy) {
      let target: ReplyTarget = this
      const { shield } = this.host
      if (shield !== undefined) {
        const seen = shield.see(this, command, this)
        if (seen === 'answered') return true
        if (seen === 'held') return false
        target = seen
      }
      this.sendShared(this.lanes.forCommands(), target)
      return true
    }
    return dispatchRare(this)
  }

  /** What sends this client's requests to a cluster. */
  dispatchTo(cluster: ClusterSettings): ClusterDispatch {
    if (this.#cluster === undefined) {
      this.#cluster = new ClusterDispatch(this, cluster)
      this.own.inCluster(this.#cluster)
    }
    return this.#cluster
  }

  /** The request at hand has to wait until all before it are answered. */
  waitForReplies(): false {
    this.#isWaiting = true
    return false
  }

  /** What is owed, all of it by the server, comes as part of a pipe; of one that is to end the server closes that. */
  forgetOwed(): void {
    this.slots.clear()
    if (!this.#isEnding) this.#drained()
    else if (this.#hasEnded) this.own.finish()
  }

  #drained(): void {
    this.#isWaiting = false
    if (this.#isEnding) this.end()
    else this.goOn()
  }

  #pause(): void {
    this.outlet.flush()
    this.#isPaused = this.backlog.isBehind
  }

  /** Goes on with requests after whatever held them up. */
  goOn(): void {
    if (this.#isClosed || this.#isEnding) return
    if (this.#isPaused && !this.backlog.isBehind) this.#isPaused = false
    if (this.#isCrowded && this.slots.owed <= this.#maxOwed >> 1) this.#isCrowded = false
    if (this.#isBlocked) return
    // What let it go on may have been a timer, which is no turn of its own.
    this.host.turn.nowMs = performance.now()
    this.#takeInput()
    this.host.shield?.settle()
    if (this.#hasEnded) this.#finish()
    else if (!this.#isEnding && !(this.#isBlocked && this.#input.isFull)) this.#transport.resume()
  }
}
