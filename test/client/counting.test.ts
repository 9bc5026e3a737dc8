import { protect, shieldOf, unprotect } from '@firebreak/client'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { clusterOf } from '../../packages/client/src/protect.ts'
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

/** Waits until the hub has counted this and checks that no more comes with the next reports. */
async function expectCounted(counts: Record<string, [count: number, writes: number]>): Promise<void> {
  const seen = () => Object.fromEntries(Object.keys(counts).map((key) => [key, fixture.hub.counted(key)]))
  const wanted = Object.fromEntries(Object.entries(counts).map(([key, [count, writes]]) => [key, { count, writes }]))
  await waitFor(() => JSON.stringify(seen()) === JSON.stringify(wanted), {
    timeoutMs: 5000,
    what: () => `${JSON.stringify(wanted)}, have ${JSON.stringify(seen())}`,
  })
}

test('single commands, reads and writes, are counted by key', async () => {
  const redis = await fixture.client()
  await redis.set('a', '1')
  await redis.get('a')
  await redis.get('a')
  await redis.hset('h', 'f', 'v')
  await redis.mget('a', 'b')
  await redis.call('GET', 'a')
  await redis.getBuffer(Buffer.from('a'))
  await redis.object('ENCODING', 'a')
  await expectCounted({ a: [7, 1], b: [1, 0], h: [1, 1] })
})

test('pipelines, transactions, autopipelining and both kinds of scripts are counted', async () => {
  const redis = await fixture.client()
  await redis.pipeline().set('p', '1').get('p').get('p').exec()
  await redis.multi().incr('m').get('m').exec()
  await redis.multi({ pipeline: false })
  await redis.incr('m')
  await redis.exec()
  await redis.eval('return redis.call("GET", KEYS[1])', 1, 's')
  redis.defineCommand('twice', { numberOfKeys: 2, lua: 'return 1' })
  const scripted = redis as Redis & { twice(first: string, second: string): Promise<number> }
  await scripted.twice('s', 't')
  await scripted.twice('s', 't')
  const auto = await fixture.client({}, { enableAutoPipelining: true })
  await Promise.all([auto.get('auto'), auto.get('auto'), auto.set('auto', '1')])
  await expectCounted({ p: [3, 1], m: [3, 2], s: [3, 3], t: [2, 2], auto: [3, 1] })
})

test('reads of cold keys beside a hot one are counted once each, wherever they are sent', async () => {
  const redis = await fixture.client()
  fixture.hub.heat('main', ['hot'])
  await waitFor(() => clusterOf(redis)!.hasHotKeys)
  for (let read = 0; read < 3; read++) await redis.get('cold')
  await redis.pipeline().get('cold').get('cold').exec()
  await redis.watch('cold')
  await redis.get('cold')
  await redis.get('cold')
  await redis.unwatch()
  await redis.multi({ pipeline: false })
  await redis.get('cold')
  await redis.get('cold')
  await redis.exec()
  await Promise.all([redis.set('cold', '1'), redis.get('cold'), redis.get('cold'), redis.set('cold', '2')])
  await expectCounted({ cold: [14, 2] })
})

test('a command that waits for the connection is counted once', async () => {
  const redis = new Redis(server.port, { lazyConnect: true })
  await fixture.adopt(redis)
  await Promise.all([redis.get('early'), redis.set('early', '1')])
  await redis.get('early')
  await expectCounted({ early: [3, 1] })
})

test('local hits are counted as well as reads of Redis, so that true heat is known', async () => {
  const redis = await fixture.client()
  await fixture.makeHot(redis, 'k')
  await waitFor(() => fixture.hub.counted('k').count > 0)
  const counted = fixture.hub.counted('k').count
  for (let index = 0; index < 500; index++) await redis.get('k')
  await waitFor(() => fixture.hub.counted('k').count >= counted + 500)
  await waitFor(() => fixture.hub.statuses.some(({ keys }) => keys.some(({ localHits }) => localHits >= 500)))
})

test('totals are always sent, small counts are sampled as the hub asks, and their sum is kept', async () => {
  fixture.hub.samplingFloor = 8
  const redis = await fixture.client()
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 200 }, (_, index) => redis.get(`key:${index}`)))
  }
  const total = () =>
    fixture.hub.reports.flatMap(({ sections }) => sections).reduce((sum, section) => sum + section.totalCount!, 0)
  await waitFor(() => total() === 4000)
  const entries = fixture.hub.reports.flatMap(({ sections }) => sections.flatMap((section) => section.entries))
  expect(entries.every(({ count }) => count >= 8)).toBe(true)
  const sum = entries.reduce((all, { count }) => all + count, 0)
  // 4,000 accesses in counts from 1 on: the sum's standard deviation is at most √(4000 · 7) = 167.
  expect(Math.abs(sum - 4000)).toBeLessThan(6 * 167)
})

test('with redactKey no key leaves the process, and hot keys are handled all the same', async () => {
  const redactKey = (key: string) => `#${Buffer.from(key).toString('hex')}`
  const redis = await fixture.client({ redactKey })
  await fixture.plain.set('secret:1', 'v')
  await redis.get('secret:1')
  await waitFor(() => fixture.hub.counted(redactKey('secret:1')).count > 0)
  fixture.hub.heat('main', [redactKey('secret:1')])
  await fixture.isServed(() => redis.get('secret:1'))
  // A key of the table that this process touches only later is found when it does.
  fixture.hub.heat('main', [redactKey('secret:2')])
  await fixture.isServed(() => redis.get('secret:2'))
  await waitFor(() => fixture.hub.statuses.some(({ keys }) => keys.length > 0))
  const { reports, statuses, claims, hellos } = fixture.hub
  expect(JSON.stringify({ reports, statuses, claims, hellos })).not.toContain('secret')
})

test('reports go out as text over HTTP while the hub takes no WebSocket, and over WebSocket once it does', async () => {
  fixture.hub.takesWebSockets = false
  const redis = protect(new Redis(server.port), {
    hubs: [fixture.hub.url],
    serviceId: 'shop',
    redisClusterId: 'main',
    tableFile: false,
    onWarning: () => {},
  })
  for (let index = 0; index < 20; index++) await redis.get('by-http')
  await waitFor(() => fixture.hub.counted('by-http').count === 20)
  expect(fixture.hub.textReports[0]).toMatchObject({ serviceId: 'shop' })
  expect(fixture.hub.reports).toEqual([])
  fixture.hub.takesWebSockets = true
  await waitFor(() => shieldOf(redis)!.isConnected)
  for (let index = 0; index < 20; index++) await redis.get('by-frame')
  await waitFor(() => fixture.hub.reports.length > 0)
  unprotect(redis)
  redis.disconnect()
})
