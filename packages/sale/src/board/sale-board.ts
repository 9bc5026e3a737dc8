import { type Redis, type RedisClient, replyErrorCode, toRedis } from '@firebreak/redis'
import { group as workers } from '../orders/orders-stream.ts'
import { entriesOf, fieldsOf } from '../orders/stream-entry.ts'
import type { OrderState } from '../purchase/settle-order.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'

/** One voucher as shown to users. */
export interface VoucherView {
  readonly id: string
  /** First and last second of the sale, Unix time; null if its hash is gone or malformed. */
  readonly begin: number | null
  readonly end: number | null
  readonly stock: number
  /** Live orders. */
  readonly sold: number
  readonly total: number
  readonly perUser: number
  /** Users who hold an order. */
  readonly buyers: number
  /** Orders that are not paid yet. */
  readonly unpaid: number
  /** Entries that a worker has taken but not settled, and those that none has taken; null before the first worker. */
  readonly pending: number | null
  readonly waiting: number | null
  readonly deadLetters: number
}

/** One event of an order, with the order's current state. */
export interface SaleOrderView {
  readonly entryId: string
  readonly at: number
  /** What happened: placed, paid, cancelled, expired, refunded. */
  readonly kind: string
  readonly orderId: string
  readonly userId: string
  /** Undefined if it is no longer known. */
  readonly state: OrderState | undefined
}

/** Vouchers whose end is queried at a time. */
const rankedAtOnce = 500

/** What is on sale, what is left and what happened to the orders: read-only, for watching a sale. */
export class SaleBoard {
  readonly #redis: Redis

  constructor(redis: RedisClient) {
    this.#redis = toRedis(redis)
  }

  /** The vouchers that end last, in that order. If there are more than `limit`, those with dead letters come first. */
  async vouchers(limit = 200): Promise<VoucherView[]> {
    const ids = (await this.#redis.send(['SMEMBERS', registryKey])) as string[]
    const chosen = ids.length <= limit ? ids : await this.#chosen(ids, limit)
    const views = await Promise.all(chosen.map((id) => this.#voucher(id)))
    return views.sort((a, b) => (b.end ?? 0) - (a.end ?? 0) || (a.id < b.id ? -1 : 1))
  }

  async #chosen(ids: readonly string[], limit: number): Promise<string[]> {
    const ranked: { readonly id: string; readonly isTroubled: boolean; readonly end: number }[] = []
    for (let from = 0; from < ids.length; from += rankedAtOnce) {
      const asked = ids.slice(from, from + rankedAtOnce).map(async (id) => {
        const { voucher, dead } = saleKeys(id)
        const [end, letters] = await Promise.all([
          this.#ask(['HGET', voucher, 'end'], null),
          this.#ask(['XLEN', dead], 0),
        ])
        return { id, isTroubled: Number(letters) > 0, end: wholeOrNull(end) ?? 0 }
      })
      ranked.push(...(await Promise.all(asked)))
    }
    ranked.sort((a, b) => Number(b.isTroubled) - Number(a.isTroubled) || b.end - a.end || (a.id < b.id ? -1 : 1))
    return ranked.slice(0, limit).map(({ id }) => id)
  }

  /** A key of another type under a voucher's name must not hide all other vouchers. */
  async #ask(command: readonly [string, ...(string | number)[]], otherwise: unknown): Promise<unknown> {
    try {
      return await this.#redis.send(command)
    } catch (error) {
      if (replyErrorCode(error) === 'WRONGTYPE') return otherwise
      throw error
    }
  }

  /** The last events of a voucher's orders, newest first. */
  async orders(voucherId: string, limit = 50): Promise<SaleOrderView[]> {
    const { orders, states } = saleKeys(voucherId)
    const reply = await this.#redis.send(['XREVRANGE', orders, '+', '-', 'COUNT', limit])
    const events = entriesOf(reply).map((entry) => ({ id: entry.id, fields: fieldsOf(entry) }))
    if (events.length === 0) return []
    const orderIds = events.map(({ fields }) => fields.get('order') ?? '')
    const now = (await this.#redis.send(['HMGET', states, ...orderIds])) as (string | null)[]
    return events.map(({ id, fields }, index) => ({
      entryId: id,
      at: Number(id.split('-')[0]),
      kind: fields.get('kind') ?? '',
      orderId: orderIds[index]!,
      userId: fields.get('user') ?? '',
      state: now[index]?.match(/^\w+/)?.[0] as OrderState | undefined,
    }))
  }

  async #voucher(id: string): Promise<VoucherView> {
    const keys = saleKeys(id)
    const [fields, buyers, unpaid, dead, groups] = await Promise.all([
      this.#ask(['HMGET', keys.voucher, 'begin', 'end', 'stock', 'sold', 'perUser'], []) as Promise<unknown[]>,
      this.#ask(['SCARD', keys.users], 0),
      this.#ask(['ZCARD', keys.unpaid], 0),
      this.#ask(['XLEN', keys.dead], 0),
      // For a stream that nobody has written to, Redis answers with an error.
      this.#redis.send(['XINFO', 'GROUPS', keys.orders]).catch(() => []),
    ])
    const [begin, end, stock, sold, perUser] = fields.map(wholeOrNull)
    const group = (groups as unknown[]).map(pairsOf).find((one) => String(one.get('name')) === workers)
    return {
      id,
      begin: begin ?? null,
      end: end ?? null,
      stock: stock ?? 0,
      sold: sold ?? Number(buyers),
      total: (stock ?? 0) + (sold ?? Number(buyers)),
      perUser: perUser ?? 1,
      buyers: Number(buyers),
      unpaid: Number(unpaid),
      pending: group === undefined ? null : Number(group.get('pending') ?? 0),
      waiting: group?.get('lag') == null ? null : Number(group.get('lag')),
      deadLetters: Number(dead),
    }
  }
}

function wholeOrNull(value: unknown): number | null {
  const number = value === null ? Number.NaN : Number(value)
  return Number.isSafeInteger(number) ? number : null
}

/** A group comes as a flat list, or as a map over RESP3. */
function pairsOf(group: unknown): Map<string, unknown> {
  if (!Array.isArray(group)) return new Map(Object.entries(group as object))
  return new Map(
    Array.from(
      { length: Math.floor(group.length / 2) },
      (_, at) => [String(group[2 * at]), group[2 * at + 1]] as const,
    ),
  )
}
