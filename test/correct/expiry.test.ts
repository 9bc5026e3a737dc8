import { defaultLocalCache } from '@firebreak/core'
import { type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { ways } from './ways.ts'

describe.each(ways)('$name', (way) => {
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

  test('memory never serves a value more than 5 ms past its TTL', async () => {
    const redis = await way.client(fixture, server.port)
    const keys = Array.from({ length: scale(20, 200) }, (_, index) => `k${index}`)
    fixture.hub.heat('main', keys)
    await fixture.makeHot(redis, 'first')
    await Promise.all(
      keys.map(async (key, index) => {
        const ttlMs = 200 + (index % 10) * 20
        await fixture.plain.set(key, 'v', 'PX', ttlMs)
        // Redis' own expiry of the key is not later than this.
        const endsAt = performance.now() + ttlMs
        let servedAt = 0
        let hits = 0
        await waitFor(
          async () => {
            const now = performance.now()
            if ((await redis.peek(key)) === 'v') {
              hits++
              servedAt = now
            } else if (now < endsAt - 50) await redis.get(key)
            return now > endsAt + 100
          },
          { everyMs: 1 },
        )
        expect(hits, 'the value was served from memory').toBeGreaterThan(0)
        expect(servedAt - endsAt).toBeLessThanOrEqual(5)
      }),
    )
  })

  test('the time limit of a rule ends a value too, without a write or a TTL', async () => {
    const redis = await way.client(fixture, server.port)
    await fixture.plain.set('k', 'v')
    // Too short to be reloaded in time: a longer one that is read all the time never expires, because it is renewed.
    fixture.hub.heat('main', ['k'], { strategy: { ...defaultLocalCache, expireTime: 0.15 } })
    await waitFor(async () => (await redis.get('k')) && (await redis.peek('k')) === 'v')
    const reads = await fixture.calls('get')
    await waitFor(async () => (await redis.peek('k')) === undefined)
    await redis.get('k')
    expect(await fixture.calls('get')).toBeGreaterThan(reads)
  })
})
