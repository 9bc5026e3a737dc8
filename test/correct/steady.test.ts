import { FaultProxy, letTimePass, type RedisServer, scale, startRedis } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { largest, staleQuantile, VersionOracle, VersionReader } from './version-oracle.ts'
import { ways } from './ways.ts'

describe.each(ways)('$name', (way) => {
  let server: RedisServer
  let fixture: Fixture
  let slowness: Slowness

  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    fixture = await Fixture.start(server.port)
    slowness = new Slowness(server.port)
  })
  afterEach(async () => {
    slowness.stop()
    await fixture.close()
  })

  test(
    'under steady load of 1 writer and 8 readers, nine of ten reads are local, and hardly any is stale',
    async () => {
      const oracle = new VersionOracle()
      await oracle.write((value) => fixture.plain.set('k', value))
      const clients = await way.clients(fixture, server.port, 8)
      for (const client of clients) await fixture.makeHot(client, 'k')
      const readers = clients.map((client) => new VersionReader(oracle, () => client.get('k')))
      const control = new VersionReader(oracle, () => fixture.plain.get('k'))
      const before = await fixture.calls('get')
      const endAt = performance.now() + scale(4000, 60_000)
      const isDone = () => performance.now() > endAt
      const writer = async () => {
        while (!isDone()) {
          await oracle.write((value) => fixture.plain.set('k', value))
          await letTimePass(20)
        }
      }
      await Promise.all([writer(), control.until(isDone, 2), ...readers.map((reader) => reader.until(isDone))])

      const reads = readers.reduce((sum, reader) => sum + reader.reads, 0)
      const loads = (await fixture.calls('get')) - before - control.reads
      expect(oracle.acked).toBeGreaterThan(10)
      // A check of the oracle itself: without a cache nothing is ever stale.
      expect([largest(control.staleMs), control.backwards]).toEqual([0, 0])
      expect(1 - loads / reads).toBeGreaterThanOrEqual(0.9)
      const staleMs = readers.flatMap((reader) => reader.staleMs)
      expect(staleQuantile(staleMs, reads, 0.99)).toBeLessThanOrEqual(Math.max(5, 2 * slowness.quantileMs(0.99)))
      expect(largest(staleMs)).toBeLessThanOrEqual(slowness.allow(50))
      expect(readers.map(({ backwards, failures }) => [backwards, failures])).toEqual(readers.map(() => [0, 0]))
    },
    scale(60_000, 150_000),
  )

  test(
    'a client reads its own writes, awaited or not, although the watcher learns of them late',
    async () => {
      const proxy = await FaultProxy.start(server.port)
      const redis = await way.watchedThrough(fixture, server.port, proxy)
      const keys = Array.from({ length: 10 }, (_, index) => `own${index}`)
      fixture.hub.heat('main', keys)
      await fixture.makeHot(redis, 'own0')
      // The push arrives long after the acknowledgement: a value that we do not drop ourselves would be served.
      proxy.faults.serverDelayMs = 3
      const stale: string[] = []
      let hits = 0
      await Promise.all(
        keys.map(async (key) => {
          for (let version = 1; version <= scale(100, 1000); version++) {
            const value = String(version)
            if ((await redis.peek(key)) !== undefined) hits++
            const written = redis.set(key, value)
            if (version % 2 === 0) await written
            const seen = [await redis.get(key)]
            await written
            seen.push(await redis.get(key), await redis.get(key))
            if (seen.some((one) => one !== value)) stale.push(`${key}: ${seen} for ${value}`)
            // Now and then the value is in memory when the next write is sent.
            if (version % 5 === 0) await letTimePass(5)
          }
        }),
      )
      expect(hits).toBeGreaterThan(0)
      expect(stale).toEqual([])
      await proxy.close()
    },
    scale(60_000, 200_000),
  )
})
