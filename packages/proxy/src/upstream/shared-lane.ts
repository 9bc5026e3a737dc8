import type { UpstreamLostError } from '../errors.ts'
import type { ConnectTarget } from '../transport/transport.ts'
import type { ConnectionState } from './identity.ts'
import { type ReplyReceiver, UpstreamConnection, type UpstreamSettings } from './upstream-connection.ts'

/** What shared connections are for: commands, or scripts, which may keep their connection busy. */
export type LaneUse = 'commands' | 'scripts'

/** Who sent a request on a shared connection; `tag` is its own number for the request. */
export interface ReplyTarget {
  /** A piece of the reply, the last one if `isLast`; `type` is its first byte. */
  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void
  /** The reply, or the rest of it, will not arrive. With `wasSent`, the server may have carried out the request. */
  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void
  /** True while the client has more unread output, before what it gets for `tag`, than allowed. */
  isStalled?(tag: number): boolean
  /** Calls back once it reads again, or is gone. */
  whenUnstalled?(callback: () => void, tag: number): void
  /** Like the two above, with a much lower bound, for when nobody else is waiting. */
  isBehind?(tag: number): boolean
  whenCaughtUp?(callback: () => void, tag: number): void
  /** Its later requests may go over another connection than its pending ones. */
  onBypassed?(): void
}

/** Manages the lanes of a node. */
export interface LaneKeeper {
  /** It accepts no more requests. */
  onRetired(lane: SharedLane): void
  /** Its connection is gone. */
  onClosed(lane: SharedLane): void
  /** The server has closed it. */
  onCut(lane: SharedLane): void
}

/** Called for each reply with the time when its request was sent. */
export type LatencySink = (commandId: number, sentMs: number, target: ReplyTarget) => void

// For small replies it is not worth checking their reader's backlog.
const largeBytes = 4096
// Nobody else should have to wait behind a reply larger than this.
const hugeBytes = 1024 * 1024

const push = 0x3e

/**
 * One connection to Redis that many clients share: requests are sent in order, replies arrive in the same order, so a
 * ring of senders is all it takes to route each reply.
 */
export class SharedLane implements ReplyReceiver {
  readonly target: ConnectTarget
  readonly state: ConnectionState
  readonly use: LaneUse
  readonly #settings: UpstreamSettings
  readonly #onLatency: LatencySink
  readonly #keeper: LaneKeeper
  #connection: UpstreamConnection
  #targets: (ReplyTarget | undefined)[] = new Array(256).fill(undefined)
  #tags = new Float64Array(256)
  #commands = new Uint16Array(256)
  #times = new Float64Array(256)
  #mask = 255
  #head = 0
  #tail = 0
  /** The position of a reply that arrives in large pieces, and how much of it has arrived. */
  #largeAt = -1
  #largeBytes = 0
  /**
   * Set if no new client may use it: a huge reply is on its way, or it is gone. Clients with pending requests stay,
   * because their requests are only carried out in order on one connection.
   */
  isRetired = false

  constructor(
    target: ConnectTarget,
    state: ConnectionState,
    use: LaneUse,
    settings: UpstreamSettings,
    onLatency: LatencySink,
    keeper: LaneKeeper,
  ) {
    this.target = target
    this.state = state
    this.use = use
    this.#settings = settings
    this.#onLatency = onLatency
    this.#keeper = keeper
    this.#connection = new UpstreamConnection(this.target, this.state, this, this.#settings)
  }

  get address(): string {
    return this.#connection.address
  }

  get isReady(): boolean {
    return this.#connection.isReady
  }

  get isClosed(): boolean {
    return this.#connection.isClosed
  }

  /** Bytes not yet accepted by Redis. */
  get queuedBytes(): number {
    return this.#connection.outlet.queuedBytes
  }

  /** Number of requests it has been given. */
  get sentCount(): number {
    return this.#tail
  }

  /** Number of requests that were answered. */
  get answeredCount(): number {
    return this.#head
  }

  get inFlight(): number {
    return this.#tail - this.#head
  }

  /** Calls back once the server has accepted user, protocol and database; at once if it has. */
  whenReady(callback: () => void): void {
    if (this.#connection.isReady) {
      callback()
      return
    }
    const before = this.#connection.onReady
    this.#connection.onReady = () => {
      before?.()
      callback()
    }
  }

  /** Sends a request, `bytes` from `start` to `end`; its reply goes to `target`. */
  send(
    bytes: Uint8Array,
    start: number,
    end: number,
    target: ReplyTarget,
    tag: number,
    commandId: number,
    nowMs: number,
  ): void {
    this.#connection.outlet.put(bytes, start, end)
    this.expect(target, tag, commandId, nowMs)
  }

  /** Registers a reply for bytes written to the lane in another way. */
  expect(target: ReplyTarget, tag: number, commandId: number, nowMs: number): void {
    if (this.#tail - this.#head > this.#mask) this.#grow()
    const place = this.#tail++ & this.#mask
    this.#targets[place] = target
    this.#tags[place] = tag
    this.#commands[place] = commandId
    this.#times[place] = nowMs
  }

  onReply(bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    if (type === push || this.#head === this.#tail) return
    const place = this.#head & this.#mask
    const target = this.#targets[place]!
    if (isLast) {
      this.#targets[place] = undefined
      this.#head++
      this.#onLatency(this.#commands[place]!, this.#times[place]!, target)
    }
    target.onReply(this.#tags[place]!, bytes, start, end, isLast, type)
    if (end - start >= largeBytes) this.#weigh(target, this.#tags[place]!, end - start, isLast)
    if (isLast && this.isRetired && this.#head === this.#tail) this.close()
  }

  onLost(error: UpstreamLostError, wasReady: boolean): void {
    this.retire()
    this.#keeper.onClosed(this)
    if (wasReady) this.#keeper.onCut(this)
    const head = this.#head
    const tail = this.#tail
    this.#head = tail
    for (let index = head; index < tail; index++) {
      const place = index & this.#mask
      const target = this.#targets[place]!
      this.#targets[place] = undefined
      target.onLost(this.#tags[place]!, error, wasReady)
    }
  }

  /** Accepts no more requests; closes once the last reply has arrived. */
  retire(): void {
    if (this.isRetired) return
    this.isRetired = true
    this.#keeper.onRetired(this)
  }

  /** Closes the connection and notifies everyone who waits on it. */
  lose(reason: string): void {
    this.#connection.lose(reason)
  }

  close(): void {
    this.retire()
    this.#connection.destroy()
    this.#keeper.onClosed(this)
  }

  /** Handles a large piece of a reply: no new client queues behind a huge one, and a slow reader makes it wait. */
  #weigh(target: ReplyTarget, tag: number, bytes: number, isLast: boolean): void {
    if (!isLast) {
      if (this.#largeAt !== this.#head) this.#largeBytes = 0
      this.#largeAt = this.#head
      this.#largeBytes += bytes
      if (this.#largeBytes > hugeBytes) this.giveWay()
    }
    const isAlone = this.isRetired && this.inFlight === (isLast ? 0 : 1)
    if (isAlone ? target.isBehind?.(tag) === true : target.isStalled?.(tag) === true) this.#stall(target, tag, isAlone)
  }

  /** Other clients continue on a new connection; only those with replies still due on this one wait too. */
  giveWay(): void {
    if (this.isRetired) return
    this.retire()
    for (let index = this.#head; index < this.#tail; index++) this.#targets[index & this.#mask]!.onBypassed?.()
  }

  /**
   * A reader is slower than its replies arrive: the rest of them stays in Redis and in the kernel until it has read. If
   * nobody waits behind it, it may take its time.
   */
  #stall(target: ReplyTarget, tag: number, isAlone: boolean): void {
    this.giveWay()
    this.#connection.pause()
    const goOn = () => this.#connection.resume()
    if (isAlone) target.whenCaughtUp!(goOn, tag)
    else {
      target.whenUnstalled!(goOn, tag)
      this.#tellOnOthers(target)
    }
  }

  /** Other slow readers with replies due behind this one are reported along with it, not one after another. */
  #tellOnOthers(first: ReplyTarget): void {
    const known = new Set([first])
    for (let index = this.#head; index < this.#tail; index++) {
      const place = index & this.#mask
      const target = this.#targets[place]!
      if (known.has(target)) continue
      known.add(target)
      const tag = this.#tags[place]!
      if (target.isStalled?.(tag) === true) target.whenUnstalled!(() => {}, tag)
    }
  }

  #grow(): void {
    const size = this.#mask + 1
    const larger = size * 2
    const targets: (ReplyTarget | undefined)[] = new Array(larger).fill(undefined)
    const tags = new Float64Array(larger)
    const commands = new Uint16Array(larger)
    const times = new Float64Array(larger)
    for (let index = this.#head; index < this.#tail; index++) {
      const from = index & this.#mask
      const to = index & (larger - 1)
      targets[to] = this.#targets[from]
      tags[to] = this.#tags[from]!
      commands[to] = this.#commands[from]!
      times[to] = this.#times[from]!
    }
    this.#targets = targets
    this.#tags = tags
    this.#commands = commands
    this.#times = times
    this.#mask = larger - 1
  }
}
