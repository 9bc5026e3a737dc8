import type { UpstreamLostError } from '../errors.ts'
import type { ConnectTarget } from '../transport/transport.ts'
import type { ConnectionState } from './identity.ts'
import { type ReplyReceiver, UpstreamConnection, type UpstreamSettings } from './upstream-connection.ts'

/** What shared connections are for: commands, or scripts, which may keep their connection busy. */
export type LaneUse = 'commands' | 'scripts'

/** Who asked something on a shared connection; `tag` is its own number for the request. */
export interface ReplyTarget {
  /** A piece of the reply, the last one where `isLast`; `type` is its first byte. */
  onReply(tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void
  /** The reply will not come, or its rest will not. Where `wasSent`, the server may have done what was asked. */
  onLost(tag: number, error: UpstreamLostError, wasSent: boolean): void
  /** True while more is owed to the client, before what it gets for `tag`, than it may leave unread. */
  isStalled?(tag: number): boolean
  /** Calls back once it reads again, or is gone. */
  whenUnstalled?(callback: () => void, tag: number): void
  /** As the two before, of a much lower bound, where nobody else has to wait and nothing presses. */
  isBehind?(tag: number): boolean
  whenCaughtUp?(callback: () => void, tag: number): void
  /** What it sends from now on may go over another connection than what it has asked for. */
  onBypassed?(): void
}

/** Who keeps the lanes of a node. */
export interface LaneKeeper {
  /** It takes no more requests. */
  onRetired(lane: SharedLane): void
  /** Its connection is gone. */
  onClosed(lane: SharedLane): void
  /** The server has ended it. */
  onCut(lane: SharedLane): void
}

/** Is told of each reply when its request was sent. */
export type LatencySink = (commandId: number, sentMs: number, target: ReplyTarget) => void

// Small replies are not worth a look at their reader's backlog.
const largeBytes = 4096
// Behind a reply that is larger than this nobody else should have to wait.
const hugeBytes = 1024 * 1024

const push = 0x3e

/**
 * One connection to Redis that many clients share: requests go out in the order they come, replies come back in the
 * same order, so a ring of who asked is all it takes to bring each reply home.
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
  /** The place of a reply that comes in large pieces, and how much of it has come. */
  #largeAt = -1
  #largeBytes = 0
  /**
   * Set where nobody may begin to use it: a huge reply is on its way, or it is gone. Who has asked for something and has
   * no answer yet stays: its requests are carried out in their order only on one connection.
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

  /** Bytes that Redis has not taken. */
  get queuedBytes(): number {
    return this.#connection.outlet.queuedBytes
  }

  /** Requests that it was ever given. */
  get sentCount(): number {
    return this.#tail
  }

  /** Requests that were answered. */
  get answeredCount(): number {
    return this.#head
  }

  get inFlight(): number {
    return this.#tail - this.#head
  }

  /** Calls back once the server has taken user, protocol and database; at once where it has. */
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

  /** Notes that a reply is to come for bytes put on the lane in another way. */
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

  /** Takes no more requests; closes once the last reply is in. */
  retire(): void {
    if (this.isRetired) return
    this.isRetired = true
    this.#keeper.onRetired(this)
  }

  /** Gives the connection up; everybody who waits on it is told. */
  lose(reason: string): void {
    this.#connection.lose(reason)
  }

  close(): void {
    this.retire()
    this.#connection.destroy()
    this.#keeper.onClosed(this)
  }

  /** Looks after a large piece of a reply: nobody new comes behind a huge one, and a slow reader makes it wait. */
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

  /** Others go on over a new connection; only those whose replies are behind on this one wait along. */
  giveWay(): void {
    if (this.isRetired) return
    this.retire()
    for (let index = this.#head; index < this.#tail; index++) this.#targets[index & this.#mask]!.onBypassed?.()
  }

  /**
   * A reader is slower than its replies come: the rest of them stays in Redis and in the kernel until it has read. One
   * that nobody waits behind may take its time.
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

  /** Those whose replies come behind and who read as little are told on with the first, not one after the other. */
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
