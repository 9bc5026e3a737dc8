import { systemRuntime } from '@firebreak/core'
import { FakeClock, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { saleKeys } from '../sale-keys.ts'
import { Sale } from './sale.ts'

let server: RedisServer
let client: Redis
let counter = 0
const ids = { next: () => `order-${++counter}` }

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

test('a full memory makes room by dropping expired entries, and stops listening to those', async () => {
  const clock = new FakeClock()
  const sale = new Sale(client, {
    ids,
    soldOutMemory: { maxVouchers: 2, maxAgeMs: 5000 },
    runtime: { ...systemRuntime, clock, timers: clock },
  })
  const isRemembered = async (id: string) => {
    const result = await sale.purchase(id, 'bob')
    return result.code === 'soldout' && result.source === 'memory'
  }
  const listeners = async (id: string) =>
    Number(((await client.pubsub('NUMSUB', saleKeys(id).channel)) as unknown[])[1])
  const now = Math.floor(Date.now() / 1000)
  for (const id of ['a', 'b', 'c']) {
    await sale.open({ id, begin: now - 10, end: now + 1000, stock: 1 })
    await sale.purchase(id, 'ann')
  }
  await waitFor(() => isRemembered('a'))
  await waitFor(() => isRemembered('b'))
  expect(await isRemembered('c')).toBe(false)
  expect(await isRemembered('c')).toBe(false)
  expect(await listeners('c')).toBe(0)
  clock.advance(4000)
  // Reported again: the other one is now older.
  clock.advance(1500)
  await waitFor(() => isRemembered('a'))
  await waitFor(() => isRemembered('c'))
  await waitFor(async () => (await listeners('b')) === 0)
  expect(await listeners('a')).toBe(1)
  expect(await isRemembered('a')).toBe(true)
  await sale.close()
})

test.each([['maxAgeMs'], ['maxVouchers'], ['maxBuyers']])('%s that is no number is refused', (name) => {
  expect(() => new Sale(client, { ids, soldOutMemory: { [name]: Number.NaN } })).toThrow(`soldOutMemory.${name}`)
})
