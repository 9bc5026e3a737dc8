import { loadScript, type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { SaleError } from '../errors.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'
import { checkVoucher, type Voucher } from '../voucher.ts'
import { SoldOutMemory, type SoldOutMemoryOptions } from './sold-out-memory.ts'

const openScript = loadScript(new URL('./open.lua', import.meta.url))
const purchaseScript = loadScript(new URL('./purchase.lua', import.meta.url))
const settleScript = loadScript(new URL('./settle.lua', import.meta.url))

/** Where order ids come from: a snowflake or segment source of `@firebreak/ids`, or anything that never repeats. */
export interface OrderIds {
  next(): string | Promise<string>
}

/** How a sale is run. */
export interface SaleOptions {
  readonly ids: OrderIds
  /** An order that is not paid after this long can be taken back; 0: never. @default 900000 (15 minutes) */
  readonly payWithinMs?: number
  readonly soldOutMemory?: SoldOutMemoryOptions
}

/** The answer to one purchase. */
export type PurchaseResult =
  | { readonly code: 'sold'; readonly orderId: string; readonly number: number }
  | { readonly code: 'soldout'; readonly source: 'redis' | 'memory' }
  | { readonly code: 'bought'; readonly held: number }
  | { readonly code: 'early'; readonly beginsInSeconds: number }
  | { readonly code: 'late'; readonly endedSecondsAgo: number }

/** What an order can be. */
export type OrderState = 'placed' | 'paid' | 'cancelled' | 'expired'

/** The answer to a payment, a cancellation or an expiry: it counts once only. */
export interface SettleResult {
  readonly result: 'done' | 'already' | 'refused' | 'early' | 'unknown'
  readonly state: OrderState | ''
}

const defaultPayWithinMs = 15 * 60_000

/** Sells vouchers: never more than there are, never twice to one user, by one script on Redis' own clock. */
export class Sale {
  readonly #redis: Redis
  readonly #ids: OrderIds
  readonly #payWithinMs: number
  readonly #memory: SoldOutMemory
  readonly #publish: 'PUBLISH' | 'SPUBLISH'

  constructor(redis: RedisClient, options: SaleOptions) {
    this.#redis = toRedis(redis)
    this.#ids = options.ids
    this.#payWithinMs = options.payWithinMs ?? defaultPayWithinMs
    this.#memory = new SoldOutMemory(this.#redis, options.soldOutMemory)
    this.#publish = this.#redis.topology === 'cluster' ? 'SPUBLISH' : 'PUBLISH'
  }

  /** Puts a voucher on sale. One that is there already keeps its stock: opening twice resets nothing. */
  async open(voucher: Voucher): Promise<{ readonly isNew: boolean }> {
    checkVoucher(voucher)
    const isNew = await this.#redis.run(
      openScript,
      [saleKeys(voucher.id).voucher],
      [voucher.begin, voucher.end, voucher.stock, voucher.perUser ?? 1],
    )
    await this.#redis.send(['SADD', registryKey, voucher.id])
    return { isNew: isNew === 1 }
  }

  /** One try of one user to buy one item. */
  async purchase(voucherId: string, userId: string): Promise<PurchaseResult> {
    if (this.#memory.isSoldOut(voucherId)) return { code: 'soldout', source: 'memory' }
    const keys = saleKeys(voucherId)
    const orderId = await this.#ids.next()
    const [code, number] = (await this.#redis.run(
      purchaseScript,
      [keys.voucher, keys.users, keys.counts, keys.orders, keys.states, keys.unpaid],
      [userId, orderId, this.#payWithinMs, keys.channel, this.#publish],
    )) as [PurchaseResult['code'] | 'unknown', number]
    switch (code) {
      case 'sold':
        return { code, orderId, number }
      case 'soldout':
        this.#memory.remember(voucherId, number)
        return { code, source: 'redis' }
      case 'bought':
        return { code, held: number }
      case 'early':
        return { code, beginsInSeconds: number }
      case 'late':
        return { code, endedSecondsAgo: number }
      case 'unknown':
        throw new SaleError('FB_SALE_VOUCHER_UNKNOWN', voucherId, `there is no voucher ${voucherId}; open it first`)
    }
  }

  pay(voucherId: string, orderId: string): Promise<SettleResult> {
    return this.#settle(voucherId, orderId, 'paid')
  }

  /** Takes an order back: the item returns to the stock once only, and every process hears that there is one again. */
  cancel(voucherId: string, orderId: string): Promise<SettleResult> {
    return this.#settle(voucherId, orderId, 'cancelled')
  }

  /** Takes back orders whose time to pay is over; gives how many. Call it from any number of processes. */
  async expireUnpaid(voucherId: string, limit = 100): Promise<number> {
    const time = (await this.#redis.send(['TIME'], { key: saleKeys(voucherId).voucher })) as [string, string]
    const now = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000)
    const due = (await this.#redis.send([
      'ZRANGE',
      saleKeys(voucherId).unpaid,
      '-inf',
      now,
      'BYSCORE',
      'LIMIT',
      0,
      limit,
    ])) as string[]
    const results = await Promise.all(due.map((orderId) => this.#settle(voucherId, orderId, 'expired')))
    return results.filter(({ result }) => result === 'done').length
  }

  /** The state of an order as Redis knows it, at once after the purchase; undefined: no such order. */
  async orderState(
    voucherId: string,
    orderId: string,
  ): Promise<{ state: OrderState; userId: string; number: number } | undefined> {
    const entry = (await this.#redis.send(['HGET', saleKeys(voucherId).states, orderId])) as string | null
    const match = entry?.match(/^(\w+)\|(\d+)\|(.*)$/s)
    if (!match) return undefined
    return { state: match[1] as OrderState, number: Number(match[2]), userId: match[3]! }
  }

  /** What is left, and how many users hold an order. */
  async stock(voucherId: string): Promise<{ stock: number; total: number; buyers: number } | undefined> {
    const keys = saleKeys(voucherId)
    const [fields, buyers] = await Promise.all([
      this.#redis.send(['HMGET', keys.voucher, 'stock', 'total']) as Promise<(string | null)[]>,
      this.#redis.send(['SCARD', keys.users]) as Promise<number>,
    ])
    if (fields[0] === null || fields[0] === undefined) return undefined
    return { stock: Number(fields[0]), total: Number(fields[1]), buyers }
  }

  async close(): Promise<void> {
    await this.#memory.close()
  }

  async #settle(voucherId: string, orderId: string, state: Exclude<OrderState, 'placed'>): Promise<SettleResult> {
    const keys = saleKeys(voucherId)
    const [result, now] = (await this.#redis.run(
      settleScript,
      [keys.voucher, keys.users, keys.counts, keys.orders, keys.states, keys.unpaid],
      [orderId, state, keys.channel, this.#publish],
    )) as [SettleResult['result'], OrderState | '']
    return { result, state: now }
  }
}
