import { type RedisServer, scale, startRedis } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { largest, quantile, VersionOracle, VersionReader } from './version-oracle.ts'

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

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test(
  'under steady load of 1 writer and 8 readers nine reads of ten are local, and hardly any is stale',
  async () => {
    const oracle = new VersionOracle()
    await oracle.write((value) => fixture.plain.set('k', value))
    const clients = await Promise.all(
      Array.from({ length: 8 }, (_, index) => fixture.client({ instanceId: `reader-${index}` })),
    )
    for (const client of clients) await fixture.makeHot(client, 'k')
    const readers = clients.map((client) => new VersionReader(oracle, () => client.get('k')))
    const control = new VersionReader(oracle, () => fixture.plain.get('k'))
    const before = await fixture.calls('get')
    const endAt = performance.now() + scale(4000, 60_000)
    const isDone = () => performance.now() > endAt
    const writer = async () => {
      while (!isDone()) {
        await oracle.write((value) => fixture.plain.set('k', value))
        await pause(20)
      }
    }
    await Promise.all([writer(), control.until(isDone, 2), ...readers.map((reader) => reader.until(isDone))])

    const reads = readers.reduce((sum, { staleMs }) => sum + staleMs.length, 0)
    const loads = (await fixture.calls('get')) - before - control.staleMs.length
    expect(oracle.acked).toBeGreaterThan(10)
    // The oracle itself is right: without a cache nothing is ever stale.
    expect([largest(control.staleMs), control.backwards]).toEqual([0, 0])
    expect(1 - loads / reads).toBeGreaterThanOrEqual(0.9)
    const staleMs = readers.flatMap((reader) => reader.staleMs)
    expect(quantile(staleMs, 0.99)).toBeLessThanOrEqual(Math.max(5, 2 * slowness.quantileMs(0.99)))
    expect(largest(staleMs)).toBeLessThanOrEqual(slowness.allow(50))
    expect(readers.map(({ backwards, failures }) => [backwards, failures])).toEqual(readers.map(() => [0, 0]))
  },
  scale(60_000, 150_000),
)

test('a client reads its own writes, waited for or not, while others read beside it', async () => {
  const [redis, other] = [await fixture.client(), await fixture.client({ instanceId: 'other' })]
  await fixture.plain.set('k', '0')
  await fixture.makeHot(redis, 'k')
  let isDone = false
  const beside = (async () => {
    while (!isDone) {
      await Promise.all([redis.get('k'), other.get('k')])
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  const writes = scale(1000, 10_000)
  let stale = 0
  for (let version = 1; version <= writes; version++) {
    const value = String(version)
    const written = redis.set('k', value)
    if (version % 2 === 0) await written
    if ((await redis.get('k')) !== value) stale++
    await written
    if ((await redis.get('k')) !== value) stale++
  }
  isDone = true
  await beside
  expect(stale).toBe(0)
})
