import { peek } from '@firebreak/client'
import { defaultLocalCache } from '@firebreak/core'
import { FaultProxy, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

test('a hot key is read from Redis once and then from memory', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('product:1', 'shoes')
  await fixture.makeHot(redis, 'product:1')
  const before = await fixture.calls('get')
  const values = await Promise.all(Array.from({ length: 1000 }, () => redis.get('product:1')))
  expect(new Set(values)).toEqual(new Set(['shoes']))
  expect(await fixture.calls('get')).toBe(before)
  expect(peek(redis, 'product:1')).toBe('shoes')
  expect(peek(redis, 'product:2')).toBeUndefined()
})

test('a write by a plain client is seen', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('product:1', 'v0')
  await fixture.makeHot(redis, 'product:1')
  for (let version = 1; version <= 50; version++) {
    await fixture.plain.set('product:1', `v${version}`)
    await waitFor(async () => (await redis.get('product:1')) === `v${version}`, { everyMs: 1 })
  }
})

test('a key that does not exist is answered from memory too, until it does', async () => {
  const redis = await fixture.client()
  await fixture.makeHot(redis, 'nothing')
  expect(await redis.get('nothing')).toBeNull()
  expect(peek(redis, 'nothing')).toBeNull()
  await fixture.plain.set('nothing', 'something')
  await waitFor(async () => (await redis.get('nothing')) === 'something')
})

test('getBuffer gives the bytes, each time in a Buffer that the caller may change', async () => {
  const redis = await fixture.client()
  const bytes = Buffer.from([0, 255, 1, 128])
  await fixture.plain.set('bytes', bytes)
  await fixture.makeHot(redis, 'bytes', () => redis.getBuffer('bytes'))
  const first = await redis.getBuffer('bytes')
  expect(first).toEqual(bytes)
  first!.fill(7)
  expect(await redis.getBuffer('bytes')).toEqual(bytes)
})

test('a cached value does not outlive its key', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('short', 'lived', 'PX', 400)
  await fixture.makeHot(redis, 'short')
  for (let isGone = false; !isGone; ) {
    isGone = (await fixture.plain.exists('short')) === 0
    const value = await redis.get('short')
    // What was gone in Redis before our read began, we may not have either.
    if (isGone) expect(value).toBeNull()
  }
})

test('keyPrefix, database and key are what an entry is kept under', async () => {
  const prefixed = await fixture.client({}, { keyPrefix: 'app:' })
  const second = await fixture.client({}, { db: 2 })
  await fixture.plain.set('app:k', 'prefixed')
  await fixture.plain.set('k', 'zero')
  await second.set('app:k', 'in two')
  await fixture.makeHot(prefixed, 'app:k', () => prefixed.get('k'))
  await fixture.isServed(() => second.get('app:k'))
  expect(await prefixed.get('k')).toBe('prefixed')
  expect(await second.get('app:k')).toBe('in two')
  await prefixed.select(2)
  expect(await prefixed.get('k')).toBe('in two')
})

test('a strategy that the table takes back ends, a repeated one does not wipe the value', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v')
  await fixture.makeHot(redis, 'k')
  const before = await fixture.calls('get')
  fixture.hub.heat('main', ['k'])
  await waitFor(() => fixture.hub.statuses.some(({ version }) => version === fixture.hub.version))
  expect(peek(redis, 'k')).toBe('v')
  expect(await fixture.calls('get')).toBe(before)
  fixture.hub.cool('main', ['k'])
  await waitFor(() => peek(redis, 'k') === undefined)
  await redis.get('k')
  expect(await fixture.calls('get')).toBe(before + 1)
})

test('200 readers at the moment of an invalidation make one read of Redis', async () => {
  const proxy = await FaultProxy.start(server.port)
  const redis = await fixture.client({ leaseMs: 2000 }, { port: proxy.port })
  await fixture.plain.set('k', 'old')
  await fixture.makeHot(redis, 'k')
  proxy.faults.serverDelayMs = 100
  const before = await fixture.calls('get')
  await fixture.plain.set('k', 'new')
  await waitFor(() => peek(redis, 'k') === undefined)
  const values = await Promise.all(Array.from({ length: 200 }, () => redis.get('k')))
  expect(new Set(values)).toEqual(new Set(['new']))
  expect((await fixture.calls('get')) - before).toBe(1)
  await proxy.close()
})

test('a value larger than the cache is read from Redis and not kept', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('large', 'x'.repeat(10_000))
  fixture.hub.heat('main', ['large'], { strategy: { ...defaultLocalCache, maxBytes: 5000 } })
  await waitFor(async () => {
    await redis.get('large')
    return fixture.hub.statuses.some(({ counters }) => counters.loads > 0)
  })
  expect(await redis.get('large')).toBe('x'.repeat(10_000))
  expect(peek(redis, 'large')).toBeUndefined()
})

test('consistent: false serves until its TTL, whatever happens to the key', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'old')
  fixture.hub.heat('main', ['k'], { strategy: { ...defaultLocalCache, expireTime: 1, consistent: false } })
  await waitFor(async () => {
    await redis.get('k')
    return peek(redis, 'k') === 'old'
  })
  await fixture.plain.set('k', 'new')
  expect(await redis.get('k')).toBe('old')
  await waitFor(async () => (await redis.get('k')) === 'new')
})

test('a hot key of another type gets the error that Redis gives, and the value once it is a string', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'text')
  await fixture.makeHot(redis, 'k')
  await fixture.plain.del('k')
  await fixture.plain.lpush('k', 'item')
  await waitFor(async () => {
    const failure = await redis.get('k').catch((error: Error) => error)
    return failure instanceof Error && failure.message.startsWith('WRONGTYPE')
  })
  await fixture.plain.set('k', 'text again')
  await waitFor(async () => (await redis.get('k').catch(() => '')) === 'text again')
})
