import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { loadScript, publishCommand, type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { type RemoveResult, removeVoucher } from '../end/remove-voucher.ts'
import { SaleError } from '../errors.ts'
import { chosenOrderKey, registryKey, saleKeys } from '../sale-keys.ts'
import {
  checkVoucher,
  checkVoucherId,
  greatestNumber,
  maxUserIdLength,
  orderIdTrouble,
  userIdTrouble,
  type Voucher,
  voucherWrong,
} from '../voucher.ts'
import { runVoucherScript } from './run-voucher-script.ts'
import { expireUnpaid, type OrderState, type SettleResult, scriptKeys, settleOrder } from './settle-order.ts'
import { SoldOutMemory, type SoldOutMemoryOptions } from './sold-out-memory.ts'
import { type IdWorker, WorkerClaim } from './worker-claim.ts'

const openScript = loadScript(new URL('./open.lua', import.meta.url))
const adoptScript = loadScript(new URL('./adopt.lua', import.meta.url))
const purchaseScript = loadScript(new URL('./purchase.lua', import.meta.url))
const restockScript = loadScript(new URL('./restock.lua', import.meta.url))
const keepOrderIdScript = loadScript(new URL('./keep-order-id.lua', import.meta.url))

/** How many restocks are remembered, so that one sent twice by a client library counts once. */
const keptRestocks = 1000
/**
 * How long an order id chosen by a caller stays bound to its voucher, and how many purchases under it are
 * distinguished.
 */
const keptOrderIdMs = 7 * 86_400_000
const keptPurchases = 100

/** Where order ids come from: a snowflake or segment source of `@firebreak/ids`, or anything that never repeats. */
export interface OrderIds extends IdWorker {
  next(): string | Promise<string>
}

/** Options of a sale. */
export interface SaleOptions {
  readonly ids: OrderIds
  /** An order that is not paid after this long is taken back by the workers; 0: never. @default 900000 (15 minutes) */
  readonly payWithinMs?: number
  readonly soldOutMemory?: SoldOutMemoryOptions
  /** @default the system's */
  readonly runtime?: Runtime
}

/** Options of one purchase. */
export interface PurchaseOptions {
  /**
   * The caller's own id for the order: repeating the call, by the same user, is the same purchase and gets the same
   * answer. It costs one more request, and a second one if nothing is sold. @default one of `ids`
   */
  readonly orderId?: string
}

/** The answer to one purchase. */
export type PurchaseResult =
  | { readonly code: 'sold'; readonly orderId: string; readonly number: number }
  | { readonly code: 'soldout'; readonly source: 'redis' | 'memory' }
  /** `orderId` is the latest of `orderIds`; there is none if the user was put into the set by hand. */
  | {
      readonly code: 'bought'
      readonly held: number
      readonly orderId: string | undefined
      readonly orderIds: readonly string[]
    }
  | { readonly code: 'early'; readonly beginsInSeconds: number }
  | { readonly code: 'late'; readonly endedSecondsAgo: number }

/** An order as Redis knows it. */
export interface OrderView {
  readonly state: OrderState
  readonly userId: string
  /** The sequence number of the order among its user's. */
  readonly number: number
}

const defaultPayWithinMs = 15 * 60_000
const writtenByHand = 'a whole number, times in seconds (its hash in Redis was written by hand?)'

/**
 * Sells vouchers: never more than there are, never more than allowed to one user, by one script on Redis' own clock.
 */
export class Sale {
  readonly #redis: Redis
  readonly #ids: OrderIds
  readonly #payWithinMs: number
  readonly #memory: SoldOutMemory
  readonly #runtime: Runtime
  readonly #claim: WorkerClaim | undefined
  readonly #tokenPrefix: string
  #calls = 0

  constructor(redis: RedisClient, options: SaleOptions) {
    this.#redis = toRedis(redis)
    this.#runtime = options.runtime ?? systemRuntime
    this.#ids = options.ids
    this.#payWithinMs = options.payWithinMs ?? defaultPayWithinMs
    if (!Number.isSafeInteger(this.#payWithinMs) || this.#payWithinMs < 0 || this.#payWithinMs > greatestNumber)
      throw new InvalidOptionError('payWithinMs', options.payWithinMs, 'a whole number of milliseconds, or 0 for never')
    this.#memory = new SoldOutMemory(this.#redis, this.#runtime.clock, options.soldOutMemory)
    this.#claim = WorkerClaim.of(this.#redis, options.ids, this.#runtime)
    this.#tokenPrefix = this.#runtime.newId().slice(0, 13)
  }

  /** Puts a voucher on sale. An existing one keeps its stock: opening twice resets nothing. */
  async open(voucher: Voucher): Promise<{ readonly isNew: boolean }> {
    checkVoucher(voucher)
    // Registered before it can sell: otherwise no worker would look for its orders.
    await this.#redis.send(['SADD', registryKey, voucher.id])
    const isNew = await this.#redis.run(
      openScript,
      [saleKeys(voucher.id).voucher],
      [voucher.begin, voucher.end, voucher.stock, voucher.perUser ?? 1],
    )
    // Again, because a worker may have removed an earlier voucher of this name meanwhile.
    await this.#redis.send(['SADD', registryKey, voucher.id])
    await this.#adopt(voucher.id)
    return { isNew: isNew === 1 }
  }

  /** One attempt by a user to buy one item. */
  async purchase(voucherId: string, userId: string, options?: PurchaseOptions): Promise<PurchaseResult> {
    const isLengthFine = typeof userId === 'string' && userId.length > 0 && userId.length <= maxUserIdLength
    if (isLengthFine && this.#memory.isSoldOut(voucherId, userId)) return { code: 'soldout', source: 'memory' }
    checkVoucherId(voucherId)
    const trouble = userIdTrouble(userId)
    if (trouble !== undefined)
      throw new SaleError('FB_SALE_USER_INVALID', voucherId, `the user id is refused: ${trouble}`)
    if (this.#claim !== undefined && !this.#claim.isHeld && options?.orderId === undefined)
      await this.#claim.hold(voucherId)
    const orderId = options?.orderId ?? (await this.#ids.next())
    const wrong = orderIdTrouble(orderId)
    if (wrong !== undefined)
      throw new SaleError(
        'FB_SALE_ORDER_INVALID',
        voucherId,
        `the order id ${JSON.stringify(orderId)} is refused: ${wrong}`,
      )
    const token = `${this.#tokenPrefix}-${(this.#calls++).toString(36)}`
    if (options?.orderId === undefined) return this.#buy(voucherId, userId, orderId, token)
    return this.#buyChosen(voucherId, userId, orderId, token)
  }

  /**
   * Otherwise two vouchers could sell under the same id, of which the store keeps one order: the id is bound before the
   * sale.
   */
  async #buyChosen(voucherId: string, userId: string, orderId: string, token: string): Promise<PurchaseResult> {
    const keep = (forMs: number) =>
      this.#redis.run(keepOrderIdScript, [chosenOrderKey(orderId)], [voucherId, token, forMs, keptPurchases])
    // An id that stays bound although nothing was sold may refuse a purchase, but never loses one.
    const letGo = () => keep(0).catch(() => {})
    if ((await keep(keptOrderIdMs)) !== voucherId) throw taken(voucherId, orderId)
    try {
      const result = await this.#buy(voucherId, userId, orderId, '')
      if (result.code !== 'sold') await letGo()
      return result
    } catch (error) {
      if (error instanceof SaleError) await letGo()
      throw error
    }
  }

  async #buy(voucherId: string, userId: string, orderId: string, token: string): Promise<PurchaseResult> {
    const keys = saleKeys(voucherId)
    const args = [userId, orderId, this.#payWithinMs, keys.channel, await publishCommand(this.#redis), token]
    const reply = await runVoucherScript(this.#redis, voucherId, purchaseScript, scriptKeys(keys), args)
    const [code, number, text] = reply as [
      PurchaseResult['code'] | 'unknown' | 'invalid' | 'adopt' | 'taken',
      number,
      string,
    ]
    switch (code) {
      case 'sold':
        return { code, orderId, number }
      case 'soldout':
        this.#memory.remember(voucherId, number, Number(text))
        return { code, source: 'redis' }
      case 'bought': {
        const orderIds = text === '' ? [] : text.split(' ')
        return { code, held: number, orderId: orderIds.at(-1), orderIds }
      }
      case 'early':
        return { code, beginsInSeconds: number }
      case 'late':
        return { code, endedSecondsAgo: number }
      case 'adopt':
        await this.#redis.send(['SADD', registryKey, voucherId])
        await this.#adopt(voucherId)
        return this.#buy(voucherId, userId, orderId, token)
      case 'taken':
        throw taken(voucherId, orderId)
      case 'invalid':
        throw writtenWrong(voucherId, text)
      case 'unknown':
        throw unknown(voucherId)
    }
  }

  pay(voucherId: string, orderId: string): Promise<SettleResult> {
    return settleOrder(this.#redis, voucherId, orderId, 'paid')
  }

  /** Cancels an unpaid order: the item returns to the stock exactly once, and every process learns of it. */
  cancel(voucherId: string, orderId: string): Promise<SettleResult> {
    return settleOrder(this.#redis, voucherId, orderId, 'cancelled')
  }

  /**
   * Takes back a paid order. Its item is on sale again, or gone with `toStock: false`; its user may buy again either
   * way.
   */
  refund(voucherId: string, orderId: string, { toStock = true }: { toStock?: boolean } = {}): Promise<SettleResult> {
    return settleOrder(this.#redis, voucherId, orderId, 'refunded', toStock)
  }

  /** Adds items to the stock; a negative count removes unsold ones, at most as many as are left. */
  async restock(voucherId: string, count: number): Promise<{ readonly stock: number; readonly total: number }> {
    checkVoucherId(voucherId)
    if (!Number.isSafeInteger(count) || Math.abs(count) > greatestNumber)
      throw voucherWrong(voucherId, 'the restock', count, 'a whole number')
    const keys = saleKeys(voucherId)
    const args = [
      count,
      this.#runtime.newId(),
      keys.channel,
      await publishCommand(this.#redis),
      keptRestocks,
      greatestNumber,
    ]
    for (;;) {
      const [code, stock, total, text] = (await runVoucherScript(
        this.#redis,
        voucherId,
        restockScript,
        [keys.voucher, keys.restocked],
        args,
      )) as ['done' | 'unknown' | 'adopt' | 'invalid' | 'beyond', number, number, string | undefined]
      if (code === 'done') return { stock, total }
      if (code === 'unknown') throw unknown(voucherId)
      if (code === 'invalid') throw writtenWrong(voucherId, text)
      if (code === 'beyond')
        throw voucherWrong(voucherId, 'the restock', count, `at most ${greatestNumber - stock} now`)
      await this.#redis.send(['SADD', registryKey, voucherId])
      await this.#adopt(voucherId)
    }
  }

  /** Takes back orders whose time to pay is over; returns their number. Workers do this too; any number may call it. */
  expireUnpaid(voucherId: string, limit = 100): Promise<number> {
    return expireUnpaid(this.#redis, voucherId, limit)
  }

  /** The state of an order as Redis knows it, right after the purchase; undefined: no such order. */
  async orderState(voucherId: string, orderId: string): Promise<OrderView | undefined> {
    const entry = (await this.#redis.send(['HGET', saleKeys(voucherId).states, orderId])) as string | null
    const match = entry?.match(/^(\w+)\|(\d+):?[\w-]*\|(.*)$/s)
    if (!match) return undefined
    return { state: match[1] as OrderState, number: Number(match[2]), userId: match[3]! }
  }

  /** The orders that a user holds: for a buyer who never got the answer to a purchase. */
  async ordersOf(voucherId: string, userId: string): Promise<(OrderView & { readonly orderId: string })[]> {
    const holder = (await this.#redis.send(['HGET', saleKeys(voucherId).holders, userId])) as string | null
    const orderIds = holder?.split(' ').slice(2) ?? []
    const orders = await Promise.all(
      orderIds.map(async (orderId) => ({ orderId, order: await this.orderState(voucherId, orderId) })),
    )
    return orders.flatMap(({ orderId, order }) => (order === undefined ? [] : [{ orderId, ...order }]))
  }

  /**
   * Removes what an ended voucher left in Redis; its orders are in the store. Workers do this by themselves after
   * `keepEndedMs`; with `afterMs: 0` it is done as soon as nothing is in progress.
   */
  remove(voucherId: string, { afterMs = 0 }: { afterMs?: number } = {}): Promise<RemoveResult> {
    checkVoucherId(voucherId)
    if (!Number.isSafeInteger(afterMs) || afterMs < 0 || afterMs > greatestNumber)
      throw new InvalidOptionError('afterMs', afterMs, 'a whole number of milliseconds')
    return removeVoucher(this.#redis, voucherId, afterMs)
  }

  /** The remaining stock, and how many users hold an order. */
  async stock(voucherId: string): Promise<{ stock: number; total: number; buyers: number } | undefined> {
    const keys = saleKeys(voucherId)
    const [fields, buyers] = await Promise.all([
      this.#redis.send(['HMGET', keys.voucher, 'stock', 'sold']) as Promise<(string | null)[]>,
      this.#redis.send(['SCARD', keys.users]) as Promise<number>,
    ])
    const [left, sold] = fields
    if (left === null || left === undefined) return undefined
    const stock = Number(left)
    if (!Number.isSafeInteger(stock)) throw voucherWrong(voucherId, 'stock', left, 'a whole number')
    return { stock, total: stock + Number(sold ?? buyers), buyers }
  }

  async close(): Promise<void> {
    await this.#claim?.close()
    await this.#memory.close()
  }

  async #adopt(voucherId: string): Promise<void> {
    const { voucher, users, holders } = saleKeys(voucherId)
    await this.#redis.run(adoptScript, [voucher, users, holders], [])
  }
}

function taken(voucherId: string, orderId: string): SaleError {
  return new SaleError(
    'FB_SALE_ORDER_TAKEN',
    voucherId,
    `the order id ${orderId} belongs to another order, and nothing was sold; two sources of ids may share a worker id`,
  )
}

/** @param text the field and its value, as the scripts give them */
function writtenWrong(voucherId: string, text = ''): SaleError {
  const [field = '', ...value] = text.split(' ')
  return voucherWrong(voucherId, field, value.join(' '), writtenByHand)
}

function unknown(voucherId: string): SaleError {
  return new SaleError('FB_SALE_VOUCHER_UNKNOWN', voucherId, `unknown voucher ${voucherId}; open it first`)
}
