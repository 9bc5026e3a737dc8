import { protect, shieldOf } from '@firebreak/client'
import type { AuditEntry, KeyInspection } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: RedisServer
let hub: Hub
const tokens = {
  apps: [{ name: 'shop', token: 'app-token-0123456789', services: ['*'], clusters: ['*'] }],
  people: [
    { name: 'ann', token: 'ann-token-0123456789', role: 'admin' },
    { name: 'olga', token: 'olga-token-0123456789', role: 'operator' },
    { name: 'vic', token: 'vic-token-0123456789', role: 'viewer' },
  ],
} as const
const hot = { id: 'hot', prefix: 'hot:', threshold: 20, windowMs: 1000, minHoldMs: 60_000, strategy: 'LocalCache' }
const clients: Redis[] = []

const options = (redisClusterId: string, serviceId: string) => ({
  hubs: [hub.url],
  serviceId,
  redisClusterId,
  token: 'app-token-0123456789',
  tableFile: false as const,
})

function app(redisClusterId: string, serviceId: string, showsValues = false): Redis {
  const redis = new Redis(server.port)
  protect(redis, { ...options(redisClusterId, serviceId), showsValues })
  clients.push(redis)
  return redis
}

beforeAll(async () => {
  server = await startRedis()
  hub = await startHub({ logLevel: 'silent', tokens: tokens as never, initialRules: [hot] })
  const redis = app('main', 'shop')
  app('open', 'open', true)
  await redis.set('text', 'čaj', 'PX', 600_000)
  await redis.set('long', 'x'.repeat(10_000))
  await redis.set('bytes', Buffer.from([0xff, 0x00]))
  await redis.rpush('list', 'a', 'b')
  await redis.hset('hash', { f: 'v' })
  await waitFor(() => hub.core.fleet.hosts.counts().connected === 2)
}, 30_000)
afterAll(async () => {
  for (const redis of clients) {
    shieldOf(redis)?.close()
    redis.disconnect()
  }
  await hub.close()
  await server.stop()
})

async function ask(who: string, cluster: string, key: string, body: object = {}) {
  const response = await fetch(`${hub.url}/v1/keys/${cluster}/${encodeURIComponent(key)}/inspection`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${who}-token-0123456789` },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as KeyInspection & { code: string; message: string } }
}

test('type, size and TTL of a key come from a process that uses it', async () => {
  const { body } = await ask('olga', 'main', 'text')
  expect(body).toMatchObject({ key: 'text', type: 'string', encoding: 'embstr', serviceId: 'shop' })
  expect(body.ttlMs).toBeGreaterThan(500_000)
  expect(body.bytes).toBeGreaterThan(10)
  expect(body.value).toBeUndefined()
  expect((await ask('olga', 'main', 'list')).body).toMatchObject({ type: 'list', ttlMs: null })
  expect((await ask('olga', 'main', 'nothing')).body).toMatchObject({ type: 'none', bytes: null })
})

test('a value needs an admin and a process that shows values; its beginning is shown', async () => {
  expect((await ask('olga', 'open', 'text', { value: true })).body.code).toBe('FB_ROLE_REFUSED')
  expect((await ask('ann', 'main', 'text', { value: true })).body.value).toBeUndefined()
  const value = async (key: string) => (await ask('ann', 'open', key, { value: true })).body.value
  expect(await value('text')).toEqual({ text: 'čaj', isBase64: false, isCut: false })
  expect(await value('bytes')).toEqual({ text: '/wA=', isBase64: true, isCut: false })
  const long = await value('long')
  expect([long!.text.length, long!.isCut]).toEqual([4096, true])
  expect((await value('list'))!.text).toBe('["a","b"]')
  expect((await value('hash'))!.text).toBe('["f","v"]')
})

/** Ways to send a command, by the name of their service. */
const ways: Record<string, () => Promise<{ send(...words: string[]): Promise<unknown>; close(): unknown }>> = {
  ioredis: async () => {
    const redis = app('main', 'ioredis')
    return {
      send: (name, ...args) => (name === 'GET' ? redis.get(args[0]!) : redis.call(name!, ...args)),
      close: () => {},
    }
  },
  'node-redis': async () => {
    const redis = createClient({ url: `redis://127.0.0.1:${server.port}` })
    protect(redis, { ...options('main', 'node-redis') })
    await redis.connect()
    return {
      send: (name, ...args) => (name === 'GET' ? redis.get(args[0]!) : redis.sendCommand([name!, ...args])),
      close: () => redis.destroy(),
    }
  },
  proxy: async () => {
    const proxy = await startProxy({
      upstream: `redis://127.0.0.1:${server.port}`,
      port: 0,
      shield: options('main', 'proxy'),
    })
    const redis = new Redis(proxy.port)
    return {
      send: (name, ...args) => redis.call(name!, ...args),
      close: async () => {
        redis.disconnect()
        await proxy.close()
      },
    }
  },
}

test.each(Object.keys(ways))(
  'a process tells which commands it uses on a hot key, also those answered from memory: %s',
  async (way) => {
    const key = `hot:${way}`
    const { send, close } = await ways[way]!()
    await send('SET', key, 'v')
    let isOver = false
    const traffic = (async () => {
      while (!isOver) {
        for (const name of ['GET', 'GET', 'GET', 'STRLEN']) await send(name, key)
        // Lets others on.
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    await waitFor(async () => (await ask('olga', 'main', key)).body.commands?.length === 2, { timeoutMs: 30_000 })
    const { body } = await ask('olga', 'main', key)
    isOver = true
    await traffic
    await close()
    const [get, strlen] = body.commands!
    expect([get!.name, strlen!.name]).toEqual(['GET', 'STRLEN'])
    // Three to one, but for the round that had begun and the one that was cut off.
    expect(Math.abs(get!.perSecond - 3 * strlen!.perSecond)).toBeLessThanOrEqual(6)
    expect(body.serviceId).toBe(way)
  },
  60_000,
)

test('of a key that is not hot nobody counts commands', async () => {
  expect((await ask('olga', 'main', 'text')).body.commands).toBe(null)
})

test('a viewer is refused, an unknown cluster is nobody’s, and each question is in the audit', async () => {
  expect((await ask('vic', 'main', 'text')).body.code).toBe('FB_ROLE_REFUSED')
  const none = await ask('olga', 'elsewhere', 'text')
  expect([none.status, none.body.code]).toEqual([404, 'FB_NOBODY_CAN_ANSWER'])
  const entries = await hub.core.store.audit(100)
  const asked = entries.map(({ who, what }: AuditEntry) => `${who}: ${what}`)
  expect(asked).toContain('olga: inspect key main/text')
  expect(asked).toContain('ann: inspect key open/text with its value')
  expect(asked.some((line) => line.startsWith('vic'))).toBe(false)
})
