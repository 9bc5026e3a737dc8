import type { RateLimitStrategy } from '@firebreak/core'
import { FaultProxy, letTimePass, type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { largest, VersionOracle, VersionReader } from './version-oracle.ts'
import { type Guarded, ways } from './ways.ts'

const unreachedLimit: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 1_000_000,
  windowMs: 1000,
  onLimit: 'stale',
  scope: 'process',
}

describe.each(ways)('$name', (way) => {
  /** A server of its own for each test, and one that nobody disturbs to measure the machine with. */
  let control: RedisServer
  let server: RedisServer
  let fixture: Fixture
  let slowness: Slowness

  beforeAll(async () => {
    control = await startRedis()
  })
  afterAll(() => control.stop())
  beforeEach(async () => {
    server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    fixture = await Fixture.start(server.port)
    fixture.plain.on('error', () => {})
    slowness = new Slowness(control.port)
  })
  afterEach(async () => {
    slowness.stop()
    await fixture.close()
    await server.stop()
  })

  /** Writes and reads versions of one key while `disturb` runs and until the reader serves the newest from memory again. */
  async function disturbed(redis: Guarded, disturb: (oracle: VersionOracle) => Promise<void>) {
    const oracle = new VersionOracle()
    await oracle.write((value) => fixture.plain.set('k', value))
    await fixture.makeHot(redis, 'k')
    // A round before this one may have left its last version in memory, and versions begin at 1 again.
    await waitFor(async () => (await redis.get('k')) === '1', { what: 'the first version of this round' })
    const reader = new VersionReader(oracle, () => redis.get('k'))
    let isDone = false
    const writer = (async () => {
      while (!isDone) {
        await oracle.write((value) => fixture.plain.set('k', value))
        await letTimePass(10)
      }
    })()
    const reading = reader.until(() => isDone)
    await disturb(oracle)
    isDone = true
    await Promise.all([writer, reading])
    const newest = await fixture.plain.get('k')
    await waitFor(async () => (await redis.get('k')) === newest && (await redis.peek('k')) === newest, {
      what: 'the newest version to be served from memory',
    })
    return reader
  }

  test('a channel that is killed twenty times leaves nothing stale, and no version goes back', async () => {
    const proxy = await FaultProxy.start(server.port)
    const redis = await way.watchedThrough(fixture, server.port, proxy)
    const reader = await disturbed(redis, async () => {
      for (let kill = 0; kill < 20; kill++) {
        const connections = proxy.connectionCount
        proxy.cut()
        await waitFor(() => proxy.connectionCount > connections)
        await waitFor(async () => (await redis.peek('k')) !== undefined)
      }
    })
    expect(largest(reader.staleMs)).toBeLessThanOrEqual(slowness.allow(50))
    expect([reader.backwards, reader.failures]).toEqual([0, 0])
    await proxy.close()
  })

  test.each([
    ['with', true],
    ['without', false],
  ])('Redis killed and restarted %s its data: nothing stale is served after the reconnect', async (_, keepsData) => {
    const redis = await way.client(fixture, server.port)
    const reader = await disturbed(redis, async (oracle) => {
      server.child.signal('SIGKILL')
      await server.child.exited
      const acked = oracle.acked
      server = await server.restart(keepsData ? undefined : ['--appendonly', 'no'])
      await waitFor(() => oracle.acked > acked + 20, { timeoutMs: 30_000 })
      await waitFor(async () => (await redis.peek('k')) !== undefined)
    })
    expect(largest(reader.staleMs)).toBeLessThanOrEqual(slowness.allow(50))
    expect(reader.backwards).toBe(0)
  })

  test('a Redis that is paused and resumes: nothing is stale afterwards', async () => {
    const redis = await way.client(fixture, server.port)
    const reader = await disturbed(redis, async (oracle) => {
      for (let round = 0; round < scale(2, 5); round++) {
        server.child.signal('SIGSTOP')
        await waitFor(async () => (await redis.peek('k')) === undefined, { what: 'the lease to end' })
        const acked = oracle.acked
        server.child.signal('SIGCONT')
        await waitFor(() => oracle.acked > acked + 5)
        await waitFor(async () => (await redis.peek('k')) !== undefined)
      }
    })
    expect(largest(reader.staleMs)).toBeLessThanOrEqual(slowness.allow(50))
    expect(reader.backwards).toBe(0)
  })

  test('a black hole: nothing is older than the lease, the bypass is visible, and it recovers', async () => {
    const leaseMs = 300
    const proxy = await FaultProxy.start(server.port)
    const redis = await way.watchedThrough(fixture, server.port, proxy, { leaseMs })
    for (let round = 0; round < scale(2, 10); round++) {
      const statuses = fixture.hub.statuses.length
      const reader = await disturbed(redis, async () => {
        proxy.faults.isBlackHole = true
        await waitFor(async () => (await redis.peek('k')) === undefined, { what: 'the lease to end' })
        const news = () => fixture.hub.statuses.slice(statuses)
        await waitFor(() => news().some(({ counters }) => counters.bypasses > 0), { what: 'bypasses in a status' })
        await waitFor(() => news().some(({ watchers }) => watchers.some(({ state }) => state !== 'live')))
        proxy.faults.isBlackHole = false
        const healedAt = performance.now()
        await waitFor(async () => (await redis.peek('k')) !== undefined, { what: 'it to heal' })
        // A new connection, its greeting, tracking and a read take about six round trips.
        expect(performance.now() - healedAt).toBeLessThan(slowness.allow(1000, 6))
      })
      expect(largest(reader.staleMs)).toBeLessThanOrEqual(leaseMs + slowness.allow(50))
      expect([reader.backwards, reader.failures]).toEqual([0, 0])
    }
    await proxy.close()
  })

  test('a black hole is given up and recovers, even if all reads there are under a limit', async () => {
    const proxy = await FaultProxy.start(server.port)
    const redis = await way.watchedThrough(fixture, server.port, proxy)
    const { hub } = fixture
    await redis.set('k', 'v')
    hub.heat('main', ['k'])
    await waitFor(async () => (await redis.get('k')) && (await redis.peek('k')) === 'v')
    hub.heat('main', ['k'], { strategy: unreachedLimit })
    await waitFor(async () => (await redis.peek('k')) === undefined)
    const connections = proxy.connectionCount
    proxy.faults.isBlackHole = true
    await waitFor(async () => (await redis.get('k')) === 'v' && proxy.connectionCount > connections)
    proxy.faults.isBlackHole = false
    const statuses = hub.statuses.length
    const isLive = () =>
      hub.statuses.slice(statuses).some(({ watchers }) => watchers.some(({ state }) => state === 'live'))
    await waitFor(async () => (await redis.get('k')) === 'v' && isLive())
    await proxy.close()
  })
})
