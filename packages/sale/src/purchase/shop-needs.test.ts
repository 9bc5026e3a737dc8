import { readFileSync } from 'node:fs'
import { Snowflake } from '@firebreak/ids'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chosenOrderKey, registryKey, saleKeys } from '../sale-keys.ts'
import type { Voucher } from '../voucher.ts'
import { pidSpace } from './process-name.ts'
import { type PurchaseResult, Sale } from './sale.ts'
import { scriptKeys } from './settle-order.ts'

let server: RedisServer
let client: Redis
let sale: Sale
let counter = 0
const ids = { next: () => `order-${++counter}` }
const nowSeconds = () => Math.floor(Date.now() / 1000)
const keepOrderId = readFileSync(new URL('./keep-order-id.lua', import.meta.url), 'utf8')

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

async function open(changes: Partial<Voucher> = {}): Promise<string> {
  const id = `n${++counter}`
  await sale.open({ id, begin: nowSeconds() - 10, end: nowSeconds() + 1000, stock: 3, ...changes })
  return id
}

function orderOf(result: PurchaseResult): string {
  if (result.code !== 'sold') throw new Error(`not sold but ${result.code}`)
  return result.orderId
}

describe('an order number', () => {
  test('is never used twice for one user, whatever was cancelled', async () => {
    const id = await open({ perUser: 2 })
    const first = orderOf(await sale.purchase(id, 'ann'))
    const second = orderOf(await sale.purchase(id, 'ann'))
    await sale.cancel(id, first)
    const third = await sale.purchase(id, 'ann')
    expect(third).toMatchObject({ code: 'sold', number: 3 })
    expect(await sale.purchase(id, 'ann')).toMatchObject({
      code: 'bought',
      held: 2,
      orderIds: [second, orderOf(third)],
    })
  })
})

describe('an order id', () => {
  test('that belongs to another order is an error, and nothing is sold', async () => {
    const id = await open({ perUser: 2 })
    const stuck = new Sale(client, { ids: { next: () => 'always-the-same' } })
    await stuck.purchase(id, 'ann')
    await expect(stuck.purchase(id, 'bob')).rejects.toMatchObject({ code: 'FB_SALE_ORDER_TAKEN' })
    await expect(stuck.purchase(id, 'ann')).rejects.toMatchObject({ code: 'FB_SALE_ORDER_TAKEN' })
    expect(await sale.stock(id)).toEqual({ stock: 2, total: 3, buyers: 1 })
    await stuck.close()
  })

  test('that the caller chose makes a repeated purchase the same purchase', async () => {
    const id = await open({ perUser: 3 })
    const first = await sale.purchase(id, 'ann', { orderId: 'mine-1' })
    expect(await sale.purchase(id, 'ann', { orderId: 'mine-1' })).toEqual(first)
    await expect(sale.purchase(id, 'bob', { orderId: 'mine-1' })).rejects.toMatchObject({ code: 'FB_SALE_ORDER_TAKEN' })
    expect((await sale.stock(id))?.stock).toBe(2)
    await expect(sale.purchase(id, 'ann', { orderId: 'a b' })).rejects.toMatchObject({ code: 'FB_SALE_ORDER_INVALID' })
  })

  test('that the caller chose is one order across all vouchers, and free again if nothing was sold under it', async () => {
    const [first, second, empty] = [await open({ perUser: 3 }), await open(), await open({ stock: 0 })]
    await sale.purchase(first, 'ann', { orderId: 'mine-2' })
    await expect(sale.purchase(second, 'bob', { orderId: 'mine-2' })).rejects.toMatchObject({
      code: 'FB_SALE_ORDER_TAKEN',
    })
    expect((await sale.stock(second))?.stock).toBe(3)

    expect(await sale.purchase(empty, 'bob', { orderId: 'mine-3' })).toMatchObject({ code: 'soldout' })
    expect(await sale.purchase(second, 'bob', { orderId: 'mine-3' })).toMatchObject({ code: 'sold' })
    await expect(sale.purchase('nowhere', 'eve', { orderId: 'mine-4' })).rejects.toMatchObject({
      code: 'FB_SALE_VOUCHER_UNKNOWN',
    })
    expect(await sale.purchase(second, 'eve', { orderId: 'mine-4' })).toMatchObject({ code: 'sold' })
  })

  test('stays with its voucher when one of several purchases under it sells nothing', async () => {
    const [id, other] = [await open({ stock: 0 }), await open()]
    const keep = async (voucherId: string, token: string, forMs: number) =>
      client.eval(keepOrderId, 1, chosenOrderKey('mine-5'), voucherId, token, forMs, 2)
    for (const call of ['a', 'b', 'c', 'd']) expect(await keep(id, call, 60_000)).toBe(id)
    for (const call of ['a', 'b', 'c', 'd', 'd']) await keep(id, call, 0)
    // One of the purchases beyond the tracked ones may have sold something.
    expect(await keep(other, 'e', 60_000)).toBe(id)
    await client.del(chosenOrderKey('mine-5'))
    for (const call of ['a', 'b']) await keep(id, call, 60_000)
    await keep(id, 'a', 0)
    expect(await keep(other, 'e', 60_000)).toBe(id)
    await keep(id, 'b', 0)
    expect(await keep(other, 'e', 60_000)).toBe(other)
    expect(await client.pttl(chosenOrderKey('mine-5'))).toBeGreaterThan(0)
  })

  test('is not made by two sources with the same fixed worker id', async () => {
    const id = await open()
    const one = new Sale(client, { ids: new Snowflake({ workerId: 77 }) })
    const two = new Sale(client, { ids: new Snowflake({ workerId: 77 }) })
    orderOf(await one.purchase(id, 'ann'))
    await expect(two.purchase(id, 'bob')).rejects.toMatchObject({
      code: 'FB_SALE_WORKER_TAKEN',
      message: expect.stringContaining(String(process.pid)),
    })
    await one.close()
    orderOf(await two.purchase(id, 'bob'))
    await two.close()
  })

  test('of a process that died on this host does not make its successor wait', async () => {
    const id = await open()
    const { hostname } = await import('node:os')
    // No process has this pid: Linux pids end at 4,194,304.
    await client.set('seckill:ids:78', `gone|${hostname()}|99999999.0|${pidSpace()}`, 'PX', 60_000)
    const next = new Sale(client, { ids: new Snowflake({ workerId: 78 }) })
    orderOf(await next.purchase(id, 'ann'))
    await next.close()
    await client.set('seckill:ids:79', 'living|another-host|1.0', 'PX', 60_000)
    const refused = new Sale(client, { ids: new Snowflake({ workerId: 79 }) })
    await expect(refused.purchase(id, 'bob')).rejects.toMatchObject({ code: 'FB_SALE_WORKER_TAKEN' })
    await refused.close()
  })
})

test.each([
  ['another container’s', 'another boot/pid:[4026532001]'],
  ['an unknown', ''],
])('a worker id that %s process has stays its own, although no process here has that pid', async (_, space) => {
  const id = await open()
  const { hostname } = await import('node:os')
  await client.set('seckill:ids:80', `living|${hostname()}|99999999.0|${space}`, 'PX', 60_000)
  const refused = new Sale(client, { ids: new Snowflake({ workerId: 80 }) })
  await expect(refused.purchase(id, 'bob')).rejects.toMatchObject({ code: 'FB_SALE_WORKER_TAKEN' })
  await refused.close()
})

describe('a user id', () => {
  test.each([
    ['', 'empty'],
    ['x'.repeat(256), '256 characters'],
    ['a\0b', 'NUL'],
    ['\ud800', 'surrogate'],
  ])('%j is refused before the sale', async (userId, why) => {
    const id = await open()
    await expect(sale.purchase(id, userId)).rejects.toMatchObject({
      code: 'FB_SALE_USER_INVALID',
      message: expect.stringContaining(why),
    })
    expect((await sale.stock(id))?.stock).toBe(3)
  })

  test('that differs by a space or by case is another user', async () => {
    const id = await open()
    for (const userId of ['ann', 'ann ', 'Ann'])
      expect(await sale.purchase(id, userId)).toMatchObject({ code: 'sold', number: 1 })
  })
})

describe('a voucher made by hand', () => {
  test('with only begin, end and stock is registered before it sells, with its total', async () => {
    const id = `hand-${++counter}`
    await client.hset(saleKeys(id).voucher, 'begin', nowSeconds() - 5, 'end', nowSeconds() + 100, 'stock', 2)
    expect(await sale.purchase(id, 'ann')).toMatchObject({ code: 'sold', number: 1 })
    expect(await client.sismember(registryKey, id)).toBe(1)
    expect(await sale.stock(id)).toEqual({ stock: 1, total: 2, buyers: 1 })
  })

  test('whose stock is raised by hand has its total raised too', async () => {
    const id = await open({ stock: 1 })
    await sale.purchase(id, 'ann')
    await client.hset(saleKeys(id).voucher, 'stock', 10)
    await sale.purchase(id, 'bob')
    expect(await sale.stock(id)).toEqual({ stock: 9, total: 11, buyers: 2 })
    const entries = await client.xrange(saleKeys(id).orders, '-', '+')
    expect(entries.at(-1)![1].join(' ')).toContain('total 11')
  })

  test('that is deleted and created again still knows its buyers', async () => {
    const id = await open({ stock: 2, perUser: 2 })
    await sale.purchase(id, 'ann')
    await sale.purchase(id, 'ann')
    await client.del(saleKeys(id).voucher)
    await client.hset(saleKeys(id).voucher, 'begin', nowSeconds() - 5, 'end', nowSeconds() + 100, 'stock', 5)
    await sale.purchase(id, 'bob')
    expect(await sale.stock(id)).toEqual({ stock: 4, total: 7, buyers: 2 })
  })

  test.each([
    ['stock', 'many', /stock is "many"; it must be a whole number/],
    ['stock', '1.5', /stock is "1.5"/],
    ['stock', ' 5', /stock is " 5"/],
    ['begin', 'now', /begin is "now"/],
    ['end', '', /end is ""/],
    ['begin', '1770000000000', /begin is "1770000000000"; it must be a whole number, times in seconds/],
    ['perUser', '0', /perUser is "0"/],
    ['sold', 'few', /sold is "few"/],
  ])('with %s %j is refused with the reason', async (field, value, sentence) => {
    const id = await open()
    await client.hset(saleKeys(id).voucher, field, value)
    const tried = sale.purchase(id, 'ann')
    await expect(tried).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
    await expect(tried).rejects.toThrow(sentence)
    if (field === 'stock' || field === 'sold') await expect(sale.restock(id, 1)).rejects.toThrow(sentence)
  })

  test.each(['stock', 'sold', 'restocks', 'total'])(
    'whose %s is no longer a number lets an order change its state completely, or not at all',
    async (field) => {
      const id = await open({ stock: 5, perUser: 2 })
      const [first, second] = [orderOf(await sale.purchase(id, 'ann')), orderOf(await sale.purchase(id, 'ann'))]
      await client.hset(saleKeys(id).voucher, field, 'scribble')
      expect(await sale.pay(id, first)).toEqual({ result: 'done', state: 'paid' })
      expect(await sale.refund(id, first, { toStock: false })).toEqual({ result: 'done', state: 'refunded' })
      expect(await sale.cancel(id, second)).toEqual({ result: 'done', state: 'cancelled' })
      expect(await sale.ordersOf(id, 'ann')).toEqual([])
      expect(await client.sismember(saleKeys(id).users, 'ann')).toBe(0)
      // Each event names the one before it.
      const entries = await client.xrange(saleKeys(id).orders, '-', '+')
      const previous = entries.map(([, fields]) => fields[fields.indexOf('prev') + 1])
      expect(previous).toEqual(['-', ...entries.slice(0, -1).map(([entryId]) => entryId)])
    },
  )

  test('without an end is refused with the reason', async () => {
    const id = `hand-${++counter}`
    await client.hset(saleKeys(id).voucher, 'begin', nowSeconds() - 5, 'stock', 2)
    await expect(sale.purchase(id, 'ann')).rejects.toThrow(/end is/)
  })
})

describe('a buyer', () => {
  test('whose answer was lost finds the order, by asking again or by name', async () => {
    const id = await open()
    const orderId = orderOf(await sale.purchase(id, 'ann'))
    expect(await sale.purchase(id, 'ann')).toEqual({ code: 'bought', held: 1, orderId, orderIds: [orderId] })
    expect(await sale.ordersOf(id, 'ann')).toEqual([{ orderId, state: 'placed', userId: 'ann', number: 1 }])
    expect(await sale.ordersOf(id, 'bob')).toEqual([])
  })

  test('gets the order even when the rest is sold out and remembered as such', async () => {
    const id = await open({ stock: 1 })
    const orderId = orderOf(await sale.purchase(id, 'ann'))
    await waitFor(async () => {
      const result = await sale.purchase(id, 'bob')
      return result.code === 'soldout' && result.source === 'memory'
    })
    expect(await sale.purchase(id, 'ann')).toMatchObject({ code: 'bought', orderId })
    expect(await sale.purchase(id, 'bob')).toEqual({ code: 'soldout', source: 'memory' })
  })

  test('whose purchase a client library sends twice has bought once', async () => {
    const id = await open({ perUser: 5 })
    const keys = saleKeys(id)
    const script = readFileSync(new URL('./purchase.lua', import.meta.url), 'utf8')
    const send = (token: string, orderId: string) =>
      client.eval(script, 6, ...scriptKeys(keys), 'ann', orderId, '0', keys.channel, 'PUBLISH', token)
    expect(await send('call-1', 'order-a')).toEqual(['sold', 1, ''])
    expect(await send('call-1', 'order-a')).toEqual(['sold', 1, ''])
    expect(await send('call-2', 'order-a')).toEqual(['taken', 0, ''])
    expect(await sale.stock(id)).toEqual({ stock: 2, total: 3, buyers: 1 })
    expect(await client.xlen(keys.orders)).toBe(1)
  })
})

describe('the stock', () => {
  test('grows by a restock, which every process learns of, and never shrinks below what is sold', async () => {
    const id = await open({ stock: 1 })
    const other = new Sale(client, { ids })
    await other.purchase(id, 'ann')
    await waitFor(async () => {
      const result = await sale.purchase(id, 'bob')
      return result.code === 'soldout' && result.source === 'memory'
    })
    expect(await other.restock(id, 2)).toEqual({ stock: 2, total: 3 })
    await waitFor(async () => (await sale.purchase(id, 'bob')).code === 'sold')
    expect(await other.restock(id, -5)).toEqual({ stock: 0, total: 2 })
    await expect(other.restock('nowhere', 1)).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_UNKNOWN' })
    await expect(other.restock(id, 1.5)).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
    await other.close()
  })

  test('gets the item of a refunded order back if so requested, and its user may buy again', async () => {
    const id = await open({ stock: 1 })
    const first = orderOf(await sale.purchase(id, 'ann'))
    expect(await sale.refund(id, first)).toEqual({ result: 'refused', state: 'placed' })
    await sale.pay(id, first)
    expect(await sale.cancel(id, first)).toEqual({ result: 'refused', state: 'paid' })
    expect(await sale.refund(id, first)).toEqual({ result: 'done', state: 'refunded' })
    expect(await sale.refund(id, first)).toEqual({ result: 'already', state: 'refunded' })
    const second = orderOf(await sale.purchase(id, 'ann'))
    await sale.pay(id, second)
    await sale.refund(id, second, { toStock: false })
    expect(await sale.stock(id)).toEqual({ stock: 0, total: 0, buyers: 0 })
    expect(await sale.purchase(id, 'ann')).toMatchObject({ code: 'soldout' })
  })
})

test('an item returned to a voucher whose hash is gone does not recreate the voucher', async () => {
  const id = await open({ stock: 5 })
  const orderId = orderOf(await sale.purchase(id, 'ann'))
  await client.del(saleKeys(id).voucher)
  expect(await sale.cancel(id, orderId)).toEqual({ result: 'done', state: 'cancelled' })
  await sale.open({ id, begin: nowSeconds() - 10, end: nowSeconds() + 1000, stock: 7 })
  expect(await sale.stock(id)).toEqual({ stock: 7, total: 7, buyers: 0 })
})
