import { EventEmitter } from 'node:events'
import { publishCommand, type Redis, type RedisReply } from '@firebreak/redis'
import { type LockLostError, LocksClosedError, type LossReason } from '../errors.ts'
import { Hold, type HoldOrigin, type HoldRequest } from '../lease/hold.ts'
import { Watchdog } from '../lease/watchdog.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import { LockMetrics } from '../metrics/lock-metrics.ts'
import type { ResolvedLocksOptions } from '../options.ts'
import { Tokens } from '../token/tokens.ts'
import { GiveUp } from '../wait/give-up.ts'
import type { Waiter } from '../wait/waiter.ts'
import { WakeChannels } from '../wait/wake-channels.ts'
import type { AcquireRequest } from './acquire-request.ts'
import { acquireKept } from './kept-acquisition.ts'
import { KnownHolds } from './known-holds.ts'
import type { LostLock } from './lost-lock.ts'
import { isTransient, repeat } from './transient.ts'
import { WaitingRoom, type WaitingTask } from './waiting-room.ts'

/** How long a process' tasks leave a lock to others after handing it on among themselves for long enough. */
const headStartMs = 5

/**
 * What all kinds of locks share: trying, waiting, handing over, renewing, losing, releasing. A kind provides its
 * `LockProtocol`, the commands for Redis.
 */
export class LockEngine {
  readonly redis: Redis
  readonly options: ResolvedLocksOptions
  readonly metrics = new LockMetrics()
  readonly events = new EventEmitter<{ lost: [LostLock] }>()
  readonly watchdog: Watchdog
  readonly channels: WakeChannels
  readonly #room: WaitingRoom
  readonly #tokens: Tokens
  readonly #known = new KnownHolds()
  readonly #stopWatching: () => void
  readonly #mustKeep: boolean
  #reconnects = 0
  #isClosed = false

  constructor(redis: Redis, options: ResolvedLocksOptions) {
    this.redis = redis
    // Known before the first release, which then need not wait for it.
    if (redis.topology === 'cluster') void publishCommand(redis)
    this.options = options
    this.#mustKeep = options.replicas !== undefined || options.fsync !== undefined
    this.#tokens = new Tokens(redis.topology === 'standalone', options.tokenMemoryMs)
    this.watchdog = new Watchdog(redis, options, (hold, reason) => this.#lose(hold, reason))
    this.channels = new WakeChannels(redis, options.channelLingerMs, options.timers)
    this.#room = new WaitingRoom(options, this.channels, {
      try: (protocol, request, giveUp) => this.#try(protocol, request, giveUp, this.now()),
      persist: (call, giveUp) => this.#persist(call, this.now() + options.leaseMs / 3, asIs, giveUp),
    })
    this.#stopWatching = redis.onReconnect(() => {
      this.#reconnects++
      this.#tokens.reconnected()
      this.watchdog.verify()
    })
  }

  now(): number {
    return this.options.clock.now()
  }

  /** This owner's hold, if it still has one. */
  holdOf(protocol: LockProtocol, owner: string): Hold | undefined {
    const hold = this.#known.get(protocol, owner)
    return hold?.isHeldAt(this.now()) ? hold : undefined
  }

  /** Whether an owner, known or not, holds the lock. */
  isHolding(protocol: LockProtocol, owner: string): boolean {
    for (const hold of this.watchdog.holds()) {
      if (hold.owner === owner && hold.protocol.id === protocol.id) return hold.isHeldAt(this.now())
    }
    return false
  }

  /** Repeats an idempotent call over transient errors for a third of a lease. */
  persistently<T>(call: () => Promise<T>): Promise<T> {
    return this.#persist(call, this.now() + this.options.leaseMs / 3, asIs)
  }

  waiting(): ReadonlySet<WaitingTask> {
    return this.#room.tasks()
  }

  /** A first acquisition of this owner in progress. */
  pendingOf(protocol: LockProtocol, owner: string): Promise<unknown> | undefined {
    return this.#known.pendingOf(protocol, owner)
  }

  /** `acquire` for an owner that may call again before it is done; `pendingOf` shows it meanwhile. */
  acquireAlone(protocol: LockProtocol, request: AcquireRequest): Promise<Hold | undefined> {
    return this.#known.track(protocol, request.owner, this.acquire(protocol, request, asIs))
  }

  /**
   * Takes the lock for an owner that does not have it: returns the result of `use`, undefined if its time ran out
   * first.
   */
  acquire<R>(protocol: LockProtocol, request: AcquireRequest, use: (hold: Hold) => R): Promise<R | undefined> {
    if (this.#isClosed) return Promise.reject(new LocksClosedError())
    const startedAt = this.now()
    // Usually nobody waits here and there is no time limit: then a single attempt is all there is.
    const isPlain = request.waitMs === Number.POSITIVE_INFINITY && request.signal === undefined
    if (!isPlain || this.#room.hasWaiters(protocol)) {
      return useWhenHeld(this.#acquireBounded(protocol, request, startedAt), use)
    }
    return this.#attempt<R | undefined>(protocol, request, undefined, startedAt, (result) =>
      result instanceof Hold ? use(result) : useWhenHeld(this.#wait(protocol, request, undefined, startedAt), use),
    )
  }

  async #acquireBounded(protocol: LockProtocol, request: AcquireRequest, startedAt: number): Promise<Hold | undefined> {
    const { waitMs, signal } = request
    signal?.throwIfAborted()
    const isBounded = waitMs > 0 && (waitMs !== Number.POSITIVE_INFINITY || signal !== undefined)
    const giveUp = isBounded ? new GiveUp(waitMs, signal, this.options.timers) : undefined
    try {
      // A newcomer queues behind those already waiting, unless it would not wait at all.
      if (waitMs <= 0 || !this.#room.hasWaiters(protocol)) {
        const result = await this.#try(protocol, request, giveUp, startedAt)
        if (result instanceof Hold) return result
        if (waitMs <= 0 || result === 'gave-up') return this.#refuse(protocol, request)
      }
      return await this.#wait(protocol, request, giveUp, startedAt)
    } finally {
      giveUp?.dispose()
    }
  }

  async #wait(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
    startedAt: number,
  ): Promise<Hold | undefined> {
    const hold = request.isSpinning
      ? await this.#room.spin(protocol, request, giveUp)
      : await this.#room.wait(protocol, request, giveUp, startedAt)
    if (hold === undefined) return this.#refuse(protocol, request)
    this.metrics.contended++
    this.metrics.wait.record(this.now() - startedAt)
    return hold
  }

  /** Another entry of an owner that has the lock. */
  async reenter(hold: Hold): Promise<void> {
    const count = ++hold.count
    let sentAt = 0
    let isOurs: boolean
    try {
      isOurs = await this.#persist(
        () => {
          sentAt = this.now()
          return hold.protocol.setCount(hold.owner, count, hold.leaseMs)
        },
        hold.deadline,
        asIs,
      )
    } catch (error) {
      hold.count--
      throw error
    }
    if (!isOurs) throw this.#lose(hold, 'taken')
    hold.deadline = Math.max(hold.deadline, sentAt + hold.leaseMs)
  }

  /** Gives a lease a new length, counted from now; false if the lock is no longer ours. */
  async extend(hold: Hold, leaseMs: number): Promise<boolean> {
    if (!hold.isHeldAt(this.now())) return false
    return this.#persist(() => this.watchdog.extend(hold, leaseMs), hold.deadline, asIs)
  }

  /** Leaves one entry; true if the lock was ours until now. */
  release(hold: Hold): Promise<boolean> {
    const now = this.now()
    if (!hold.isHeldAt(now)) {
      if (hold.state === 'held') this.#lose(hold, 'expired')
      return Promise.resolve(false)
    }
    const count = --hold.count
    if (count > 0) return this.#leave(hold, count)
    const { protocol } = hold
    hold.state = 'released'
    // If passed on in one script, a lock would count as taken before any replica or the append-only file has it.
    const heir = protocol.handOver === undefined || this.#mustKeep ? undefined : this.#room.heirOf(protocol)
    // Sent before the bookkeeping here: Redis works meanwhile.
    const freeing = heir === undefined ? this.#free(hold) : this.#pass(hold, heir)
    this.#forget(hold)
    this.metrics.released++
    this.metrics.hold.record(now - hold.acquiredAt)
    return freeing
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopWatching()
    this.watchdog.close()
    this.#room.close()
    await this.channels.close()
  }

  async #leave(hold: Hold, count: number): Promise<boolean> {
    const isOurs = await this.#persist(() => hold.protocol.setCount(hold.owner, count, 0), hold.deadline, asIs)
    if (!isOurs && hold.state === 'held') this.#lose(hold, 'taken')
    return isOurs
  }

  /**
   * Redis may say that the lock is not ours because an earlier copy of the same request freed it and its reply was
   * lost: our own retry, or the client's after a reconnect. Then it was released, not lost.
   */
  #free(hold: Hold, onFreed?: (listening: number) => void): Promise<boolean> {
    const reconnects = this.#reconnects
    let sendings = 0
    const send = () => {
      sendings++
      return hold.protocol.release(hold.owner)
    }
    return this.#persist(send, hold.deadline, (reply) => {
      const isFreed = Number(reply) > 0
      if (isFreed) onFreed?.(Number(reply) - 1)
      if (isFreed || sendings > 1 || reconnects !== this.#reconnects) return true
      this.#lose(hold, 'taken')
      return false
    })
  }

  /** Passes it to the heir or, after enough hand-offs, to whoever is fastest. */
  #pass(hold: Hold, heir: Waiter): Promise<boolean> {
    heir.expectHand()
    return hold.handoffs < this.options.maxLocalHandoffs ? this.#handOver(hold, heir) : this.#offer(hold, heir)
  }

  /**
   * Frees the lock for the other processes first: the heir is notified like them and could win each time if it is
   * nearer to Redis. If nobody else listens, it tries at once.
   */
  async #offer(hold: Hold, heir: Waiter): Promise<boolean> {
    let listening = 0
    try {
      return await this.#free(hold, (count) => {
        listening = count
      })
    } finally {
      if (listening > 1) this.options.timers.setTimeout(() => heir.missHand(), headStartMs)
      else heir.missHand()
    }
  }

  /** Releases and acquires for the heir in one script. */
  async #handOver(hold: Hold, heir: Waiter): Promise<boolean> {
    const { protocol } = hold
    let sentAt = 0
    let connection = 0
    let token: number
    try {
      token = await this.#persist(
        () => {
          sentAt = this.now()
          connection = this.#tokens.connection
          return protocol.handOver!(hold.owner, this.#callFor(protocol, heir.request, true))
        },
        hold.deadline,
        asIs,
      )
      const ask = () => protocol.acquire(this.#callFor(protocol, heir.request, true))
      token = await this.#tokens.settled(protocol.id, token, connection, () =>
        this.#persist(ask, hold.deadline, Number),
      )
    } catch (error) {
      heir.missHand()
      throw error
    }
    if (token === 0) {
      heir.missHand()
      this.#lose(hold, 'taken')
      return false
    }
    this.metrics.handedOver++
    const origin = { token, sentAt, acquiredAt: this.now(), handoffs: hold.handoffs + 1 }
    const handed = this.#begin(protocol, heir.request, origin)
    if (heir.hasGivenUp) await this.release(handed)
    else heir.hand(handed)
    return true
  }

  /** One attempt; returns the milliseconds to wait if the lock is busy. */
  #try(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
    now: number,
  ): Promise<Hold | number | 'gave-up'> {
    const attempt = this.#attempt(protocol, request, giveUp, now, asIs)
    if (giveUp === undefined) return attempt
    return giveUp.race(attempt, (late) => {
      if (late instanceof Hold) this.release(late).catch(() => {})
    })
  }

  /** One attempt, repeated over transient errors; returns the result of `use`: a hold, or the milliseconds to wait. */
  #attempt<R>(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
    now: number,
    use: (result: Hold | number) => R | Promise<R>,
  ): Promise<R> {
    let sentAt = 0
    let connection = 0
    const send = () => {
      sentAt = sentAt === 0 ? now : this.now()
      connection = this.#tokens.connection
      const call = this.#callFor(protocol, request, request.waitMs > 0)
      return this.#mustKeep ? acquireKept(this.redis, protocol, call, this.options) : protocol.acquire(call)
    }
    const conclude = (reply: RedisReply): R | Promise<R> => {
      if (Number(reply) > 0) {
        // It may be sent over one connection and answered over another: see `Tokens.settled`.
        if (connection !== this.#tokens.connection) return this.#attempt(protocol, request, giveUp, this.now(), use)
        this.#tokens.note(protocol.id, Number(reply))
      }
      return use(this.#conclude(protocol, request, Number(reply), sentAt))
    }
    return this.#persist(send, now + this.options.leaseMs / 3, conclude, giveUp)
  }

  #callFor(protocol: LockProtocol, { owner, leaseMs }: HoldRequest, willWait: boolean): AcquireCall {
    return { owner, leaseMs, willWait, ...this.#tokens.callFor(protocol.id) }
  }

  #conclude(protocol: LockProtocol, request: AcquireRequest, reply: number, sentAt: number): Hold | number {
    if (reply <= 0) return reply === 0 ? Number.POSITIVE_INFINITY : -1 - reply
    const now = this.now()
    if (now >= sentAt + request.leaseMs) {
      // The answer took longer than the lease, so it is out of date. Redis may have started counting later.
      protocol.release(request.owner).catch(() => {})
      return 0
    }
    return this.#begin(protocol, request, { token: reply, sentAt, acquiredAt: now, handoffs: 0 })
  }

  #refuse(protocol: LockProtocol, request: AcquireRequest): undefined {
    this.metrics.refused++
    if (request.waitMs > 0) protocol.abandon?.(request.owner).catch(() => {})
    request.signal?.throwIfAborted()
    return undefined
  }

  #begin(protocol: LockProtocol, request: HoldRequest, origin: HoldOrigin): Hold {
    const hold = new Hold(protocol, request, origin)
    this.metrics.acquired++
    this.#known.add(hold)
    this.watchdog.add(hold)
    return hold
  }

  #forget(hold: Hold): void {
    this.watchdog.remove(hold)
    this.#known.remove(hold)
  }

  #lose(hold: Hold, reason: LossReason): LockLostError {
    this.#forget(hold)
    if (hold.state === 'held') this.metrics.hold.record(this.now() - hold.acquiredAt)
    this.metrics.lost[reason]++
    const error = hold.lose(reason)
    const { protocol, owner, token } = hold
    this.events.emit('lost', { name: protocol.name, kind: protocol.kind, owner, token, reason, error })
    return error
  }

  /**
   * Makes a call, repeats it over transient errors, and returns the result of `conclude`. Nearly every call succeeds at
   * once; only failed ones are retried.
   */
  #persist<T, R>(
    call: () => Promise<T>,
    until: number,
    conclude: (value: T) => R | Promise<R>,
    giveUp?: GiveUp,
  ): Promise<R> {
    return call().then(conclude, (error) => {
      const { clock, timers } = this.options
      // Whatever broke, the next attempt may reach another server.
      if (isTransient(error)) this.#tokens.doubt()
      const hasEnded = () => giveUp?.reason !== undefined || this.#isClosed
      return repeat(call, error, { until, hasEnded, clock, timers }).then(conclude)
    })
  }
}

function useWhenHeld<R>(holding: Promise<Hold | undefined>, use: (hold: Hold) => R): Promise<R | undefined> {
  return holding.then((hold) => (hold === undefined ? undefined : use(hold)))
}

function asIs<T>(value: T): T {
  return value
}
