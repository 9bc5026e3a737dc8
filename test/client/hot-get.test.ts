import { protect, shieldOf, unprotect } from '@firebreak/client'
import { type RedisServer, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

let server: RedisServer
let hub: TestHub
let redis: Redis
let plain: Redis

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

beforeEach(async () => {
  hub = await TestHub.start()
  plain = new Redis(server.port)
  await plain.flushall()
  redis = protect(new Redis(server.port), options())
  await waitFor(() => shieldOf(redis)?.isConnected)
})

afterEach(async () => {
  unprotect(redis)
  redis.disconnect()
  plain.disconnect()
  await hub.kill()
})

function options() {
  return { hubs: [hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false } as const
}

async function commandCount(name: string): Promise<number> {
  const info = await plain.info('commandstats')
  return Number(info.match(new RegExp(`cmdstat_${name}:calls=(\\d+)`))?.[1] ?? 0)
}

async function makeHot(...keys: string[]): Promise<void> {
  hub.heat('main', keys)
  for (const key of keys) {
    await waitFor(async () => {
      const before = await commandCount('get')
      await redis.get(key)
      await redis.get(key)
      return (await commandCount('get')) === before
    })
  }
}

test('a hot key is read from Redis once and then from memory', async () => {
  await plain.set('product:1', 'shoes')
  await makeHot('product:1')
  const before = await commandCount('get')
  const values = await Promise.all(Array.from({ length: 1000 }, () => redis.get('product:1')))
  expect(new Set(values)).toEqual(new Set(['shoes']))
  expect(await commandCount('get')).toBe(before)
})

test('a write by a plain client is seen by the next read', async () => {
  await plain.set('product:1', 'v0')
  await makeHot('product:1')
  for (let version = 1; version <= 50; version++) {
    await plain.set('product:1', `v${version}`)
    await waitFor(async () => (await redis.get('product:1')) === `v${version}`)
  }
})
