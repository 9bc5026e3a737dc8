import {
  DeadLetters,
  mariadbOrderStore,
  type OrderStore,
  OrderWorker,
  Sale,
  saleKeys,
  sqliteOrderStore,
} from '@firebreak/sale'
import { type RedisServer, startMariadb, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createPool } from 'mysql2/promise'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

// What a stranger tries with a shop: odd names, numbers and bytes, things done twice, things written by hand.

let server: RedisServer
let redis: Redis
let sale: Sale
let mariadb: Awaited<ReturnType<typeof startMariadb>>
let store: OrderStore
let made = 0
const workers: OrderWorker[] = []
const now = () => Math.floor(Date.now() / 1000)
const hours = () => ({ begin: now() - 10, end: now() + 1000 })

beforeAll(async () => {
  ;[server, mariadb] = await Promise.all([startRedis(), startMariadb()])
  redis = new Redis(server.port)
  sale = new Sale(redis, { ids: { next: () => `order-${++made}` } })
  store = mariadbOrderStore(createPool({ uri: mariadb.url }))
  await store.migrate()
})
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()))
  await redis.flushall()
})
afterAll(async () => {
  await sale.close()
  await store.close()
  redis.disconnect()
  await Promise.all([server.stop(), mariadb.stop()])
})

async function work(options: Partial<ConstructorParameters<typeof OrderWorker>[1]> = {}): Promise<Error[]> {
  const errors: Error[] = []
  const worker = new OrderWorker(redis, {
    store,
    name: `w${workers.length}`,
    scanMs: 20,
    claimAfterMs: 100,
    onError: (error) => errors.push(error),
    ...options,
  })
  workers.push(worker)
  await worker.start()
  return errors
}

async function open(stock = 10, perUser = 1): Promise<string> {
  const id = `voucher-${++made}`
  await sale.open({ id, stock, perUser, ...hours() })
  return id
}

async function isEmpty(voucherId: string): Promise<boolean> {
  const groups = (await redis.call('XINFO', 'GROUPS', saleKeys(voucherId).orders)) as unknown[][]
  const group = groups[0] ?? []
  return group[group.indexOf('pending') + 1] === 0 && group[group.indexOf('lag') + 1] === 0
}

describe('names', () => {
  test.each([
    '__proto__',
    'constructor',
    'toString',
    '%s',
    'a:b',
    "';DROP/**/TABLE/**/sale_orders;--",
    '券',
    '🎫',
    'x'.repeat(128),
  ])('a voucher may have the name %j, from the purchase to the row', async (id) => {
    await sale.open({ id, stock: 2, ...hours() })
    const sold = await sale.purchase(id, 'ann')
    expect(sold).toMatchObject({ code: 'sold', number: 1 })
    await work()
    const { orderId } = sold as { orderId: string }
    await waitFor(async () => (await store.get(orderId)) !== undefined, { what: 'the row' })
    expect(await store.get(orderId)).toMatchObject({ voucherId: id, userId: 'ann', state: 'placed' })
  })

  test('users that look alike are different users, in Redis and in MariaDB', async () => {
    const alike = [
      'é',
      'e\u0301',
      'É',
      'ß',
      'ss',
      'a',
      'a ',
      ' a',
      'a\t',
      'a\u200b',
      'ａ',
      'a|1:x|b',
      'placed|1:|a',
      '1 - 2',
      '__proto__',
      '\u0001',
      '😀',
      '\r\n*1',
    ]
    const id = await open(100)
    await work()
    const sold = await Promise.all(alike.map((userId) => sale.purchase(id, userId)))
    expect(sold.map(({ code }) => code)).toEqual(alike.map(() => 'sold'))
    const again = await Promise.all(alike.map((userId) => sale.purchase(id, userId)))
    for (const [index, answer] of again.entries())
      expect(answer).toMatchObject({ code: 'bought', orderId: (sold[index] as { orderId: string }).orderId })
    await waitFor(async () => (await store.count(id)) === alike.length, { what: 'all rows' })
    for (const [index, answer] of sold.entries()) {
      const { orderId } = answer as { orderId: string }
      expect(await store.get(orderId)).toMatchObject({ userId: alike[index] })
      expect(await sale.ordersOf(id, alike[index]!)).toMatchObject([{ orderId, userId: alike[index] }])
    }
  })

  test.each([
    { userId: '' },
    { userId: 'x'.repeat(256) },
    { userId: 'a\0b' },
    { userId: '\ud800' },
    { userId: '\udc00x' },
    { userId: 7 },
    { userId: null },
    { userId: undefined },
    { userId: ['ann'] },
    { userId: { toString: () => 'ann' } },
  ])('a user that no store can hold is refused before anything is sold (%#)', async ({ userId }) => {
    const id = await open()
    await expect(sale.purchase(id, userId as string)).rejects.toMatchObject({ code: 'FB_SALE_USER_INVALID' })
    expect(await sale.stock(id)).toMatchObject({ stock: 10, buyers: 0 })
  })

  test.each(['', ' ', 'two words', 'a\n', 'é', 'x'.repeat(65), 7, Number.NaN, {}])(
    'the order id %j is refused',
    async (orderId) => {
      const id = await open()
      await expect(sale.purchase(id, 'ann', { orderId: orderId as string })).rejects.toMatchObject({
        code: 'FB_SALE_ORDER_INVALID',
      })
      expect(await sale.stock(id)).toMatchObject({ stock: 10 })
    },
  )
})

describe('numbers', () => {
  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e15, 2 ** 53, '5' as unknown as number])(
    'a voucher with %s in any field is refused completely',
    async (wrong) => {
      for (const field of ['begin', 'end', 'stock', 'perUser'] as const) {
        const voucher = { id: 'odd', stock: 1, perUser: 1, ...hours(), [field]: wrong }
        await expect(sale.open(voucher), field).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
      }
      expect(await redis.exists(saleKeys('odd').voucher)).toBe(0)
    },
  )

  test('whatever a voucher was opened and restocked with, it can be sold from', async () => {
    await sale.open({ id: 'vast', stock: 1e14, perUser: 1e14, ...hours() })
    expect(await sale.purchase('vast', 'ann')).toMatchObject({ code: 'sold' })
    await expect(
      (async () => {
        for (let time = 0; time < 20; time++) await sale.restock('vast', 1e14)
      })(),
    ).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
    expect(await sale.purchase('vast', 'bob')).toMatchObject({ code: 'sold' })
    await work()
    await waitFor(async () => (await store.count('vast')) === 2, { what: 'both rows' })
  })

  test.each([Number.NaN, 1.5, Number.POSITIVE_INFINITY, 1e15])('a restock by %s is refused', async (count) => {
    const id = await open()
    await expect(sale.restock(id, count)).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
  })

  test('if more is removed than there is, nothing is left, and sold items stay sold', async () => {
    const id = await open(3)
    await sale.purchase(id, 'ann')
    expect(await sale.restock(id, -1e14)).toEqual({ stock: 0, total: 1 })
    expect(await sale.restock(id, 0)).toEqual({ stock: 0, total: 1 })
    expect(await sale.purchase(id, 'bob')).toMatchObject({ code: 'soldout' })
    expect(await sale.purchase(id, 'ann')).toMatchObject({ code: 'bought' })
  })

  test.each([-1, Number.NaN, 1.5, 1e16, '900000'])('a sale with payWithinMs %s is never made', (payWithinMs) => {
    const options = { ids: { next: () => '1' }, payWithinMs: payWithinMs as number }
    expect(() => new Sale(redis, options)).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
  })

  test.each([
    'batch',
    'claimAfterMs',
    'maxDeliveries',
    'maxDeadLetters',
    'maxHeld',
    'scanMs',
    'storeTimeoutMs',
    'maxRetryMs',
  ])('a worker with a %s of 0, -1 or NaN is refused by the constructor', (option) => {
    for (const value of [0, -1, Number.NaN])
      expect(() => new OrderWorker(redis, { store, name: 'odd', [option]: value })).toThrow(
        expect.objectContaining({ code: 'FB_OPTION_INVALID', option }),
      )
  })

  test.each(['', ' ', '5.0', '1e3', '+5', ' 5', '0x10', 'NaN', '9'.repeat(16), '٣'])(
    'stock written by hand as %j is a clear error, and nothing is sold',
    async (stock) => {
      await redis.hset(saleKeys('hand').voucher, { ...hours(), stock })
      await expect(sale.purchase('hand', 'ann')).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
      expect(await redis.exists(saleKeys('hand').orders)).toBe(0)
    },
  )
})

describe('twice', () => {
  test('ten users with one order id: one gets the order, nine get an error, and there is one row', async () => {
    const id = await open(10, 5)
    await work()
    const users = Array.from({ length: 10 }, (_, index) => `user-${index}`)
    const answers = await Promise.allSettled(users.map((userId) => sale.purchase(id, userId, { orderId: 'same' })))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const answer of answers)
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'FB_SALE_ORDER_TAKEN' })
    await waitFor(() => isEmpty(id), { what: 'the stream to be stored' })
    expect(await store.count(id)).toBe(1)
    expect(await sale.stock(id)).toMatchObject({ stock: 9, buyers: 1 })
  })

  test('an order paid, cancelled, refunded and expired at the same time: each state once, one item back', async () => {
    const id = await open(1)
    const { orderId } = (await sale.purchase(id, 'ann')) as { orderId: string }
    const results = await Promise.all([
      ...Array.from({ length: 5 }, () => sale.pay(id, orderId)),
      ...Array.from({ length: 5 }, () => sale.cancel(id, orderId)),
      ...Array.from({ length: 5 }, () => sale.refund(id, orderId)),
    ])
    expect(results.filter(({ result }) => result === 'done')).toHaveLength(2)
    expect(await sale.stock(id)).toMatchObject({ stock: 1, total: 1, buyers: 0 })
    await work()
    await waitFor(async () => (await store.get(orderId))?.state === 'refunded', { what: 'the last state' })
  })

  test('two workers with one name settle every order once', async () => {
    const id = await open(60)
    await work({ name: 'same', batch: 3 })
    await work({ name: 'same', batch: 3 })
    await Promise.all(Array.from({ length: 60 }, (_, index) => sale.purchase(id, `user-${index}`)))
    await waitFor(async () => (await store.count(id)) === 60 && isEmpty(id), { what: 'sixty rows' })
    expect((await new DeadLetters(redis).count()).size).toBe(0)
  })

  test('buy, cancel, buy again, forty times, by two workers with batches of one: the last order stands, none is dead', async () => {
    const id = await open(1)
    await work({ batch: 1 })
    await work({ batch: 1 })
    for (let time = 0; time < 40; time++) {
      const sold = (await sale.purchase(id, time % 3 === 0 ? 'ann' : 'bob')) as { code: string; orderId: string }
      expect(sold.code).toBe('sold')
      if (time < 39) await sale.cancel(id, sold.orderId)
    }
    await waitFor(async () => isEmpty(id), { what: 'the stream to be stored' })
    expect(await store.count(id)).toBe(1)
    expect((await new DeadLetters(redis).count()).size).toBe(0)
  })
})

describe('by hand', () => {
  test('a voucher that is not a hash does not hold up others', async () => {
    await redis.set(saleKeys('a-string').voucher, 'x')
    await redis.sadd('seckill:vouchers', 'a-string', '', '{}', 'unknown')
    const id = await open()
    const errors = await work()
    await sale.purchase(id, 'ann')
    await waitFor(async () => (await store.count(id)) === 1, { what: 'the row' })
    expect(errors.map(String).join()).toContain('a-string')
    await expect(sale.purchase('a-string', 'ann')).rejects.toMatchObject({ code: 'FB_SALE_VOUCHER_INVALID' })
  })

  test.each<[string, Record<string, string>]>([
    ['nothing', { x: 'y' }],
    ['another kind', { kind: 'toString', order: 'o', user: 'u', number: '1', at: '1' }],
    ['no user', { kind: 'placed', order: 'o', number: '1', at: '1' }],
    ['a user that is too long', { kind: 'placed', order: 'o', user: 'x'.repeat(300), number: '1', at: '1' }],
    ['a number that is none', { kind: 'placed', order: 'o', user: 'u', number: 'NaN', at: '1' }],
    ['a number beyond all columns', { kind: 'placed', order: 'o', user: 'u', number: '99999999999', at: '1' }],
    ['a limit of nothing', { kind: 'placed', order: 'o', user: 'u', number: '1', at: '1', limit: '0' }],
  ])('an entry with %s is a dead letter with a reason, and the next order is stored', async (_, fields) => {
    const id = await open()
    const errors = await work()
    await redis.xadd(saleKeys(id).orders, '*', ...Object.entries(fields).flat())
    const { orderId } = (await sale.purchase(id, 'ann')) as { orderId: string }
    await waitFor(async () => (await store.get(orderId)) !== undefined && isEmpty(id), { what: 'the row' })
    const [letter] = await new DeadLetters(redis).list(id)
    expect(letter).toMatchObject({ voucherId: id, reason: expect.stringMatching(/\w/) })
    expect(errors).toHaveLength(1)
  })

  test('a letter is replayed by exactly its id, and not by something that looks like one', async () => {
    const id = await open()
    await work()
    const letters = new DeadLetters(redis)
    for (const number of ['a', 'b'])
      await redis.xadd(saleKeys(id).dead, `1-${number === 'a' ? 1 : 2}`, 'entry', '0-1', 'reason', 'r', 'kind', number)
    for (const wrong of ['1', '*', '-', '+', '(1-1', '$', '', 'x', '1-1-1', '-1-1']) {
      await expect(letters.replay(id, [wrong]), wrong).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
      await expect(letters.discard(id, [wrong]), wrong).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    }
    for (const limit of [0, -1, 1.5, Number.NaN])
      await expect(letters.list(id, { limit })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(letters.list(id, { after: '(1-1' })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    expect(await letters.discard(id, ['1-2', '1-2'])).toBe(1)
    expect(await letters.list(id)).toMatchObject([{ id: '1-1' }])
  })
})

test('SQLite distinguishes the same users', async () => {
  const lite = await sqliteOrderStore(':memory:')
  await lite.migrate()
  const event = { kind: 'placed', voucherId: 'v', number: 1, at: 1, total: 9 } as const
  const users = ['a', 'A', 'a ', 'é', 'e\u0301']
  const results = await lite.store(users.map((userId, index) => ({ ...event, userId, orderId: `o${index}` })))
  expect(results.map(({ kind }) => kind)).toEqual(users.map(() => 'stored'))
  await lite.close()
})
