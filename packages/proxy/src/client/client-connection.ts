import type { BufferArgs } from '@firebreak/core/commands'
import type { RequestParser } from '@firebreak/core/resp'
import type { CombineOwner, KeyLimitedError, KeySpace } from '@firebreak/shield'
import { ClusterDispatch } from '../cluster/cluster-dispatch.ts'
import type { ProxyCommand } from '../commands/proxy-command.ts'
import type { UpstreamLostError } from '../errors.ts'
import { OwnLane } from '../lanes/own-lane.ts'
import { SharedLanes } from '../lanes/shared-lanes.ts'
import { Backlog } from '../replies/backlog.ts'
import { ReplySlots } from '../replies/reply-slots.ts'
import { lostReply } from '../replies/reply-text.ts'
import { ClientRequest } from '../requests/client-request.ts'
import { isRemovedUser } from '../session/removed-users.ts'
import type { Session } from '../session/session.ts'
import { Outlet } from '../transport/outlet.ts'
import type { Transport, TransportOwner } from '../transport/transport.ts'
import type { ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import { ClientFlow, holds } from './client-flow.ts'
import { Intake } from './intake.ts'
import type { ClientHost, ProxyClient } from './proxy-client.ts'
import { Standing } from './standing.ts'

const largeBytes = 4096

/**
 * One client of the proxy: what it sends goes to its intake, and replies return in the order of its requests.
 *
 * Most requests go over a lane that clients share. A request that needs a dedicated connection waits until all earlier
 * ones are answered, so that the server sees this client's requests in order whatever connection they arrive on; after
 * that, everything goes over the pinned lane until it is free again.
 */
export class ClientConnection implements TransportOwner, ProxyClient {
  readonly id: number
  readonly host: ClientHost
  readonly session: Session
  readonly outlet: Outlet
  readonly slots: ReplySlots
  readonly backlog: Backlog
  readonly request: ClientRequest
  readonly args: BufferArgs
  readonly parser: RequestParser
  readonly lanes: SharedLanes
  readonly own: OwnLane = new OwnLane(this)
  readonly cluster: ClusterDispatch | undefined
  readonly standing: Standing
  readonly #flow = new ClientFlow()
  readonly #intake: Intake
  #transport!: Transport
  #keySpace: KeySpace | undefined
  limitPass: 'paid' | KeyLimitedError | undefined
  youngestHot = 0
  combined: CombineOwner | undefined
  #gone: AbortController | undefined
  lastActiveMs: number
  readonly sinceMs: number

  constructor(id: number, host: ClientHost, session: Session) {
    this.id = id
    this.host = host
    this.session = session
    this.outlet = new Outlet('client', host.turn)
    this.slots = new ReplySlots(this.outlet)
    this.request = new ClientRequest(host.maxRequestBytes)
    this.parser = this.request.parser
    this.args = this.request.args
    this.lastActiveMs = this.sinceMs = host.turn.nowMs
    this.backlog = new Backlog(host, this.outlet, this.slots, () => host.onSlowReader(this))
    this.lanes = new SharedLanes(host, session, this.slots)
    this.cluster = host.cluster === undefined ? undefined : new ClusterDispatch(this, host.cluster)
    this.standing = new Standing(this)
    this.#intake = new Intake(this, this.#flow)
  }

  attach(transport: Transport): void {
    this.#transport = transport
    this.outlet.open(transport)
  }

  get isClosed(): boolean {
    return this.#flow.isClosed
  }

  get gone(): AbortSignal {
    return this.#flow.hasEnded ? AbortSignal.abort() : (this.#gone ??= new AbortController()).signal
  }

  get transport(): Transport {
    return this.#transport
  }

  /** True when nothing is owed and nothing has begun. */
  get isIdle(): boolean {
    return this.slots.owed === 0 && this.own.pinned === undefined && !this.#flow.isBlockedBy(holds.holder)
  }

  onData(bytes: Buffer, length: number): void {
    const { turn, shield } = this.host
    turn.beginEvent()
    this.lastActiveMs = turn.read()
    if (!this.#flow.isLeaving) this.#intake.receive(bytes, length)
    shield?.settle()
    turn.endEvent()
  }

  onUpstreamDrain(): void {
    this.#intake.onUpstreamDrain()
  }

  onDrain(): void {
    if (this.backlog.drained()) this.goOn()
  }

  onEnd(): void {
    this.#flow.end()
    this.#gone?.abort()
    this.backlog.expectReading()
    this.#finish()
  }

  onClose(): void {
    if (this.#flow.isLeaving || !this.#flow.isBlocked || this.#intake.isEmpty) {
      this.#close()
      return
    }
    // What it sent earlier is still carried out, as Redis does with what it has read.
    this.#flow.lose()
    this.onEnd()
    this.onDrain()
  }

  /** For a client that sends no more: closes it once everything it sent has been answered. */
  #finish(): void {
    this.own.finish()
    // Only the server knows what is owed on a pipe, and closes it.
    if (!this.#flow.isBlocked && !this.#flow.isLeaving && this.own.pinned?.isPipe !== true) this.endAfterReplies()
  }

  #close(): void {
    if (this.#flow.isClosed) return
    this.#flow.close()
    this.#intake.clear()
    this.slots.clear()
    this.own.release()
    this.backlog.close()
    this.#gone?.abort()
    this.host.onClientGone(this)
  }

  onReply(slot: number, bytes: Uint8Array, start: number, end: number, isLast: boolean): void {
    if (this.#flow.isClosed) return
    this.slots.reply(slot, bytes, start, end, isLast)
    this.backlog.weigh(end - start, isLast)
    if (!isLast) return
    if (this.slots.owed === 0) {
      if (this.#flow.isLeaving || this.#flow.isBlocked) this.#drained()
    } else if (this.#intake.isCrowdGone) this.goOn()
  }

  onLost(slot: number, error: UpstreamLostError, wasSent: boolean): void {
    if (this.#flow.isClosed) return
    if (this.slots.hasBegun && slot === this.slots.head) {
      this.destroy()
      return
    }
    this.slots.drop(slot)
    this.answer(slot, lostReply(error, wasSent))
    if (isRemovedUser(error) && this.session.hasShownUser) this.endAfterReplies()
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

  answer(slot: number, reply: Uint8Array): void {
    this.onReply(slot, reply, 0, reply.length, true)
  }

  answerNow(reply: Uint8Array, length = reply.length): void {
    if (this.slots.owed > 0) this.onReply(this.slots.take(), reply, 0, length, true)
    else if (!this.#flow.isClosed) this.outlet.put(reply, 0, length, true)
    // A pipeline of short requests may ask for more than any buffer should hold.
    if (length >= largeBytes && this.backlog.isBehind) this.#intake.waitForReader()
  }

  endAfterReplies(): void {
    this.#flow.leave()
    this.#intake.clear()
    if (this.slots.owed === 0) this.#drained()
  }

  end(): void {
    this.outlet.flush()
    this.#flow.leave()
    if (this.#flow.isLost) this.#close()
    else this.#transport.end()
  }

  destroy(): void {
    this.#close()
    this.#transport.destroy()
  }

  hold(): void {
    this.#flow.block(holds.holder)
  }

  letGo(): void {
    if (!this.#flow.isBlockedBy(holds.holder)) return
    this.#flow.unblock(holds.holder)
    this.goOn()
  }

  stateChanged(): void {
    this.lanes.forget()
    this.standing.renew()
    this.#keySpace = undefined
  }

  sendShared(lane: SharedLane, target: ReplyTarget = this, tag: number = this.slots.take()): void {
    const { bytes, start, end, command } = this.request
    lane.send(bytes, start, end, target, tag, command.id, this.host.turn.nowMs)
  }

  sendInto(slot: number, command: ProxyCommand, request: Uint8Array, target: ReplyTarget = this): void {
    if (this.cluster !== undefined) this.cluster.sendInto(slot, command, request, target)
    else this.lanes.forCommands().send(request, 0, request.length, target, slot, command.id, this.host.turn.read())
  }

  keySpace(): KeySpace {
    return (this.#keySpace ??= this.host.shield!.spaceOf(this.session.identity, this.session.database))
  }

  waitForReplies(): false {
    this.#flow.block(holds.replies)
    return false
  }

  forgetOwed(): void {
    this.slots.clear()
    if (!this.#flow.isLeaving) this.#drained()
    else if (this.#flow.hasEnded) this.own.finish()
  }

  #drained(): void {
    this.#flow.unblock(holds.replies)
    if (this.#flow.isLeaving) this.end()
    else this.goOn()
  }

  goOn(): void {
    if (this.#flow.isLeaving || !this.#intake.unblock()) return
    // Whatever released it may have been a timer, which is not a turn of its own.
    this.host.turn.read()
    this.#intake.takeInput()
    this.host.shield?.settle()
    if (this.#flow.hasEnded) this.#finish()
    else if (!this.#flow.isLeaving && !this.#intake.isFull) this.#transport.resume()
  }
}
