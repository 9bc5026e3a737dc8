import { systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import { type Redis, type RedisClient, type RedisSubscriber, replyErrorCode, toRedis } from '@firebreak/redis'
import { registryKey, saleKeys } from '../sale-keys.ts'
import type { OrderStore, StoreResult } from '../store/order-store.ts'
import { entriesOf, parseEntry, type StreamEntry, streamEntries } from './stream-entry.ts'

/** How a worker takes orders from the streams to the store. */
export interface OrderWorkerOptions {
  readonly store: OrderStore
  /** This worker's name in the consumer group; one name, one running worker. */
  readonly name: string
  /** The vouchers to serve. @default all that were ever opened, looked up every `scanMs` */
  readonly voucherIds?: readonly string[]
  /** Entries stored in one transaction. @default 100 */
  readonly batch?: number
  /** An entry that a worker took so long ago and did not acknowledge is taken over. @default 10000 */
  readonly claimAfterMs?: number
  /** An entry delivered this often without success goes to the dead letters. @default 5 */
  readonly maxDeliveries?: number
  /** How often to look without being told: for dead workers' entries and new vouchers. @default 1000 */
  readonly scanMs?: number
  /** Told of every failure; the worker goes on. */
  readonly onError?: (error: Error) => void
  readonly timers?: Timers
}

/** What a worker did since it was started. */
export interface OrderWorkerCounts {
  stored: number
  dead: number
  claimed: number
  failures: number
}

const group = 'orders'

/**
 * Takes order events from the vouchers' streams to the store: at least once, acknowledged after the commit.
 *
 * A worker that dies leaves its entries pending; the others take them over after `claimAfterMs`. An entry that cannot
 * be parsed, that the database rejects for good, or that failed `maxDeliveries` times goes to the voucher's dead-letter
 * stream with the reason, and out of the way. Work starts when the purchase script says `placed` on the channel.
 */
export class OrderWorker {
  readonly counts: OrderWorkerCounts = { stored: 0, dead: 0, claimed: 0, failures: 0 }
  readonly #redis: Redis
  readonly #options: Required<Omit<OrderWorkerOptions, 'voucherIds'>> & Pick<OrderWorkerOptions, 'voucherIds'>
  readonly #known = new Set<string>()
  readonly #awake = new Set<string>()
  #mustScan = true
  #subscriber: RedisSubscriber | undefined
  #timer: TimerHandle | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(redis: RedisClient, options: OrderWorkerOptions) {
    this.#redis = toRedis(redis)
    this.#options = {
      batch: 100,
      claimAfterMs: 10_000,
      maxDeliveries: 5,
      scanMs: 1000,
      onError: () => {},
      timers: systemTimers,
      ...options,
    }
  }

  async start(): Promise<void> {
    this.#subscriber = await this.#redis.subscriber()
    this.#subscriber.onReconnect(() => this.#scan())
    this.#timer = this.#options.timers.setInterval(() => this.#scan(), this.#options.scanMs)
    this.#scan()
  }

  /** Ends after the batch under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
    await this.#subscriber?.close()
  }

  #scan(): void {
    this.#mustScan = true
    this.#run()
  }

  /** One loop at a time; a wake-up during it is served by it. */
  #run(): void {
    if (this.#running !== undefined || this.#isClosed) return
    this.#running = this.#loop()
      .catch((error: Error) => this.#failed(error))
      .finally(() => {
        this.#running = undefined
      })
  }

  async #loop(): Promise<void> {
    while (!this.#isClosed && (this.#mustScan || this.#awake.size > 0)) {
      if (this.#mustScan) {
        this.#mustScan = false
        await this.#discover()
        for (const voucherId of this.#known) {
          await this.#guarded(voucherId, () => this.#takeOver(voucherId))
          this.#awake.add(voucherId)
        }
      }
      for (const voucherId of this.#awake) {
        this.#awake.delete(voucherId)
        await this.#guarded(voucherId, () => this.#drain(voucherId))
      }
    }
  }

  /** One voucher's trouble must not hold up the others. */
  async #guarded(voucherId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      // A Redis that came back without its data has lost the group: the next scan makes it again.
      if (replyErrorCode(error) === 'NOGROUP') this.#known.delete(voucherId)
      else this.#failed(error as Error)
    }
  }

  async #drain(voucherId: string): Promise<void> {
    while (!this.#isClosed) {
      const entries = await this.#read(voucherId)
      if (entries.length === 0) return
      await this.#work(voucherId, entries)
    }
  }

  async #discover(): Promise<void> {
    const ids = this.#options.voucherIds ?? ((await this.#redis.send(['SMEMBERS', registryKey])) as string[])
    for (const voucherId of ids) {
      if (this.#known.has(voucherId)) continue
      const keys = saleKeys(voucherId)
      const total = (await this.#redis.send(['HGET', keys.voucher, 'total'])) as string | null
      if (total === null) continue
      await this.#options.store.setTotal(voucherId, Number(total))
      try {
        await this.#redis.send(['XGROUP', 'CREATE', keys.orders, group, '0', 'MKSTREAM'], { key: keys.orders })
      } catch (error) {
        if (replyErrorCode(error) !== 'BUSYGROUP') throw error
      }
      await this.#subscriber?.subscribe(keys.channel, () => {
        this.#awake.add(voucherId)
        this.#run()
      })
      this.#known.add(voucherId)
    }
  }

  async #read(voucherId: string): Promise<StreamEntry[]> {
    const { orders } = saleKeys(voucherId)
    const { name, batch } = this.#options
    const read = ['XREADGROUP', 'GROUP', group, name, 'COUNT', batch, 'STREAMS', orders, '>'] as const
    return streamEntries(await this.#redis.send(read, { key: orders }))
  }

  /** Takes over what dead workers left, and puts what failed too often among the dead letters. */
  async #takeOver(voucherId: string): Promise<void> {
    const { orders } = saleKeys(voucherId)
    const { name, batch, claimAfterMs, maxDeliveries } = this.#options
    const pending = ['XPENDING', orders, group, 'IDLE', claimAfterMs, '-', '+', batch] as const
    const waiting = (await this.#redis.send(pending, { key: orders })) as [string, string, number, number][]
    if (waiting.length === 0) return
    const deliveries = new Map(waiting.map(([id, , , count]) => [id, Number(count)]))
    const claim = ['XCLAIM', orders, group, name, claimAfterMs, ...deliveries.keys()] as const
    const entries = entriesOf(await this.#redis.send(claim, { key: orders }))
    this.counts.claimed += entries.length
    const fresh: StreamEntry[] = []
    for (const entry of entries) {
      const count = deliveries.get(entry.id) ?? 0
      if (count >= maxDeliveries) await this.#bury(voucherId, entry, `it failed ${count} times`)
      else fresh.push(entry)
    }
    if (fresh.length > 0) await this.#work(voucherId, fresh)
  }

  async #work(voucherId: string, entries: readonly StreamEntry[]): Promise<void> {
    const good = []
    for (const entry of entries) {
      const parsed = parseEntry(voucherId, entry)
      if (parsed.kind === 'event') good.push({ entry, event: parsed.event })
      else await this.#bury(voucherId, entry, parsed.reason)
    }
    if (good.length === 0) return
    let results: StoreResult[]
    try {
      results = await this.#options.store.store(good.map(({ event }) => event))
    } catch (error) {
      this.#failed(error as Error)
      // One bad entry must not hold up the others of its batch: each is tried alone, a failing one stays pending.
      if (good.length > 1) for (const { entry } of good) await this.#work(voucherId, [entry])
      return
    }
    const stored: string[] = []
    for (const [index, { entry }] of good.entries()) {
      const result = results[index]!
      if (result.kind === 'stored') stored.push(entry.id)
      else await this.#bury(voucherId, entry, result.reason)
    }
    this.counts.stored += stored.length
    const { orders } = saleKeys(voucherId)
    if (stored.length > 0) await this.#redis.send(['XACK', orders, group, ...stored], { key: orders })
  }

  async #bury(voucherId: string, entry: StreamEntry, reason: string): Promise<void> {
    const { orders, dead } = saleKeys(voucherId)
    await this.#redis.send([
      'XADD',
      dead,
      'MAXLEN',
      '~',
      10_000,
      '*',
      'entry',
      entry.id,
      'reason',
      reason,
      ...entry.fields,
    ])
    await this.#redis.send(['XACK', orders, group, entry.id], { key: orders })
    this.counts.dead++
  }

  #failed(error: Error): void {
    if (this.#isClosed) return
    this.counts.failures++
    this.#options.onError(error)
  }
}
