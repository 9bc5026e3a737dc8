import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { saleKeys } from '../sale-keys.ts'
import type { Voucher } from '../voucher.ts'
import { Sale } from './sale.ts'

let server: RedisServer
let client: Redis
let sale: Sale
let counter = 0
const ids = { next: () => `order-${++counter}` }
const nowSeconds = () => Math.floor(Date.now() / 1000)

function voucher(changes: Partial<Voucher> = {}): Voucher {
  return { id: `v${++counter}`, begin: nowSeconds() - 10, end: nowSeconds() + 1000, stock: 3, ...changes }
}

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
beforeEach(async () => {
  await sale?.close()
  sale = new Sale(client, { ids })
})
afterAll(async () => {
  await sale.close()
  client.disconnect()
  await server.stop()
})

describe('a purchase', () => {
  test('takes one item, records the user and appends the order, all together', async () => {
    const item = voucher()
    await sale.open(item)
    const result = await sale.purchase(item.id, 'ann')
    expect(result).toMatchObject({ code: 'sold', number: 1 })
    const keys = saleKeys(item.id)
    expect(await client.hget(keys.voucher, 'stock')).toBe('2')
    expect(await client.smembers(keys.users)).toEqual(['ann'])
    expect(await client.xlen(keys.orders)).toBe(1)
  })

  test('is refused with its own code before the sale, after it, without stock, and for a user who has an order', async () => {
    const early = voucher({ begin: nowSeconds() + 100 })
    const late = voucher({ begin: 1, end: nowSeconds() - 5 })
    const empty = voucher({ stock: 0 })
    const open = voucher()
    for (const item of [early, late, empty, open]) await sale.open(item)
    expect(await sale.purchase(early.id, 'ann')).toMatchObject({ code: 'early' })
    expect(await sale.purchase(late.id, 'ann')).toMatchObject({ code: 'late' })
    expect(await sale.purchase(empty.id, 'ann')).toEqual({ code: 'soldout', source: 'redis' })
    await sale.purchase(open.id, 'ann')
    expect(await sale.purchase(open.id, 'ann')).toMatchObject({ code: 'bought', held: 1 })
    await expect(sale.purchase('none', 'ann')).rejects.toThrow(/unknown voucher none/)
    for (const item of [early, late, empty]) expect(await client.exists(saleKeys(item.id).orders)).toBe(0)
  })

  test('is possible in the first and the last second', async () => {
    // Redis' clock decides, so the test reads the second from it and sets the voucher's hours around it.
    const item = voucher({ stock: 1000 })
    await sale.open(item)
    const atFirst = async () => {
      const [seconds] = await client.time()
      await client.hset(saleKeys(item.id).voucher, 'begin', seconds!, 'end', seconds!)
      return sale.purchase(item.id, `user-${counter++}`)
    }
    // The second may end between the two commands; then the result is `late`, and the next try uses a new voucher.
    await waitFor(async () => (await atFirst()).code === 'sold', { what: 'a sale within its only second' })
  })

  test('lets a user hold as many orders as the voucher allows', async () => {
    const item = voucher({ stock: 5, perUser: 2 })
    await sale.open(item)
    expect(await sale.purchase(item.id, 'ann')).toMatchObject({ code: 'sold', number: 1 })
    expect(await sale.purchase(item.id, 'ann')).toMatchObject({ code: 'sold', number: 2 })
    expect(await sale.purchase(item.id, 'ann')).toMatchObject({ code: 'bought', held: 2 })
  })

  test('made five hundred times at once by one user is one order', async () => {
    const item = voucher({ stock: 100 })
    await sale.open(item)
    const results = await Promise.all(Array.from({ length: 500 }, () => sale.purchase(item.id, 'ann')))
    expect(results.filter(({ code }) => code === 'sold')).toHaveLength(1)
    expect(await sale.stock(item.id)).toEqual({ stock: 99, total: 100, buyers: 1 })
  })

  test('opening a voucher again keeps its remaining stock', async () => {
    const item = voucher({ stock: 2 })
    expect(await sale.open(item)).toEqual({ isNew: true })
    await sale.purchase(item.id, 'ann')
    expect(await sale.open(item)).toEqual({ isNew: false })
    expect((await sale.stock(item.id))?.stock).toBe(1)
  })

  test('an invalid voucher is refused with the name of the field', async () => {
    await expect(sale.open(voucher({ id: 'a{b}' }))).rejects.toThrow(/id is/)
    await expect(sale.open(voucher({ stock: -1 }))).rejects.toThrow(/stock is -1/)
    await expect(sale.open(voucher({ end: 1 }))).rejects.toThrow(/end is 1/)
    await expect(sale.open(voucher({ perUser: 0 }))).rejects.toThrow(/perUser is 0/)
    const inMs = { begin: Date.now(), end: Date.now() + 1000 }
    await expect(sale.open(voucher(inMs))).rejects.toThrow(/begin is \d+; it must be a Unix time in whole seconds/)
    for (const id of ['vouchers', 'ids:7']) await expect(sale.open(voucher({ id }))).rejects.toThrow(/id is/)
  })
})

describe('an order', () => {
  test('that is cancelled returns its item only once, and its user may buy again', async () => {
    const item = voucher({ stock: 1 })
    await sale.open(item)
    const first = await sale.purchase(item.id, 'ann')
    const orderId = first.code === 'sold' ? first.orderId : ''
    const results = await Promise.all(Array.from({ length: 20 }, () => sale.cancel(item.id, orderId)))
    expect(results.filter(({ result }) => result === 'done')).toHaveLength(1)
    expect(await sale.stock(item.id)).toEqual({ stock: 1, total: 1, buyers: 0 })
    expect(await sale.orderState(item.id, orderId)).toMatchObject({ state: 'cancelled', userId: 'ann' })
    expect(await sale.purchase(item.id, 'ann')).toMatchObject({ code: 'sold' })
  })

  test('that is paid can no longer be cancelled, nor expire', async () => {
    const item = voucher()
    await sale.open(item)
    const bought = await sale.purchase(item.id, 'ann')
    const orderId = bought.code === 'sold' ? bought.orderId : ''
    expect(await sale.pay(item.id, orderId)).toEqual({ result: 'done', state: 'paid' })
    expect(await sale.pay(item.id, orderId)).toEqual({ result: 'already', state: 'paid' })
    expect(await sale.cancel(item.id, orderId)).toEqual({ result: 'refused', state: 'paid' })
    expect(await sale.cancel(item.id, 'nobody')).toEqual({ result: 'unknown', state: '' })
  })

  test('that is not paid in time returns its item once, however many workers look for it', async () => {
    const quick = new Sale(client, { ids, payWithinMs: 1 })
    const item = voucher({ stock: 2 })
    await quick.open(item)
    await quick.purchase(item.id, 'ann')
    await waitFor(async () => {
      const counts = await Promise.all(Array.from({ length: 5 }, () => quick.expireUnpaid(item.id)))
      return counts.reduce((sum, count) => sum + count, 0) === 1
    })
    expect(await quick.stock(item.id)).toEqual({ stock: 2, total: 2, buyers: 0 })
    await quick.close()
  })

  test('does not expire while it still has time', async () => {
    const item = voucher()
    await sale.open(item)
    await sale.purchase(item.id, 'ann')
    expect(await sale.expireUnpaid(item.id)).toBe(0)
  })
})

describe('remembering that a voucher is sold out', () => {
  test('answers without Redis, and a refund in another process ends it at once', async () => {
    const item = voucher({ stock: 1 })
    const other = new Sale(client, { ids })
    await sale.open(item)
    const bought = await other.purchase(item.id, 'ann')
    await waitFor(async () => {
      const result = await sale.purchase(item.id, 'bob')
      return result.code === 'soldout' && result.source === 'memory'
    })
    const before = await commandCalls('evalsha')
    for (let index = 0; index < 100; index++) await sale.purchase(item.id, `u${index}`)
    expect(await commandCalls('evalsha')).toBe(before)
    await other.cancel(item.id, bought.code === 'sold' ? bought.orderId : '')
    await waitFor(async () => (await sale.purchase(item.id, 'bob')).code === 'sold')
    await other.close()
  })

  test('is not kept from a reply that is older than a refund', async () => {
    const item = voucher({ stock: 0 })
    await sale.open(item)
    await waitFor(async () => {
      const result = await sale.purchase(item.id, 'ann')
      return result.code === 'soldout' && result.source === 'memory'
    })
    await client.publish(saleKeys(item.id).channel, 'restock:5')
    // The hash still says 0 restocks: such a reply is older than the fifth refund and must not be remembered.
    await waitFor(async () => {
      const result = await sale.purchase(item.id, 'ann')
      return result.code === 'soldout' && result.source === 'redis'
    })
    expect(await sale.purchase(item.id, 'ann')).toEqual({ code: 'soldout', source: 'redis' })
  })
})

async function commandCalls(command: string): Promise<number> {
  const stats = await client.info('commandstats')
  return Number(stats.match(new RegExp(`cmdstat_${command}:calls=(\\d+)`))?.[1] ?? 0)
}
