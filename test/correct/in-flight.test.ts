import { FaultProxy, letTimePass, type RedisServer, scale, startRedis } from '@firebreak/testkit'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { ways } from './ways.ts'

describe.each(ways)('$name', (way) => {
  let server: RedisServer
  let control: RedisServer
  let fixture: Fixture
  let slowness: Slowness
  let proxy: FaultProxy

  beforeAll(async () => {
    server = await startRedis()
    control = await startRedis()
  })
  afterAll(() => Promise.all([server.stop(), control.stop()]))
  beforeEach(async () => {
    fixture = await Fixture.start(server.port)
    slowness = new Slowness(control.port)
    proxy = await FaultProxy.start(server.port)
  })
  afterEach(async () => {
    slowness.stop()
    await fixture.close()
    await proxy.close()
  })

  const changes: readonly [string, (plain: Redis, key: string, value: string) => Promise<unknown>][] = [
    ['SET', (plain, key, value) => plain.set(key, value)],
    ['DEL', (plain, key) => plain.del(key)],
    ['UNLINK', (plain, key) => plain.unlink(key)],
    ['EXPIRE 0', (plain, key) => plain.expire(key, 0)],
    ['RENAME', (plain, key, value) => plain.set(`new ${key}`, value).then(() => plain.rename(`new ${key}`, key))],
    ['FLUSHDB', (plain) => plain.flushdb()],
    ['FLUSHALL', (plain) => plain.flushall()],
    ['Lua', (plain, key, value) => plain.eval('return redis.call("SET", KEYS[1], ARGV[1])', 1, key, value)],
    ['MULTI', (plain, key, value) => plain.multi().set(key, value).exec()],
  ]
  /** Changes that go on at once, each on a key of its own; a flush takes them all. */
  const width = scale(10, 40)
  const rounds = scale(1, 5)

  test.each(changes)(
    '%s that meets reads in flight leaves nothing stale',
    async (name, change) => {
      const { plain } = fixture
      const redis = await way.client(fixture, proxy.port)
      // Replies and pushes come together, 5 ms late: the moment at which other caches keep a value for ever.
      proxy.faults.serverDelayMs = 5
      const keys = Array.from({ length: width }, (_, index) => `k${index}`)
      fixture.hub.heat('main', keys)
      await fixture.makeHot(redis, 'k0')
      const stale: string[] = []
      for (let round = 0; round < rounds; round++) {
        await plain.mset(Object.fromEntries(keys.map((key) => [key, 'before'])))
        await Promise.all(keys.map((key) => redis.get(key)))
        await Promise.all(
          keys.map(async (key, index) => {
            // Every key at another moment of the five milliseconds, each with reads on their way.
            await letTimePass((index % 10) / 2)
            await redis.set(`${key}:other`, '1')
            const reads = Promise.all(Array.from({ length: 5 }, () => redis.get(key)))
            await change(plain, key, `${name} ${round}`)
            await reads
          }),
        )
        const ackedAt = performance.now()
        const truth = await plain.mget(keys)
        // The bar of 150 ms, or what this machine takes for three ways to Redis and back.
        const dueAt = ackedAt + slowness.allow(150, 3)
        while (performance.now() < dueAt) await Promise.all(keys.map((key) => redis.get(key)))
        const seen = await Promise.all(keys.map((key) => redis.get(key)))
        for (const [index, key] of keys.entries())
          if (seen[index] !== truth[index]) stale.push(`${key}: ${seen[index]} for ${truth[index]}`)
      }
      expect(stale).toEqual([])
    },
    scale(60_000, 120_000),
  )
})
