import { systemRuntime } from '@firebreak/core'
import { FakeClock, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { OrderWorker } from '../orders/order-worker.ts'
import { Sale } from '../purchase/sale.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'
import type { OrderStore } from '../store/order-store.ts'
import { sqliteOrderStore } from '../store/sqlite.ts'

let server: RedisServer
let client: Redis
let sale: Sale
let store: OrderStore
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
afterAll(async () => {
  await sale.close()
  client.disconnect()
  await server.stop()
})

const nowSeconds = () => Math.floor(Date.now() / 1000)
const opened = async (id: string) => {
  await sale.open({ id, begin: nowSeconds() - 100, end: nowSeconds() + 100, stock: 3 })
}
const over = (id: string) => sale.open({ id, begin: 1, end: 2, stock: 3 })

async function stored(id: string): Promise<void> {
  const worker = new OrderWorker(client, { store, name: 'w', scanMs: 20 })
  await worker.start()
  const length = await client.xlen(saleKeys(id).orders)
  await waitFor(async () => {
    const groups = (await client.xinfo('GROUPS', saleKeys(id).orders)) as unknown[][]
    const [fields = []] = groups
    const read = fields[fields.indexOf('entries-read') + 1]
    return Number(read) === length && Number(fields[fields.indexOf('pending') + 1]) === 0
  })
  await worker.close()
}

test('a voucher is removed once it is over and nothing of it is in progress', async () => {
  await opened('tv')
  const bought = await sale.purchase('tv', 'ann')
  expect(await sale.remove('tv')).toBe('open')
  await over('tv')
  expect(await sale.remove('tv', { afterMs: 60_000 })).toBe('open')
  expect(await sale.remove('tv')).toBe('unpaid')
  await sale.pay('tv', (bought as { orderId: string }).orderId)
  expect(await sale.remove('tv')).toBe('unstored')
  await stored('tv')
  await client.xadd(saleKeys('tv').dead, '*', 'reason', 'no room')
  expect(await sale.remove('tv')).toBe('dead')
  await client.del(saleKeys('tv').dead)
  expect(await sale.remove('tv')).toBe('removed')
  expect(await client.keys('*tv*')).toEqual([])
  expect(await client.smembers(registryKey)).toEqual([])
  expect(await sale.remove('tv')).toBe('unknown')
  expect((await store.get((bought as { orderId: string }).orderId))?.state).toBe('paid')
})

test('a consumer group that has not read the last event keeps a voucher from being removed', async () => {
  await opened('tv')
  const bought = await sale.purchase('tv', 'ann')
  await sale.cancel('tv', (bought as { orderId: string }).orderId)
  await over('tv')
  await stored('tv')
  await client.xgroup('CREATE', saleKeys('tv').orders, 'another', '0')
  expect(await sale.remove('tv')).toBe('unstored')
})

test('workers remove vouchers that ended long enough ago, stop listening to them, and serve them when they are opened again', async () => {
  const clock = new FakeClock()
  await opened('old')
  await sale.purchase('old', 'ann')
  await opened('new')
  await client.del(saleKeys('old').unpaid)
  await over('old')
  await stored('old')
  const worker = new OrderWorker(client, {
    store,
    name: 'w',
    scanMs: 1000,
    keepEndedMs: 0,
    runtime: { ...systemRuntime, clock, timers: clock },
  })
  await worker.start()
  await waitFor(async () => {
    clock.advance(1000)
    return (await client.exists(saleKeys('old').voucher)) === 0
  })
  const { channel } = saleKeys('old')
  const listeners = async () => Number(((await client.pubsub('NUMSUB', channel)) as unknown[])[1])
  await waitFor(async () => (await listeners()) === 0)
  await waitFor(async () => (await client.smembers(registryKey)).join() === 'new')
  await opened('old')
  await sale.purchase('old', 'bob')
  clock.advance(1000)
  await waitFor(async () => (await listeners()) === 1)
  expect(worker.counts.failures).toBe(0)
  await worker.close()
})

test('the name of a voucher that is created again during its removal stays', async () => {
  await over('tv')
  await client.hset(saleKeys('tv').voucher, 'end', 2)
  const [result] = await Promise.all([sale.remove('tv'), opened('tv')])
  expect(['removed', 'open']).toContain(result)
  const isThere = (await client.exists(saleKeys('tv').voucher)) === 1
  expect(await client.sismember(registryKey, 'tv')).toBe(isThere ? 1 : 0)
})
