import {
  BufferArgs,
  encodeCommand,
  encodeReply,
  keySlotOfBytes,
  mayBlock,
  RequestError,
  RequestParser,
} from '@firebreak/core'
import type { KeyLimitedError, KeySpace } from '@firebreak/shield'
import { ClusterDispatch, type ClusterSettings } from '../cluster/cluster-dispatch.ts'
import { clusterOfOne } from '../cluster/cluster-of-one.ts'
import { type ProxyCommand, proxyCommandOf } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import { firebreakCommand } from '../observe/firebreak-command.ts'
import { beginEvent, endEvent, Outlet } from '../transport/outlet.ts'
import type { Transport, TransportOwner } from '../transport/transport.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import { Backlog } from './backlog.ts'
import type { ClientHost } from './client-host.ts'
import { InfoReply } from './info-reply.ts'
import { Input } from './input.ts'
import { lostReply } from './lost-reply.ts'
import { OwnLane } from './own-lane.ts'
import { ReplySlots } from './reply-slots.ts'
import { RequestRest } from './request-rest.ts'
import type { Session } from './session.ts'
import { carryOut } from './session-commands.ts'

const asterisk = 0x2a
const largeBytes = 4096
/** Of an argument with more bytes to come than this, nothing is held back. */
const streamedBytes = 1024 * 1024

/**
 * One client of the proxy: takes its requests off the wire, sends each the way it has to go, and writes the replies in
 * the order of the requests.
 *
 * Most requests go over a lane that clients share. What needs a connection of its own waits until all earlier requests
 * are answered, so that the server sees this client's requests in their order whatever connection they come on; then
 * everything goes over the pinned lane until that is free again.
 */
export class ClientConnection implements TransportOwner, ReplyTarget {
  readonly host: ClientHost
  readonly session: Session
  readonly outlet = new Outlet('client')
  readonly slots: ReplySlots = new ReplySlots(this.outlet)
  readonly args: BufferArgs
  readonly parser: RequestParser
  readonly #input = new Input()
  #transport!: Transport
  #lane: SharedLane | undefined
  #cluster: ClusterDispatch | undefined
  #keySpace: KeySpace | undefined
  /** Set when a request that stood in a limit's line comes again: it was paid for, or is refused with this. */
  limitPass: 'paid' | KeyLimitedError | undefined
  /** The connection that the client has for itself, while it has one. */
  readonly own: OwnLane = new OwnLane(this)
  /** What is to come of a request whose beginning was sent on. */
  #rest: RequestRest | undefined
  /** Input waits until nothing is owed, or until what holds it lets go. */
  #isWaiting = false
  #isHeld = false
  #isPaused = false
  #isEnding = false
  #isClosed = false
  readonly #backlog: Backlog
  lastActiveMs: number
  readonly #sinceMs: number

  constructor(host: ClientHost, session: Session) {
    this.host = host
    this.session = session
    this.parser = new RequestParser({ maxBulkBytes: host.maxRequestBytes })
    this.args = new BufferArgs(this.parser)
    this.lastActiveMs = this.#sinceMs = host.turn.nowMs
    this.#backlog = new Backlog(host, this.outlet, this.slots, () => host.onSlowReader(this))
  }

  attach(transport: Transport): void {
    this.#transport = transport
    this.outlet.open(transport)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get peer(): string {
    return this.#transport.peer
  }

  get ageMs(): number {
    return this.host.turn.nowMs - this.#sinceMs
  }

  get idleMs(): number {
    return this.host.turn.nowMs - this.lastActiveMs
  }

  /** Bytes that were answered and that the client has not taken. */
  get unreadBytes(): number {
    return this.#backlog.bytes
  }

  /** True when nothing is owed and nothing is begun. */
  get isIdle(): boolean {
    return this.slots.owed === 0 && this.own.pinned === undefined && !this.#isHeld
  }

  onData(bytes: Buffer, length: number): void {
    beginEvent()
    this.#receive(bytes, length)
    endEvent()
  }

  #receive(bytes: Buffer, length: number): void {
    this.#takeBytes(bytes, length)
    this.host.shield?.settle()
  }

  #takeBytes(bytes: Buffer, length: number): void {
    this.lastActiveMs = this.host.turn.nowMs = performance.now()
    if (this.#isEnding) return
    if (this.own.pinned?.isPipe === true) {
      this.own.pinned.forward(bytes, 0, length)
      return
    }
    const start = this.#rest === undefined ? 0 : this.#forwardRest(this.#rest, bytes, length)
    if (start === length) return
    if (this.#input.isEmpty && !this.#isBlocked) {
      const taken = this.#take(bytes, start, length)
      if (taken < length && !this.#isEnding) this.#input.add(bytes, taken, length, this.#missingBytes)
    } else {
      this.#input.add(bytes, start, length, this.#missingBytes)
      this.#takeInput()
    }
  }

  /** Bytes that are worth having room for. */
  get #missingBytes(): number {
    return Math.min(this.parser.missingBytes, streamedBytes)
  }

  /** Sends on what belongs to the request that is on its way; gives the offset behind it. */
  #forwardRest(rest: RequestRest, bytes: Buffer, length: number): number {
    const pinned = this.own.pinned
    const end = rest.take(bytes, 0, length)
    if (rest.isDone) this.#rest = undefined
    if (pinned === undefined) return end
    pinned.forward(bytes, 0, end)
    if (pinned.connection.outlet.queuedBytes <= streamedBytes) return end
    pinned.connection.outlet.flush()
    if (pinned.connection.outlet.queuedBytes > streamedBytes) this.#transport.pause()
    return end
  }

  /** Redis has taken what was sent over the client's own connection: the rest of a large request may come. */
  onUpstreamDrain(): void {
    if (this.#rest !== undefined && !this.#isBlocked) this.#transport.resume()
  }

  onDrain(): void {
    if (this.#backlog.drained()) this.goOn()
  }

  onClose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isEnding = true
    this.#input.clear()
    this.slots.clear()
    this.own.release()
    this.#backlog.close()
    this.host.onClientGone(this)
  }

  onReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    if (this.#isClosed) return
    this.slots.reply(slot, bytes, start, end, isLast)
    this.#backlog.weigh(end - start, isLast)
    if (!isLast) return
    if (this.slots.owed === 0) {
      if (this.#isWaiting || this.#isEnding || this.#isPaused) this.#drained()
    } else if (this.#isPaused && this.slots.owed === this.host.maxInFlight >> 1) this.goOn()
  }

  onLost(slot: number, error: UpstreamLostError, wasSent: boolean): void {
    if (this.#isClosed) return
    if (this.slots.hasBegun && slot === this.slots.head) {
      this.destroy()
      return
    }
    this.answer(slot, lostReply(error, wasSent))
  }

  isStalled(): boolean {
    return this.#backlog.isStalled
  }

  isBehind(): boolean {
    return this.#backlog.isBehind
  }

  whenUnstalled(callback: () => void): void {
    this.#backlog.whenUnstalled(callback)
  }

  whenCaughtUp(callback: () => void): void {
    this.#backlog.whenCaughtUp(callback)
  }

  /** Answers a slot with a whole reply. */
  answer(slot: number, reply: Uint8Array): void {
    this.onReply(slot, reply, 0, reply.length, true)
  }

  /** Answers the request at hand from here, in its turn. */
  answerNow(reply: Uint8Array): void {
    if (this.slots.owed > 0) this.answer(this.slots.take(), reply)
    else if (!this.#isClosed) this.outlet.put(reply, 0, reply.length)
    // A pipeline of short requests may ask for more than any buffer should hold.
    if (reply.length >= largeBytes && this.#backlog.isBehind) this.#pause()
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
    this.#transport.end()
  }

  destroy(): void {
    this.#transport.destroy()
    this.onClose()
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
    this.#lane = undefined
    this.#keySpace = undefined
  }

  /** The bytes of the request at hand as an array of bulk strings, whatever the client typed. */
  requestBytes(bytes: Buffer, start: number, end: number): { bytes: Uint8Array; start: number; end: number } {
    if (bytes[start] === asterisk) return { bytes, start, end }
    const own = encodeCommand(this.argumentList())
    return { bytes: own, start: 0, end: own.length }
  }

  argumentList(): Uint8Array[] {
    const { parser } = this
    return Array.from({ length: parser.length }, (_, index) => this.argument(index)) as Uint8Array[]
  }

  argument(index: number): Uint8Array {
    return this.parser.bytes.subarray(this.parser.startOf(index), this.parser.endOf(index))
  }

  /** Sends the request at hand over a shared lane for a state. */
  sendShared(
    lane: SharedLane,
    command: ProxyCommand,
    bytes: Buffer,
    start: number,
    end: number,
    target: ReplyTarget = this,
  ): void {
    const request = this.requestBytes(bytes, start, end)
    const slot = this.slots.take()
    lane.send(request.bytes, request.start, request.end, target, slot, command.id, this.host.turn.nowMs)
  }

  /** Sends a request whose slot was taken before. */
  sendInto(slot: number, command: ProxyCommand, request: Uint8Array): void {
    if (this.#cluster !== undefined) this.#cluster.sendInto(slot, command, request)
    else this.commandLane().send(request, 0, request.length, this, slot, command.id, performance.now())
  }

  /** The keys that this client can read, and which of them are hot. */
  keySpace(): KeySpace {
    return (this.#keySpace ??= this.host.shield!.spaceOf(this.session.identity, this.session.database))
  }

  get #isBlocked(): boolean {
    return this.#isWaiting || this.#isHeld || this.#isPaused
  }

  #takeInput(): void {
    const input = this.#input
    while (!input.isEmpty && !this.#isBlocked && !this.#isEnding) {
      const { start } = input
      const taken = this.#take(input.bytes, start, input.end)
      input.consume(taken)
      if (taken === start) break
    }
  }

  /** Takes the requests that are there; gives the offset behind the last one. */
  #take(bytes: Buffer, start: number, end: number): number {
    let at = start
    const { parser } = this
    if (this.#backlog.isBehind || this.slots.owed > this.host.maxInFlight) this.#pause()
    while (at < end && !this.#isBlocked) {
      let next: number
      try {
        next = parser.parse(bytes, at, end)
      } catch (error) {
        if (!(error instanceof RequestError)) throw error
        this.answerNow(Buffer.from(`-${error.reply}\r\n`))
        this.endAfterReplies()
        return end
      }
      if (next === 0) {
        if (parser.missingBytes > streamedBytes && this.#begin(bytes, at, end)) return end
        break
      }
      if (parser.length > 0 && !this.#dispatch(bytes, at, next)) return at
      at = next
      if (this.#isEnding) return end
      if (this.own.pinned?.isPipe === true) {
        this.own.pinned.forward(bytes, at, end)
        return end
      }
    }
    return at
  }

  /** Begins to send a request on that is too large to be held: where its command and key are known by now. */
  #begin(bytes: Buffer, start: number, end: number): boolean {
    const { parser, host } = this
    const command = parser.length > 0 ? proxyCommandOf(this.args) : undefined
    const row = command?.row
    if (command?.isShared !== true || row?.hasSingleKey !== true || parser.length <= row.firstKey) return false
    if (!this.session.isKnown) return false
    const key = this.argument(row.firstKey)
    const node = host.cluster === undefined ? host.node : host.cluster.topology.nodeOf(keySlotOfBytes(key))
    if (this.own.pinned === undefined && host.cluster !== undefined) this.#clusterDispatch(host.cluster)
    if (!this.own.begin(command, bytes, start, end, node)) return false
    this.#rest = new RequestRest(parser.missingBytes, parser.expectedLength - parser.length - 1)
    parser.reset()
    return true
  }

  /** Sends one request its way; false where it has to wait. */
  #dispatch(bytes: Buffer, start: number, end: number): boolean {
    const command = proxyCommandOf(this.args)
    if (this.host.cluster !== undefined) return this.#dispatchToCluster(this.host.cluster, command, bytes, start, end)
    if (this.own.pinned !== undefined) return this.own.dispatch(this.own.pinned, command, bytes, start, end)
    if (command.isShared && !this.host.isIsolated && this.session.isKnown && !this.#backlog.isHeavy) {
      let target: ReplyTarget = this
      const { shield } = this.host
      if (shield?.isActive) {
        const seen = shield.see(this, command, this)
        if (seen === 'answered') return true
        if (seen === 'held') return false
        target = seen
      }
      const lane = this.commandLane()
      if (bytes[start] === asterisk) {
        lane.send(bytes, start, end, target, this.slots.take(), command.id, this.host.turn.nowMs)
      } else this.sendShared(lane, command, bytes, start, end, target)
      return true
    }
    return this.dispatchRare(command, bytes, start, end)
  }

  #dispatchToCluster(
    cluster: ClusterSettings,
    command: ProxyCommand,
    bytes: Buffer,
    start: number,
    end: number,
  ): boolean {
    if (!this.session.isKnown && command.way !== 'session') {
      this.answerNow(noAuth)
      return true
    }
    return this.#clusterDispatch(cluster).dispatch(command, bytes, start, end)
  }

  #clusterDispatch(cluster: ClusterSettings): ClusterDispatch {
    if (this.#cluster === undefined) {
      this.#cluster = new ClusterDispatch(this, cluster)
      this.own.inCluster(this.#cluster)
    }
    return this.#cluster
  }

  /** Where this client's plain commands go now. */
  commandLane(): SharedLane {
    const lane = this.#lane
    if (lane !== undefined && !lane.isRetired && (this.slots.owed > 0 || lane.use === 'commands')) return lane
    return (this.#lane = this.host.node.lane(this.session.snapshot()))
  }

  /** What is not plainly sent on. */
  dispatchRare(command: ProxyCommand, bytes: Buffer, start: number, end: number): boolean {
    if (!this.session.isKnown && command.way !== 'session') {
      this.answerNow(noAuth)
      return true
    }
    switch (command.way) {
      case 'session':
        return carryOut(this, command, bytes, start, end)
      case 'own': {
        const { shield } = this.host
        if (shield !== undefined && this.args.length === 3 && this.args.isWord(1, 'PEEK')) {
          this.answerNow(shield.peek(this, this.argument(2)))
          return true
        }
        const words = this.argumentList().map((word) => Buffer.from(word).toString())
        this.answerNow(encodeReply(firebreakCommand(words.slice(1), this.host.observed), this.session.version))
        return true
      }
      case 'cluster': {
        const only = this.host.onlyNode()
        if (only === undefined) return this.#seeAndSend(this.commandLane(), command, bytes, start, end)
        this.answerNow(encodeReply(clusterOfOne(command.name, only), this.session.version))
        return true
      }
      case 'info': {
        const request = this.requestBytes(bytes, start, end)
        const reply = new InfoReply(this, this.slots.take())
        const lane = this.commandLane()
        lane.send(request.bytes, request.start, request.end, reply, 0, command.id, this.host.turn.nowMs)
        return true
      }
      case 'script':
        if (this.host.isIsolated) return this.own.borrow(command, bytes, start, end)
        if (this.slots.owed > 0 && this.#lane?.use !== 'scripts') return this.waitForReplies()
        if (this.slots.owed === 0 || this.#lane === undefined || this.#lane.isRetired)
          this.#lane = this.host.node.lane(this.session.snapshot(), 'scripts')
        return this.#seeAndSend(this.#lane, command, bytes, start, end)
      case 'shared':
        if (this.host.isIsolated || this.#backlog.isHeavy || (command.mayBlock && mayBlock(command.row!, this.args)))
          return this.own.borrow(command, bytes, start, end)
        return this.#seeAndSend(this.commandLane(), command, bytes, start, end)
      default:
        return this.own.borrow(command, bytes, start, end)
    }
  }

  #seeAndSend(lane: SharedLane, command: ProxyCommand, bytes: Buffer, start: number, end: number): boolean {
    const { shield } = this.host
    const seen = shield?.isActive === true ? shield.see(this, command, this) : this
    if (seen === 'held') return false
    if (seen !== 'answered') this.sendShared(lane, command, bytes, start, end, seen)
    return true
  }

  /** The request at hand has to wait until all before it are answered. */
  waitForReplies(): false {
    this.#isWaiting = true
    this.#transport.pause()
    return false
  }

  #drained(): void {
    if (this.#isEnding) {
      this.end()
      return
    }
    this.#isWaiting = false
    this.goOn()
  }

  #pause(): void {
    this.#isPaused = true
    this.#transport.pause()
    this.outlet.flush()
    if (!this.#backlog.isBehind && this.slots.owed <= this.host.maxInFlight) {
      this.#isPaused = false
      this.#transport.resume()
    }
  }

  /** Goes on with requests after whatever held them up. */
  goOn(): void {
    if (this.#isClosed || this.#isEnding) return
    if (this.#isPaused && !this.#backlog.isBehind && this.slots.owed <= this.host.maxInFlight) this.#isPaused = false
    if (this.#isBlocked) return
    this.#takeInput()
    this.host.shield?.settle()
    if (!this.#isBlocked && !this.#isEnding) this.#transport.resume()
  }
}

const noAuth = Buffer.from('-NOAUTH Authentication required.\r\n')
