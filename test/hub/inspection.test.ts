import { protect, shieldOf } from '@firebreak/client'
import type { AuditEntry, KeyInspection } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
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
const clients: Redis[] = []

function app(showsValues: boolean): Redis {
  const redis = new Redis(server.port)
  protect(redis, {
    hubs: [hub.url],
    serviceId: showsValues ? 'open' : 'shop',
    redisClusterId: showsValues ? 'open' : 'main',
    token: 'app-token-0123456789',
    tableFile: false,
    showsValues,
  })
  clients.push(redis)
  return redis
}

beforeAll(async () => {
  server = await startRedis()
  hub = await startHub({ logLevel: 'silent', tokens: tokens as never })
  const redis = app(false)
  app(true)
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
