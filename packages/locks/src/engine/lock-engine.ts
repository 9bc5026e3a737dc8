import { EventEmitter } from 'node:events'
import type { Redis } from '@firebreak/redis'
import {
  type LockLostError,
  LockNotReplicatedError,
  LockQueueFullError,
  LocksClosedError,
  type LossReason,
} from '../errors.ts'
import { Hold, type HoldRequest } from '../lease/hold.ts'
import { Watchdog } from '../lease/watchdog.ts'
import type { LockKind, LockProtocol } from '../lock/protocol.ts'
import { LockMetrics } from '../metrics/lock-metrics.ts'
import type { ResolvedLocksOptions } from '../options.ts'
import { GiveUp } from '../wait/give-up.ts'
import { WaitLine } from '../wait/wait-line.ts'
import { Waiter } from '../wait/waiter.ts'
import { WaiterHeartbeat } from '../wait/waiter-heartbeat.ts'
import { WakeChannels } from '../wait/wake-channels.ts'
import { persist } from './transient.ts'

/** One request for a lock by one owner. */
export interface AcquireRequest extends HoldRequest {
  /** 0: one try. Infinity: for ever. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
  /** Ask again and again with growing pauses instead of subscribing. */
  readonly isSpinning?: boolean
}

/** A lock that was lost, as the event tells it. */
export interface LostLock {
  readonly name: string
  readonly kind: LockKind
  readonly owner: string
  readonly token: number
  readonly reason: LossReason
  readonly error: LockLostError
}

/** One task that waits, for snapshots. */
export interface WaitingTask {
  readonly protocol: LockProtocol
  readonly owner: string
  readonly since: number
}

/**
 * What all kinds of locks share: trying, waiting, handing over, renewing, losing, releasing. A kind brings its
 * `LockProtocol`, which says in what words Redis is asked.
 */
export class LockEngine {
  readonly redis: Redis
  readonly options: ResolvedLocksOptions
  readonly metrics = new LockMetrics()
  readonly events = new EventEmitter<{ lost: [LostLock] }>()
  readonly watchdog: Watchdog
  readonly channels: WakeChannels
  readonly #heartbeat: WaiterHeartbeat
  readonly #lines = new Map<string, WaitLine>()
  /** What known owners hold, by lock and owner. */
  readonly #holds = new Map<string, Hold>()
  /** First acquisitions of known owners that are under way, by lock and owner. */
  readonly #pending = new Map<string, Promise<Hold | undefined>>()
  readonly #waiting = new Set<WaitingTask>()
  readonly #closing = new AbortController()
  readonly #stopWatching: () => void
  #seenToken = 0
  /** The highest token seen before the last reconnect: Redis can only have forgotten what was before one. */
  #tokenFloor = 0
  #reconnects = 0

  constructor(redis: Redis, options: ResolvedLocksOptions) {
    this.redis = redis
    this.options = options
    this.watchdog = new Watchdog(redis, options, (hold, reason) => this.#lose(hold, reason))
    this.channels = new WakeChannels(redis, options.channelLingerMs, options.timers)
    this.#heartbeat = new WaiterHeartbeat(options.waiterTtlMs / 3, options.timers)
    this.#stopWatching = redis.onReconnect(() => {
      this.#reconnects++
      this.#tokenFloor = this.#seenToken
      this.watchdog.verify()
    })
  }

  now(): number {
    return this.options.clock.now()
  }

  /** What this owner holds, where it still does. */
  holdOf(protocol: LockProtocol, owner: string): Hold | undefined {
    const hold = this.#holds.get(`${protocol.id} ${owner}`)
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
    return this.#persist(call, this.now() + this.options.leaseMs / 3)
  }

  waiting(): ReadonlySet<WaitingTask> {
    return this.#waiting
  }

  /** A first acquisition of this owner that is under way. */
  pendingOf(protocol: LockProtocol, owner: string): Promise<unknown> | undefined {
    return this.#pending.get(`${protocol.id} ${owner}`)
  }

  /** `acquire` for an owner that may call again before it is done; `pendingOf` shows it meanwhile. */
  acquireAlone(protocol: LockProtocol, request: AcquireRequest): Promise<Hold | undefined> {
    const key = `${protocol.id} ${request.owner}`
    const acquiring = this.acquire(protocol, request).finally(() => this.#pending.delete(key))
    this.#pending.set(key, acquiring)
    return acquiring
  }

  /** Takes the lock for an owner that does not have it; undefined when its time was over first. */
  async acquire(protocol: LockProtocol, request: AcquireRequest): Promise<Hold | undefined> {
    request.signal?.throwIfAborted()
    if (this.#closing.signal.aborted) throw new LocksClosedError()
    const startedAt = this.now()
    const isBounded =
      request.waitMs > 0 && (request.waitMs !== Number.POSITIVE_INFINITY || request.signal !== undefined)
    const giveUp = isBounded ? new GiveUp(request.waitMs, request.signal, this.options.timers) : undefined
    try {
      const hasLine = (this.#lines.get(protocol.id)?.size ?? 0) > 0
      // Who comes while others wait stands behind them, unless it would not wait at all.
      if (!hasLine || request.waitMs <= 0) {
        const result = await this.#try(protocol, request, giveUp)
        if (result instanceof Hold) return result
        if (request.waitMs <= 0 || result === 'gave-up') return this.#refuse(protocol, request)
      }
      const hold = request.isSpinning
        ? await this.#spin(protocol, request, giveUp)
        : await this.#wait(protocol, request, giveUp, startedAt)
      if (hold === undefined) return this.#refuse(protocol, request)
      this.metrics.contended++
      this.metrics.wait.record(this.now() - startedAt)
      return hold
    } finally {
      giveUp?.dispose()
    }
  }

  /** One more entry of an owner that has the lock. */
  async reenter(hold: Hold): Promise<void> {
    const count = ++hold.count
    let sentAt = 0
    let isOurs: boolean
    try {
      isOurs = await this.#persist(() => {
        sentAt = this.now()
        return hold.protocol.setCount(hold.owner, count, hold.leaseMs)
      }, hold.deadline)
    } catch (error) {
      hold.count--
      throw error
    }
    if (!isOurs) throw this.#lose(hold, 'taken')
    hold.deadline = Math.max(hold.deadline, sentAt + hold.leaseMs)
  }

  /** Leaves one entry; true when the lock was ours until now. */
  async release(hold: Hold): Promise<boolean> {
    const now = this.now()
    if (!hold.isHeldAt(now)) {
      if (hold.state === 'held') this.#lose(hold, 'expired')
      return false
    }
    const { protocol, owner } = hold
    const count = --hold.count
    if (count > 0) {
      const isOurs = await this.#persist(() => protocol.setCount(owner, count, 0), hold.deadline)
      if (!isOurs && hold.state === 'held') this.#lose(hold, 'taken')
      return isOurs
    }
    this.#forget(hold)
    hold.state = 'released'
    this.metrics.released++
    this.metrics.hold.record(now - hold.acquiredAt)
    const canHandOver = protocol.handOver !== undefined && hold.handoffs < this.options.maxLocalHandoffs
    const heir = canHandOver ? this.#lines.get(protocol.id)?.heir : undefined
    return heir === undefined ? this.#free(hold) : this.#handOver(hold, heir)
  }

  async close(): Promise<void> {
    this.#closing.abort(new LocksClosedError())
    this.#stopWatching()
    this.watchdog.close()
    this.#heartbeat.close()
    await this.channels.close()
  }

  /**
   * Redis may say that the lock is not ours because an earlier sending of the same request freed it and its reply was
   * lost: our own repetition, or the client's after a reconnect. Then it is not lost but released.
   */
  async #free(hold: Hold): Promise<boolean> {
    const reconnects = this.#reconnects
    let sendings = 0
    const isOurs = await this.#persist(() => {
      sendings++
      return hold.protocol.release(hold.owner)
    }, hold.deadline)
    if (isOurs || sendings > 1 || reconnects !== this.#reconnects) return true
    this.#lose(hold, 'taken')
    return false
  }

  /** Releases and acquires for the heir in one script. */
  async #handOver(hold: Hold, heir: Waiter): Promise<boolean> {
    heir.expectHand()
    const { protocol } = hold
    const { owner, leaseMs } = heir.request
    let sentAt = 0
    let token: number
    try {
      token = await this.#persist(() => {
        sentAt = this.now()
        return protocol.handOver!(hold.owner, { owner, leaseMs, tokenFloor: this.#tokenFloor, willWait: true })
      }, hold.deadline)
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
    const handed = this.#begin(protocol, heir.request, token, sentAt, hold.handoffs + 1)
    if (heir.hasGivenUp) await this.release(handed)
    else heir.hand(handed)
    return true
  }

  /** One try, repeated over transient errors; the milliseconds to wait when the lock is busy. */
  #try(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
  ): Promise<Hold | number | 'gave-up'> {
    const until = this.now() + this.options.leaseMs / 3
    const attempt = this.#persist(() => this.#attempt(protocol, request), until, giveUp)
    if (giveUp === undefined) return attempt
    return giveUp.race(attempt, (late) => {
      if (late instanceof Hold) this.release(late).catch(() => {})
    })
  }

  async #attempt(protocol: LockProtocol, request: AcquireRequest): Promise<Hold | number> {
    const sentAt = this.now()
    const { owner, leaseMs } = request
    const tokenFloor = this.#tokenFloor
    const attempt = await protocol.acquire({ owner, leaseMs, tokenFloor, willWait: request.waitMs > 0 })
    if ('waitMs' in attempt) return attempt.waitMs
    const hold = this.#begin(protocol, request, attempt.token, sentAt, 0)
    if (this.options.replicas !== undefined) await this.#awaitReplicas(hold)
    // The answer took longer than the lease: what it says is over.
    return hold.isHeldAt(this.now()) ? hold : 0
  }

  async #awaitReplicas(hold: Hold): Promise<void> {
    const { count, timeoutMs } = this.options.replicas!
    const answer = await this.redis.send(['WAIT', count, timeoutMs], { key: hold.protocol.leaseKey })
    const acknowledged = Number(answer)
    if (acknowledged >= count) return
    await this.release(hold)
    throw new LockNotReplicatedError(hold.protocol.name, acknowledged, count)
  }

  async #wait(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
    since: number,
  ): Promise<Hold | undefined> {
    if (this.#waiting.size >= this.options.maxWaiting)
      throw new LockQueueFullError(protocol.name, this.options.maxWaiting)
    const line = this.#openLine(protocol)
    const waiter = new Waiter(request, this.options.timers)
    const task: WaitingTask = { protocol, owner: request.owner, since }
    const onClose = () => waiter.giveUp()
    this.#closing.signal.addEventListener('abort', onClose)
    giveUp?.onGiveUp(onClose)
    line.join(waiter)
    this.#waiting.add(task)
    let hold: Hold | undefined
    try {
      hold = await this.#waitInLine(line, waiter, request, giveUp)
    } finally {
      this.#waiting.delete(task)
      this.#closing.signal.removeEventListener('abort', onClose)
      line.leave(waiter, hold?.leaseMs)
      if (line.size === 0) this.#closeLine(line)
    }
    if (hold === undefined) this.#closing.signal.throwIfAborted()
    return hold
  }

  async #waitInLine(
    line: WaitLine,
    waiter: Waiter,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
  ): Promise<Hold | undefined> {
    const ready = this.#persist(() => line.ready(), this.now() + this.options.leaseMs / 3, giveUp)
    if ((await (giveUp === undefined ? ready : giveUp.race(ready, () => {}))) === 'gave-up') return undefined
    // What happened before the subscription stood was not told: look once.
    if (line.looks(waiter)) waiter.look()
    let pauseMs = Number.POSITIVE_INFINITY
    for (;;) {
      const reason = await waiter.pause(pauseMs)
      if (reason === 'gave-up') return undefined
      if (reason === 'handed') return waiter.handed
      const result = await this.#try(line.protocol, request, giveUp)
      if (result === 'gave-up') return undefined
      if (result instanceof Hold) return result
      // A holder without an end was written by somebody else's hand; look now and then.
      pauseMs = Math.min(result, this.options.leaseMs)
    }
  }

  /** For very many locks that are seldom waited for: no subscription, pauses that double with jitter. */
  async #spin(protocol: LockProtocol, request: AcquireRequest, giveUp: GiveUp | undefined): Promise<Hold | undefined> {
    const waiter = new Waiter(request, this.options.timers)
    giveUp?.onGiveUp(() => waiter.giveUp())
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 128)) {
      if ((await waiter.pause(pauseMs * (0.5 + Math.random() / 2))) === 'gave-up') return undefined
      const result = await this.#try(protocol, request, giveUp)
      if (result === 'gave-up') return undefined
      if (result instanceof Hold) return result
      if (this.#closing.signal.aborted) throw new LocksClosedError()
    }
  }

  #openLine(protocol: LockProtocol): WaitLine {
    const id = protocol.id
    const known = this.#lines.get(id)
    if (known !== undefined) return known
    const line = new WaitLine(protocol, this.channels)
    this.#lines.set(id, line)
    if (protocol.keepWaiting !== undefined) this.#heartbeat.add(line)
    return line
  }

  #closeLine(line: WaitLine): void {
    const id = line.protocol.id
    if (this.#lines.get(id) !== line) return
    this.#lines.delete(id)
    this.#heartbeat.remove(line)
    line.close()
  }

  #refuse(protocol: LockProtocol, request: AcquireRequest): undefined {
    this.metrics.refused++
    if (request.waitMs > 0) protocol.abandon?.(request.owner).catch(() => {})
    request.signal?.throwIfAborted()
    return undefined
  }

  #begin(protocol: LockProtocol, request: HoldRequest, token: number, sentAt: number, handoffs: number): Hold {
    if (token > this.#seenToken) this.#seenToken = token
    const hold = new Hold(protocol, request, { token, sentAt, acquiredAt: this.now(), handoffs })
    this.metrics.acquired++
    if (request.isKnown) this.#holds.set(`${protocol.id} ${hold.owner}`, hold)
    this.watchdog.add(hold)
    return hold
  }

  #forget(hold: Hold): void {
    this.watchdog.remove(hold)
    if (!hold.isKnown) return
    const key = `${hold.protocol.id} ${hold.owner}`
    if (this.#holds.get(key) === hold) this.#holds.delete(key)
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

  #persist<T>(call: () => Promise<T>, until: number, giveUp?: GiveUp): Promise<T> {
    const hasEnded = () => giveUp?.reason !== undefined || this.#closing.signal.aborted
    return persist(call, { until, hasEnded, clock: this.options.clock, timers: this.options.timers })
  }
}
