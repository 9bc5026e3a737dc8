import { asListener, InvalidOptionError, type Runtime, systemRuntime, type TimerHandle } from '@firebreak/core'
import { type Redis, type RedisClient, type RedisSubscriber, replyErrorCode, toRedis } from '@firebreak/redis'
import { removeVoucher } from '../end/remove-voucher.ts'
import { OrderStoreError } from '../errors.ts'
import { expireUnpaid } from '../purchase/settle-order.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'
import type { OrderStore } from '../store/order-store.ts'
import { voucherWrong } from '../voucher.ts'
import { GuardedStore } from './guarded-store.ts'
import { OrdersStream } from './orders-stream.ts'
import { type OrderWorkerCounts, VoucherLane } from './voucher-lane.ts'

/** Options of a worker, which takes orders from the streams to the store. */
export interface OrderWorkerOptions {
  readonly store: OrderStore
  /** This worker's name in the consumer group; one name, one running worker. */
  readonly name: string
  /** The vouchers to serve. @default all ever opened or sold, looked up every `scanMs` */
  readonly voucherIds?: readonly string[]
  /** Entries stored in one transaction. @default 100 */
  readonly batch?: number
  /**
   * An entry that a worker took this long ago without settling it is taken over; one that failed through its own fault
   * is retried after the same time. @default 10000
   */
  readonly claimAfterMs?: number
  /**
   * An entry that failed this many times through its own fault goes to the dead letters; outages never count. @default
   * 5
   */
  readonly maxDeliveries?: number
  /** Dead letters of one voucher; further ones stay pending in the stream. @default 100000 */
  readonly maxDeadLetters?: number
  /** Entries of one voucher that may wait for others; beyond that no new ones are taken. @default 1000 */
  readonly maxHeld?: number
  /**
   * How often to check without a notification: for dead workers' entries, new vouchers, unpaid orders. An idle voucher
   * is checked less and less often, down to every 32nd time. @default 1000
   */
  readonly scanMs?: number
  /** Takes back orders that are not paid within the sale's `payWithinMs`. @default true */
  readonly expireUnpaid?: boolean
  /** How long a stored entry stays in the stream; `Infinity`: forever. @default 3600000 (an hour) */
  readonly keepStoredMs?: number
  /**
   * How long after its end (or its last event, if later) a voucher's data is removed from Redis, if nothing is in
   * progress; `Infinity`: never. @default 15552000000 (180 days)
   */
  readonly keepEndedMs?: number
  /** A store that does not answer for this long is down. @default 30000 */
  readonly storeTimeoutMs?: number
  /** While the store is down it is retried after 100 ms, then after twice that, up to this. @default 5000 */
  readonly maxRetryMs?: number
  /** Called for every dead letter and failure, and once when the store goes down; the worker continues. */
  readonly onError?: (error: Error) => void
  /** Called when the store has recovered, with how long it was down. */
  readonly onRecovery?: (downMs: number) => void
  /** @default the system's */
  readonly runtime?: Runtime
}

const bounds = [
  'batch',
  'claimAfterMs',
  'maxDeliveries',
  'maxDeadLetters',
  'maxHeld',
  'scanMs',
  'storeTimeoutMs',
  'maxRetryMs',
] as const
const spans = ['keepStoredMs', 'keepEndedMs'] as const
const firstRetryMs = 100
/** How soon entries that wait for another worker are retried: initially, and at most. */
const firstWaitMs = 5
const lastWaitMs = 200
const trimEveryMs = 10_000
const removeEveryMs = 3_600_000
const expirePerScan = 1000
/** Vouchers taken up at a time. */
const takenUpAtOnce = 16

/**
 * Takes order events from the vouchers' streams to the store: at least once, settled after the commit, and in order for
 * each user whatever the number of workers (see `VoucherLane`).
 *
 * A worker that dies leaves its entries pending; the others take them over after `claimAfterMs`. An entry that cannot
 * be parsed, that the database has no room for, or that failed `maxDeliveries` times by its own fault goes to the
 * voucher's dead-letter stream with the reason. A store that is down stops the worker: nothing counts against any
 * entry, nothing new is taken, and the worker continues where it was when the store recovers.
 */
export class OrderWorker {
  readonly counts: OrderWorkerCounts = { stored: 0, dead: 0, claimed: 0, expired: 0, failures: 0, outages: 0 }
  readonly #redis: Redis
  readonly #options: Required<Omit<OrderWorkerOptions, 'voucherIds'>> & Pick<OrderWorkerOptions, 'voucherIds'>
  readonly #store: GuardedStore
  readonly #lanes = new Map<string, VoucherLane>()
  readonly #awake = new Set<string>()
  /** Vouchers whose keys do not belong to a sale; each is reported once. */
  readonly #refused = new Set<string>()
  #mustScan = true
  #starting: Promise<void> | undefined
  #subscriber: RedisSubscriber | undefined
  #scanTimer: TimerHandle | undefined
  #waitTimer: TimerHandle | undefined
  #waitMs = firstWaitMs
  #outage: { readonly since: number; retryMs: number } | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(redis: RedisClient, options: OrderWorkerOptions) {
    this.#redis = toRedis(redis)
    this.#options = {
      batch: 100,
      claimAfterMs: 10_000,
      maxDeliveries: 5,
      maxDeadLetters: 100_000,
      maxHeld: 1000,
      scanMs: 1000,
      expireUnpaid: true,
      keepStoredMs: 3_600_000,
      keepEndedMs: 180 * 86_400_000,
      storeTimeoutMs: 30_000,
      maxRetryMs: 5000,
      runtime: systemRuntime,
      ...options,
      onError: asListener(options.onError ?? (() => {})),
      onRecovery: asListener(options.onRecovery ?? (() => {})),
    }
    for (const option of bounds) checkBound(option, this.#options[option])
    for (const option of spans) checkSpan(option, this.#options[option])
    this.#store = new GuardedStore(options.store, this.#options.storeTimeoutMs, this.#options.runtime)
  }

  /** `waiting`: the store is down, and the worker retries it periodically. */
  get state(): 'running' | 'waiting' | 'closed' {
    if (this.#isClosed) return 'closed'
    return this.#outage === undefined ? 'running' : 'waiting'
  }

  /** Once only, however often it is called; after a failure it can be tried again, after `close` it does nothing. */
  start(): Promise<void> {
    this.#starting ??= this.#start().catch((error: Error) => {
      this.#starting = undefined
      throw error
    })
    return this.#starting
  }

  async #start(): Promise<void> {
    if (this.#isClosed) return
    this.#subscriber = await this.#redis.subscriber()
    // Closed meanwhile: `close` found no subscriber to close.
    if (this.#isClosed) return this.#subscriber.close()
    this.#subscriber.onReconnect(() => {
      for (const lane of this.#lanes.values()) lane.wake()
      this.#scan()
    })
    this.#scanTimer = this.#options.runtime.timers.setInterval(() => this.#scan(), this.#options.scanMs)
    this.#scan()
  }

  /** Ends after the current batch. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#scanTimer?.cancel()
    this.#waitTimer?.cancel()
    await this.#running
    await this.#subscriber?.close()
  }

  #scan(): void {
    this.#mustScan = true
    if (this.#outage === undefined) this.#run()
  }

  /** One loop at a time; a wake-up during it is served by it. */
  #run(): void {
    if (this.#running !== undefined || this.#isClosed) return
    this.#running = this.#loop()
      .then(
        () => this.#recovered(),
        (error: Error) => this.#stopped(error),
      )
      .finally(() => {
        this.#running = undefined
        this.#waitForOthers()
      })
  }

  async #loop(): Promise<void> {
    // With nothing to store, a pass over the lanes would say nothing about the store.
    if (this.#outage !== undefined) await this.#store.probe([...this.#lanes.keys()][0] ?? '')
    while (!this.#isClosed && (this.#mustScan || this.#awake.size > 0)) {
      if (this.#mustScan) {
        this.#mustScan = false
        await this.#discover()
        for (const lane of this.#lanes.values()) {
          if (this.#isClosed) return
          if (!lane.isDue()) continue
          await this.#guarded(lane, () => this.#lookAfter(lane))
          this.#awake.add(lane.stream.voucherId)
          // Orders of a selling voucher do not wait until all others have been checked.
          await this.#serveAwake()
        }
      }
      await this.#serveAwake()
    }
  }

  async #serveAwake(): Promise<void> {
    for (const voucherId of this.#awake) {
      this.#awake.delete(voucherId)
      const lane = this.#lanes.get(voucherId)
      if (lane !== undefined) await this.#guarded(lane, () => this.#drain(lane))
    }
  }

  async #drain(lane: VoucherLane): Promise<void> {
    const settled = await lane.drain(() => this.#isClosed)
    if (settled === 0) return
    this.#waitMs = firstWaitMs
    lane.wake()
  }

  /** One voucher's trouble must not hold up the others; only a store that is down holds up all. */
  async #guarded(lane: VoucherLane, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (isOutage(error)) throw error
      // A Redis that came back without its data has lost the group: the next scan recreates it.
      if (replyErrorCode(error) === 'NOGROUP') await this.#leave(lane)
      else this.#failed(error as Error)
    }
  }

  async #leave(lane: VoucherLane): Promise<void> {
    const { voucherId } = lane.stream
    this.#lanes.delete(voucherId)
    this.#awake.delete(voucherId)
    // If the connection is lost, an extra message wakes nobody.
    await this.#subscriber?.unsubscribe(saleKeys(voucherId).channel).catch(() => {})
  }

  /** Besides new orders: dead workers' entries, unpaid orders, and data that need not be kept. */
  async #lookAfter(lane: VoucherLane): Promise<void> {
    const { expireUnpaid: isExpiring, keepStoredMs, keepEndedMs, runtime } = this.#options
    await lane.takeOver()
    const expired = isExpiring ? await expireUnpaid(this.#redis, lane.stream.voucherId, expirePerScan) : 0
    this.counts.expired += expired
    if (expired === 0 && !lane.holds && (await lane.stream.isIdle())) {
      lane.rest()
      if (keepEndedMs !== Number.POSITIVE_INFINITY && runtime.clock.now() >= lane.removeAt) {
        lane.removeAt = runtime.clock.now() + removeEveryMs
        const result = await removeVoucher(this.#redis, lane.stream.voucherId, keepEndedMs)
        if (result === 'removed') return this.#leave(lane)
      }
    } else lane.wake()
    if (runtime.clock.now() < lane.trimAt || keepStoredMs === Number.POSITIVE_INFINITY) return
    await lane.stream.trim(keepStoredMs)
    lane.trimAt = runtime.clock.now() + trimEveryMs
  }

  async #discover(): Promise<void> {
    const ids = this.#options.voucherIds ?? ((await this.#redis.send(['SMEMBERS', registryKey])) as string[])
    const unknown = ids.filter((voucherId) => !this.#lanes.has(voucherId))
    for (let from = 0; from < unknown.length; from += takenUpAtOnce) {
      const outcomes = await Promise.allSettled(
        unknown.slice(from, from + takenUpAtOnce).map((voucherId) => this.#takeUpSound(voucherId)),
      )
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
      await this.#serveAwake()
    }
  }

  /** An error about one voucher's keys is no reason to skip the others. */
  async #takeUpSound(voucherId: string): Promise<void> {
    try {
      await this.#takeUp(voucherId)
    } catch (error) {
      if (replyErrorCode(error) !== 'WRONGTYPE') throw error
      if (this.#refused.has(voucherId)) return
      this.#refused.add(voucherId)
      this.#failed(voucherWrong(voucherId, 'one of its keys', 'of another type', 'as the sale made it'))
    }
  }

  async #takeUp(voucherId: string): Promise<void> {
    const keys = saleKeys(voucherId)
    const [stock, total] = (await this.#redis.send(['HMGET', keys.voucher, 'stock', 'total'])) as (string | null)[]
    // The hash may be gone, deleted after the sale or expired: what it sold is stored anyway.
    if (stock === null && Number(await this.#redis.send(['EXISTS', keys.orders])) === 0) return
    // Only for entries that do not carry the total themselves.
    if (total !== null && Number.isSafeInteger(Number(total))) await this.#store.setTotal(voucherId, Number(total))
    const stream = new OrdersStream(this.#redis, voucherId, this.#options.name)
    await stream.makeGroup()
    await this.#subscriber?.subscribe(keys.channel, () => {
      this.#lanes.get(voucherId)?.wake()
      this.#awake.add(voucherId)
      if (this.#outage === undefined) this.#run()
    })
    const { batch, claimAfterMs, maxDeliveries, maxDeadLetters, maxHeld, runtime } = this.#options
    const lane = new VoucherLane(stream, this.#store, {
      batch,
      claimAfterMs,
      maxDeliveries,
      maxDeadLetters,
      maxHeld,
      counts: this.counts,
      nowMs: () => runtime.clock.now(),
      onError: (error) => this.#failed(error),
    })
    this.#lanes.set(voucherId, lane)
    this.#refused.delete(voucherId)
  }

  /** Entries that wait for other workers, or for their next attempt, are checked again soon. */
  #waitForOthers(): void {
    if (this.#isClosed || this.#outage !== undefined) return
    const waiting = [...this.#lanes.values()].filter(({ holds }) => holds)
    if (waiting.length === 0) return
    this.#waitTimer?.cancel()
    this.#waitTimer = this.#options.runtime.timers.setTimeout(() => {
      for (const { stream } of waiting) this.#awake.add(stream.voucherId)
      this.#run()
    }, this.#waitMs)
    this.#waitMs = Math.min(this.#waitMs * 2, lastWaitMs)
  }

  #stopped(error: Error): void {
    const { runtime, maxRetryMs } = this.#options
    if (!isOutage(error) || this.#outage === undefined) this.#failed(error)
    if (isOutage(error) && this.#outage === undefined) {
      this.#outage = { since: runtime.clock.now(), retryMs: firstRetryMs }
      this.counts.outages++
    }
    // Redis failed, and the store is not known to be down: the next scan continues.
    if (this.#outage === undefined) return
    const { retryMs } = this.#outage
    this.#outage.retryMs = Math.min(retryMs * 2, maxRetryMs)
    for (const lane of this.#lanes.values()) lane.rewind()
    this.#mustScan = true
    if (this.#isClosed) return
    this.#waitTimer?.cancel()
    // Not all workers at once: the store has just come back.
    this.#waitTimer = runtime.timers.setTimeout(() => this.#run(), retryMs * (0.5 + runtime.random() / 2))
  }

  #recovered(): void {
    if (this.#outage === undefined) return
    const { since } = this.#outage
    this.#outage = undefined
    this.#options.onRecovery(this.#options.runtime.clock.now() - since)
  }

  #failed(error: Error): void {
    if (this.#isClosed) return
    this.counts.failures++
    this.#options.onError(error)
  }
}

function checkBound(option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new InvalidOptionError(option, value, 'a whole number of 1 or more')
}

function checkSpan(option: string, value: number): void {
  if (typeof value !== 'number' || !(value >= 0))
    throw new InvalidOptionError(option, value, 'milliseconds, 0 or more, or Infinity')
}

function isOutage(error: unknown): boolean {
  return error instanceof OrderStoreError && error.isOutage
}
