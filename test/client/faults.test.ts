import { join } from 'node:path'
import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { defaultLocalCache } from '@firebreak/core'
import { FaultProxy, type RedisServer, startRedis, temporaryFolder, testRule, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Slowness } from '../correct/slowness.ts'
import { Fixture } from './fixture.ts'

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

test('a killed hub fails and delays no Redis call; on its return the table is right within a second', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v')
  await fixture.makeHot(redis, 'k')
  const failures: unknown[] = []
  let slowest = 0
  let isDone = false
  const load = Array.from({ length: 4 }, async (_, worker) => {
    for (let index = 0; !isDone; index++) {
      const startedAt = performance.now()
      await redis.get(index % 2 === 0 ? 'k' : `cold:${worker}`).catch((error) => failures.push(error))
      slowest = Math.max(slowest, performance.now() - startedAt)
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
  await fixture.hub.kill()
  await waitFor(() => !shieldOf(redis)!.isConnected)
  // Still hot by the last table.
  expect(peek(redis, 'k')).toBe('v')
  fixture.hub.heat('main', ['other'])
  fixture.hub.cool('main', ['k'])
  const returnedAt = performance.now()
  await fixture.hub.listen()
  await waitFor(() => peek(redis, 'k') === undefined)
  // A second, or what this machine takes for the retry, the greeting and the table.
  expect(performance.now() - returnedAt).toBeLessThan(slowness.allow(1000, 6))
  await fixture.isServed(() => redis.get('other'))
  isDone = true
  await Promise.all(load)
  expect(failures).toEqual([])
  // A call that waited for a hub would wait for its whole absence; a bare one waits for the machine alone.
  expect(slowest).toBeLessThan(slowness.allow(500, 2))
})

test('hubs are tried in turn', async () => {
  const redis = await fixture.client({ hubs: ['http://127.0.0.1:1', fixture.hub.url] })
  await redis.get('k')
  expect(shieldOf(redis)!.isConnected).toBe(true)
})

test('reports that no hub takes are dropped, oldest first, and the drops are counted', async () => {
  const redis = await fixture.client({ maxQueuedReports: 3 })
  await fixture.hub.kill()
  await waitFor(() => !shieldOf(redis)!.isConnected)
  await waitFor(async () => {
    await Promise.all(Array.from({ length: 10 }, () => redis.get('k')))
    return shieldOf(redis)!.losses.droppedReports > 2
  })
  await fixture.hub.listen()
  await waitFor(() => fixture.hub.statuses.some(({ counters }) => counters.droppedReports > 2))
})

test('a delta that does not fit, or a heartbeat with a higher version, asks for a snapshot', async () => {
  const redis = await fixture.client()
  fixture.hub.version += 5
  fixture.hub.heat('main', ['k'])
  await fixture.isServed(() => redis.get('k'))
  expect(fixture.hub.resyncs.length).toBeGreaterThan(0)
  // A table that changed without a word shows in the heartbeat.
  fixture.hub.entries = []
  fixture.hub.version++
  await waitFor(() => peek(redis, 'k') === undefined)
  // A hub whose store was reset has a new epoch and a lower version, and is believed.
  fixture.hub.epoch = 'e2'
  fixture.hub.version = 1
  fixture.hub.heat('main', ['k'])
  await fixture.isServed(() => redis.get('k'))
})

test('an entry lapses at its `until` by the clock of the hub, whatever ours says', async () => {
  fixture.hub.clockOffsetMs = 3_600_000
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v')
  fixture.hub.heat('main', ['old'], { until: fixture.hub.now() - 1000 })
  fixture.hub.heat('main', ['k'], { until: fixture.hub.now() + 2500 })
  await waitFor(async () => (await redis.get('k')) && peek(redis, 'k') === 'v')
  await redis.get('old')
  expect(peek(redis, 'old')).toBeUndefined()
  await waitFor(() => peek(redis, 'k') === undefined)
})

test('a process that starts without a hub goes by the last good table, except what has lapsed', async () => {
  const tableFile = join(temporaryFolder('table'), 'table.json')
  const first = await fixture.client({ tableFile })
  await fixture.plain.mset({ k: 'v', gone: 'v' })
  const until = fixture.hub.now() + 50
  fixture.hub.heat('main', ['gone'], { until })
  await fixture.makeHot(first, 'k')
  unprotect(first)
  await waitFor(() => fixture.hub.now() > until)
  await fixture.hub.kill()
  const second = protect(new Redis(server.port), {
    hubs: [fixture.hub.url],
    serviceId: 'shop',
    redisClusterId: 'main',
    tableFile,
    onWarning: () => {},
  })
  await fixture.isServed(() => second.get('k'))
  await second.get('gone')
  await second.get('gone')
  expect(peek(second, 'gone')).toBeUndefined()
  unprotect(second)
  second.disconnect()
  await fixture.hub.listen()
})

test('the kill switch makes a fleet of 8 plain within a second, and lets it back within a second', async () => {
  await fixture.plain.set('k', 'v')
  fixture.hub.heat('main', ['k'])
  const fleet = await Promise.all(Array.from({ length: 8 }, (_, index) => fixture.client({ instanceId: `p${index}` })))
  for (const redis of fleet) await fixture.isServed(() => redis.get('k'))
  for (const isOff of [true, false]) {
    const thrownAt = performance.now()
    fixture.hub.setOff(isOff)
    await waitFor(() => fleet.every((redis) => shieldOf(redis)!.isOff === isOff))
    expect(performance.now() - thrownAt).toBeLessThan(slowness.allow(1000, 4))
    const counted = fixture.hub.counted('k').count
    const before = await fixture.calls('get')
    for (const redis of fleet) for (let index = 0; index < 10; index++) expect(await redis.get('k')).toBe('v')
    const reads = (await fixture.calls('get')) - before
    if (isOff) {
      expect(reads).toBe(80)
      expect(fixture.hub.counted('k').count).toBe(counted)
    } else {
      expect(reads).toBeLessThan(80)
      for (const redis of fleet) await fixture.isServed(() => redis.get('k'))
    }
  }
})

test('FIREBREAK=off leaves a client as it is', async () => {
  process.env['FIREBREAK'] = 'off'
  const redis = new Redis(server.port)
  expect(protect(redis)).toBe(redis)
  delete process.env['FIREBREAK']
  expect(Object.hasOwn(redis, 'sendCommand')).toBe(false)
  expect(shieldOf(redis)).toBeUndefined()
  redis.disconnect()
})

test('unprotect gives the client back bare', async () => {
  const redis = await fixture.client()
  await fixture.makeHot(redis, 'k')
  unprotect(redis)
  expect(Object.hasOwn(redis, 'sendCommand') || Object.hasOwn(redis, 'get')).toBe(false)
  const before = await fixture.calls('get')
  await redis.get('k')
  expect(await fixture.calls('get')).toBe(before + 1)
  await waitFor(() => fixture.hub.connections === 0)
})

test('a black hole ends serving after a lease; reads go on, and it heals', async () => {
  const leaseMs = 300
  const proxy = await FaultProxy.start(server.port)
  // Only the shield's connection passes the proxy: the application's own stays well.
  const redis = new Redis(server.port)
  const { port } = proxy
  Object.assign(redis.options, { port })
  await fixture.adopt(redis, { leaseMs })
  await fixture.plain.set('k', 'v0')
  await fixture.makeHot(redis, 'k')
  proxy.faults.isBlackHole = true
  await fixture.plain.set('k', 'v1')
  const writtenAt = performance.now()
  let lastStaleAt = writtenAt
  await waitFor(
    async () => {
      const startedAt = performance.now()
      const value = await redis.get('k')
      if (value === 'v0') lastStaleAt = startedAt
      return startedAt - writtenAt > leaseMs * 3
    },
    { everyMs: 1 },
  )
  expect(lastStaleAt - writtenAt).toBeLessThan(leaseMs + slowness.allow(50))
  await waitFor(() => fixture.hub.statuses.some(({ watchers }) => watchers.some(({ state }) => state !== 'live')))
  await waitFor(() => fixture.hub.statuses.some(({ counters }) => counters.bypasses > 0))
  proxy.faults.isBlackHole = false
  const healedAt = performance.now()
  await waitFor(async () => (await redis.get('k')) === 'v1' && peek(redis, 'k') === 'v1')
  expect(performance.now() - healedAt).toBeLessThan(slowness.allow(1000, 6))
  await proxy.close()
})

test('a watcher that is cut, many times, never leaves anything stale behind', async () => {
  const proxy = await FaultProxy.start(server.port)
  const redis = new Redis(server.port)
  const { port } = proxy
  Object.assign(redis.options, { port })
  await fixture.adopt(redis)
  await fixture.plain.set('k', 'v0')
  await fixture.makeHot(redis, 'k')
  for (let round = 1; round <= 20; round++) {
    proxy.cut()
    await fixture.plain.set('k', `v${round}`)
    await waitFor(() => peek(redis, 'k') === undefined || peek(redis, 'k') === `v${round}`)
    await waitFor(async () => (await redis.get('k')) === `v${round}` && peek(redis, 'k') === `v${round}`)
  }
  await proxy.close()
})

test('Redis restarted: nothing stale after the reconnect', async () => {
  const own = await startRedis()
  const ownFixture = await Fixture.start(own.port)
  const redis = await ownFixture.client()
  await ownFixture.plain.set('k', 'before')
  await ownFixture.makeHot(redis, 'k')
  await own.stop()
  const again = await own.restart()
  await ownFixture.plain.set('k', 'after')
  expect(await redis.get('k')).toBe('after')
  await waitFor(async () => (await redis.get('k')) === 'after' && peek(redis, 'k') === 'after')
  await ownFixture.close()
  await again.stop()
})

test('where tracking is refused, values live fallbackTtlMs and the status says so', async () => {
  const { plain } = fixture
  await plain.call('ACL', 'SETUSER', 'limited', 'on', '>pass', '~*', '+@all', '-client|tracking')
  const redis = await fixture.client({ fallbackTtlMs: 150 }, { username: 'limited', password: 'pass' })
  await plain.set('k', 'old')
  fixture.hub.heat('main', ['k'])
  await waitFor(async () => (await redis.get('k')) && peek(redis, 'k') === 'old')
  await plain.set('k', 'new')
  await waitFor(async () => (await redis.get('k')) === 'new')
  await waitFor(() => fixture.hub.statuses.some(({ watchers }) => watchers.some(({ kind }) => kind === 'fallback')))
  await plain.call('ACL', 'DELUSER', 'limited')
})

test('the lane of the hub drops keys, and a gap in it drops everything', async () => {
  const redis = await fixture.client()
  await fixture.plain.mset({ a: '1', b: '1' })
  const unguarded = { strategy: { ...defaultLocalCache, consistent: false } }
  fixture.hub.heat('main', ['a', 'b'], unguarded)
  const cached = async () => {
    await redis.get('a')
    await redis.get('b')
    return peek(redis, 'a') !== undefined && peek(redis, 'b') !== undefined
  }
  await waitFor(cached)
  fixture.hub.invalidate({ redisClusterId: 'main', database: 0, kind: 'keys', items: [{ key: 'a' }] })
  await waitFor(() => peek(redis, 'a') === undefined)
  expect(peek(redis, 'b')).toBe('1')
  await waitFor(cached)
  fixture.hub.laneHead += 3
  await waitFor(() => peek(redis, 'a') === undefined && peek(redis, 'b') === undefined)
  await waitFor(cached)
  fixture.hub.invalidate({ redisClusterId: 'main', database: -1, kind: 'flush', items: [] })
  await waitFor(() => peek(redis, 'a') === undefined && peek(redis, 'b') === undefined)
})

test('a process that alone crosses a threshold acts at once and claims the key', async () => {
  const redis = await fixture.client()
  fixture.hub.setRules([testRule(200)])
  await fixture.plain.set('k', 'v')
  await waitFor(
    async () => {
      await Promise.all(Array.from({ length: 50 }, () => redis.get('k')))
      return peek(redis, 'k') === 'v'
    },
    { everyMs: 1 },
  )
  expect(fixture.hub.entries).toEqual([])
  await waitFor(() =>
    fixture.hub.claims.some(({ key, ruleId, heat }) => key === 'k' && ruleId === 'test' && heat >= 200),
  )
  // Nobody confirms it: it lapses once it is cold. Looking is a read too, so seldom enough not to keep it hot.
  await waitFor(() => peek(redis, 'k') === undefined, { everyMs: 50 })
})
