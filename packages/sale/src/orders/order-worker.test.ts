import { systemRuntime } from '@firebreak/core'
import { FakeClock, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Sale } from '../purchase/sale.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'
import type { OrderEvent, OrderStore } from '../store/order-store.ts'
import { sqliteOrderStore } from '../store/sqlite.ts'
import { OrderWorker, type OrderWorkerOptions } from './order-worker.ts'

let server: RedisServer
let client: Redis
let sale: Sale
let store: OrderStore
let workers: OrderWorker[] = []
let counter = 0

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
  sale = new Sale(client, { ids: { next: () => `order-${++counter}` } })
})
beforeEach(async () => {
  await client.flushall()
  store = await sqliteOrderStore(':memory:')
  await store.migrate()
})
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()))
  workers = []
})
afterAll(async () => {
  await sale.close()
  client.disconnect()
  await server.stop()
})

async function worker(options: Partial<OrderWorkerOptions> = {}): Promise<OrderWorker> {
  const made = new OrderWorker(client, { store, name: `w${workers.length}`, scanMs: 20, ...options })
  workers.push(made)
  await made.start()
  return made
}

async function open(stock: number): Promise<string> {
  const id = `v${++counter}`
  const now = Math.floor(Date.now() / 1000)
  await sale.open({ id, begin: now - 5, end: now + 1000, stock })
  return id
}

async function pendingCount(voucherId: string): Promise<number> {
  const [count] = (await client.call('XPENDING', saleKeys(voucherId).orders, 'orders')) as [number]
  return count
}

test('orders reach the store and are acknowledged after it', async () => {
  const id = await open(50)
  await worker()
  await Promise.all(Array.from({ length: 50 }, (_, index) => sale.purchase(id, `u${index}`)))
  await waitFor(async () => (await store.count(id)) === 50)
  await waitFor(async () => (await pendingCount(id)) === 0)
})

test('a worker that is started twice, or closed while it starts, has one connection, and none in the end', async () => {
  const connections = async () =>
    String(await client.client('LIST'))
      .trim()
      .split('\n').length
  // Only this test's own connection, once the workers of earlier tests are gone.
  await waitFor(async () => (await connections()) === 1)
  const id = await open(5)
  const started = await worker()
  await Promise.all([started.start(), started.start()])
  await sale.purchase(id, 'ann')
  await waitFor(async () => (await store.count(id)) === 1)
  expect(await connections()).toBe(2)
  await started.close()
  await started.start()
  const hasty = new OrderWorker(client, { store, name: 'hasty' })
  await Promise.all([hasty.start(), hasty.close()])
  await hasty.close()
  await waitFor(async () => (await connections()) === 1)
})

test('a cancelled order is cancelled in the store too', async () => {
  const id = await open(5)
  await worker()
  const bought = await sale.purchase(id, 'ann')
  const orderId = bought.code === 'sold' ? bought.orderId : ''
  await sale.cancel(id, orderId)
  await waitFor(async () => (await store.get(orderId))?.state === 'cancelled')
})

test('workers rarely look at vouchers that are over, until something happens there', async () => {
  const clock = new FakeClock()
  const ids = await Promise.all(Array.from({ length: 10 }, () => open(1)))
  await worker({ scanMs: 1000, runtime: { ...systemRuntime, clock, timers: clock } })
  const callsOf = async (command: string) =>
    Number((await client.info('commandstats')).match(new RegExp(`cmdstat_${command}:calls=(\\d+)`))?.[1] ?? 0)
  const scan = async () => {
    const seen = await callsOf('smembers')
    clock.advance(1000)
    // Each scan starts by reading the names of all vouchers, once the one before has ended.
    await waitFor(async () => (await callsOf('smembers')) > seen)
  }
  await waitFor(async () => (await callsOf('xreadgroup')) >= ids.length)
  await client.config('RESETSTAT')
  for (let scans = 0; scans < 40; scans++) await scan()
  // Each check sends two requests; about 5 of 40 scans check.
  expect(await callsOf('xpending')).toBeLessThan(20 * ids.length)

  await sale.purchase(ids[3]!, 'ann')
  await waitFor(async () => (await store.count(ids[3]!)) === 1)
  await client.config('RESETSTAT')
  for (let scans = 0; scans < 10; scans++) await scan()
  // It waits for payment: somebody must check whether the deadline has passed.
  expect(await callsOf('xpending')).toBeGreaterThan(10)
})

test('the entries of a dead worker are taken over', async () => {
  const id = await open(5)
  await client.xgroup('CREATE', saleKeys(id).orders, 'orders', '0', 'MKSTREAM')
  await sale.purchase(id, 'ann')
  await client.xreadgroup('GROUP', 'orders', 'dead', 'COUNT', 10, 'STREAMS', saleKeys(id).orders, '>')
  expect(await pendingCount(id)).toBe(1)
  const alive = await worker({ claimAfterMs: 30 })
  await waitFor(async () => (await store.count(id)) === 1)
  expect(alive.counts.claimed).toBeGreaterThanOrEqual(1)
  await waitFor(async () => (await pendingCount(id)) === 0)
})

test('an invalid entry goes to the dead letters with the reason, and holds up nobody', async () => {
  const id = await open(5)
  await client.xadd(saleKeys(id).orders, '*', 'kind', 'nonsense', 'order', 'x')
  await sale.purchase(id, 'ann')
  await worker()
  await waitFor(async () => (await store.count(id)) === 1)
  const dead = await client.xrange(saleKeys(id).dead, '-', '+')
  expect(dead[0]![1]).toEqual(expect.arrayContaining(['reason', 'its kind is "nonsense"', 'order', 'x']))
})

test('an order that the store keeps failing on becomes a dead letter, the others are stored', async () => {
  const id = await open(5)
  const failing: OrderStore = {
    ...store,
    migrate: () => store.migrate(),
    setTotal: (voucherId, total) => store.setTotal(voucherId, total),
    count: (voucherId) => store.count(voucherId),
    get: (orderId) => store.get(orderId),
    close: () => store.close(),
    async store(events: readonly OrderEvent[]) {
      if (events.some(({ userId }) => userId === 'poison')) throw new Error('the disk is on fire')
      return store.store(events)
    },
  }
  const errors: string[] = []
  await worker({ store: failing, claimAfterMs: 10, maxDeliveries: 3, onError: (error) => errors.push(error.message) })
  await Promise.all(['ann', 'poison', 'bob'].map((user) => sale.purchase(id, user)))
  await waitFor(async () => (await client.xlen(saleKeys(id).dead)) === 1)
  const [entry] = await client.xrange(saleKeys(id).dead, '-', '+')
  expect(entry![1]).toEqual(expect.arrayContaining(['reason', 'it failed 3 times', 'user', 'poison']))
  expect(await store.count(id)).toBe(2)
  expect(errors).toContain('the disk is on fire')
  expect(await pendingCount(id)).toBe(0)
})

test('a Redis that lost its data does not stop the worker', async () => {
  const first = await open(5)
  await worker()
  await sale.purchase(first, 'ann')
  await waitFor(async () => (await store.count(first)) === 1)
  await client.flushall()
  const second = await open(5)
  await sale.purchase(second, 'ann')
  await waitFor(async () => (await store.count(second)) === 1)
})

test('orders of a voucher whose hash is gone are stored, even by a worker that starts later', async () => {
  const id = await open(5)
  await sale.purchase(id, 'ann')
  await client.del(saleKeys(id).voucher)
  await worker()
  await waitFor(async () => (await store.count(id)) === 1)
})

test('a voucher of which only the name exists is left alone', async () => {
  await sale.open({ id: 'real', begin: 1, end: 9_999_999_999, stock: 1 })
  await client.sadd(registryKey, 'name-only')
  const made = await worker()
  await sale.purchase('real', 'ann')
  await waitFor(async () => (await store.count('real')) === 1)
  expect(await client.exists(saleKeys('name-only').orders)).toBe(0)
  expect(made.counts.failures).toBe(0)
})

test.each([Number.NaN, -1, '60000' as never])('keepStoredMs %s is refused', (keepStoredMs) => {
  expect(() => new OrderWorker(client, { store, name: 'w', keepStoredMs })).toThrow(/keepStoredMs/)
})

test('stored entries may be kept for ever, or not at all', () => {
  for (const keepStoredMs of [0, Number.POSITIVE_INFINITY])
    expect(new OrderWorker(client, { store, name: 'w', keepStoredMs }).state).toBe('running')
})
