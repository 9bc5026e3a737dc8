import { peek } from '@firebreak/client'
import type { RateLimitStrategy } from '@firebreak/core'
import { type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

const oneAnHour: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 1,
  windowMs: 3_600_000,
  onLimit: 'reject',
  scope: 'process',
}

let server: RedisServer
let fixture: Fixture
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  redis = await fixture.client()
  await fixture.plain.set('k', 'first')
  await fixture.makeHot(redis, 'k')
})
afterEach(() => fixture.close())

test('an own write is read back, in every one of many tries, with readers beside it', async () => {
  let isDone = false
  const readers = Array.from({ length: 8 }, async () => {
    while (!isDone) {
      await redis.get('k')
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
  const count = scale(1500, 10_000)
  for (let version = 0; version < count; version++) {
    await redis.set('k', `v${version}`)
    expect(await redis.get('k')).toBe(`v${version}`)
  }
  isDone = true
  await Promise.all(readers)
})

test('a read that is sent behind a write without waiting for it sees the write', async () => {
  for (let version = 0; version < 200; version++) {
    const write = redis.set('k', `v${version}`)
    expect(await redis.get('k')).toBe(`v${version}`)
    await write
    await redis.get('k')
  }
})

test('the same holds in a pipeline, for call(), for a script and for DEL', async () => {
  await redis.get('k')
  const piped = await redis.pipeline().get('k').set('k', 'piped').get('k').exec()
  expect(piped?.map(([, value]) => value)).toEqual(['first', 'OK', 'piped'])
  expect(await redis.get('k')).toBe('piped')
  await redis.call('SET', 'k', 'called')
  expect(await redis.get('k')).toBe('called')
  void redis.eval('return redis.call("SET", KEYS[1], ARGV[1])', 1, 'k', 'scripted')
  expect(await redis.get('k')).toBe('scripted')
  void redis.del('k')
  expect(await redis.get('k')).toBeNull()
  void redis.set('k', 'again')
  void redis.flushall()
  expect(await redis.get('k')).toBeNull()
})

/** A client that listens to a channel, and has read the key before; by RESP2 it may read no more. */
async function listening(isOurs: boolean): Promise<Redis> {
  const client = new Redis(server.port, { protocol: 2 })
  if (isOurs) {
    await fixture.adopt(client)
    await fixture.isServed(() => client.call('GET', 'k'))
  }
  await client.call('GET', 'k')
  await client.subscribe('channel')
  return client
}

test('GETs by call(), one like the other, are answered from memory, and by Redis wherever what came before binds', async () => {
  // The first tells the send path what the others are like.
  const thrice = () => Promise.all([redis.call('GET', 'k'), redis.call('GET', 'k'), redis.call('GET', 'k')])
  const three = (value: unknown) => [value, value, value]
  await fixture.isServed(thrice)
  expect(await thrice()).toEqual(three('first'))
  expect(await Promise.all([redis.callBuffer('GET', 'k'), redis.callBuffer('GET', 'k')])).toEqual(
    three(Buffer.from('first')).slice(1),
  )
  await expect(redis.call('GET', 'k', 'more')).rejects.toThrow('wrong number of arguments')
  void redis.set('k', 'behind')
  expect(await thrice()).toEqual(three('behind'))
  await fixture.isServed(thrice)
  await redis.multi({ pipeline: false })
  expect(await thrice()).toEqual(three('QUEUED'))
  expect(await redis.exec()).toEqual(three('behind').map((value) => [null, value]))
  await fixture.isServed(thrice)
  const before = await fixture.calls('get')
  await redis.watch('k')
  expect(await thrice()).toEqual(three('behind'))
  await redis.unwatch()
  expect(await fixture.calls('get')).toBe(before + 3)
  await redis.select(1)
  expect(await thrice()).toEqual(three(null))
  await redis.select(0)
  await fixture.isServed(thrice)
  const listeners = await Promise.all([true, false].map((isOurs) => listening(isOurs)))
  const refusals = listeners.map((client) => Promise.allSettled([client.call('GET', 'k'), client.call('GET', 'k')]))
  const [ours, bare] = (await Promise.all(refusals)).map((ends) => ends.map((end) => String(Object.values(end)[1])))
  expect(ours).toEqual(bare)
  expect(ours![1]).toContain('subscriber mode')
  for (const client of listeners) client.disconnect()
  fixture.hub.heat('main', ['k'], { strategy: oneAnHour })
  await waitFor(() =>
    thrice().then(
      () => false,
      () => true,
    ),
  )
  redis.disconnect()
  const ends = await Promise.allSettled([redis.call('GET', 'k'), redis.call('GET', 'k')])
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
})

test('a write in a transaction is seen after EXEC, of either kind', async () => {
  await redis.multi().set('k', 'in multi').get('k').exec()
  expect(await redis.get('k')).toBe('in multi')
  await fixture.isServed(() => redis.get('k'))
  await redis.multi({ pipeline: false })
  await redis.set('k', 'by hand')
  const queued: unknown = await redis.get('k')
  expect(queued).toBe('QUEUED')
  await redis.exec()
  expect(await redis.get('k')).toBe('by hand')
  await redis.multi({ pipeline: false })
  await redis.set('k', 'never')
  await redis.discard()
  expect(await redis.get('k')).toBe('by hand')
})

test('under WATCH a hot key is read from Redis, so that optimistic locking holds', async () => {
  await redis.watch('k')
  const before = await fixture.calls('get')
  expect(await redis.get('k')).toBe('first')
  expect(await fixture.calls('get')).toBe(before + 1)
  await fixture.plain.set('k', 'changed meanwhile')
  expect(await redis.multi().set('k', 'lost update').exec()).toBeNull()
  expect(await redis.get('k')).toBe('changed meanwhile')
  await fixture.isServed(() => redis.get('k'))
})

test('a pipeline is answered from memory where it may be, in order and with the rest from Redis', async () => {
  await fixture.plain.set('cold', 'c')
  const before = await fixture.calls('get')
  const replies = await redis.pipeline().get('k').get('cold').getBuffer('k').strlen('k').exec()
  expect(replies).toEqual([
    [null, 'first'],
    [null, 'c'],
    [null, Buffer.from('first')],
    [null, 5],
  ])
  expect(await fixture.calls('get')).toBe(before + 1)
  expect(await redis.pipeline().get('k').get('k').exec()).toEqual([
    [null, 'first'],
    [null, 'first'],
  ])
})

test('a hot key that is read only in pipelines is cached too', async () => {
  await fixture.plain.set('piped', 'v')
  await fixture.makeHot(redis, 'piped', async () => redis.pipeline().get('piped').exec())
  expect(peek(redis, 'piped')).toBe('v')
})

test('other string reads are answered from memory with the very same replies', async () => {
  const reads: ((client: Redis) => Promise<unknown>)[] = [
    (client) => client.strlen('k'),
    (client) => client.getrange('k', 1, 2),
    (client) => client.getrangeBuffer('k', 1, 2),
    (client) => client.getbit('k', 1),
    (client) => client.bitcount('k'),
    (client) => client.exists('k'),
    (client) => client.type('k'),
    (client) => client.mget('k'),
  ]
  for (const read of reads) {
    await fixture.isServed(() => read(redis))
    expect(await read(redis)).toEqual(await read(fixture.plain))
  }
  await fixture.plain.set('k', 'x')
  await waitFor(async () => (await redis.strlen('k')) === 1)
  expect(await redis.mget('k')).toEqual(['x'])
})

test('a callback gets what the promise gets', async () => {
  const value = await new Promise((resolve, reject) => {
    void redis.get('k', (error, result) => (error ? reject(error) : resolve(result)))
  })
  expect(value).toBe('first')
})
