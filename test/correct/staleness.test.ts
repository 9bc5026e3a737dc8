import { peek } from '@firebreak/client'
import { defaultLocalCache, type RuleStalenessView } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { FaultProxy, letTimePass, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { largest, VersionOracle, VersionReader } from './version-oracle.ts'
import { ways } from './ways.ts'

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

const effects = (key: string) =>
  fixture.hub.statuses
    .flatMap(({ keys }) => keys)
    .filter((effect) => effect.key === key && effect.staleMs !== undefined)

describe.each(ways)('$name', (way) => {
  test('the canary sees that a value is fresh', async () => {
    const redis = await way.client(fixture, server.port, { canaryMs: 20 })
    await fixture.plain.set('k', 'v')
    await fixture.makeHot(redis, 'k')
    const effect = await waitFor(() => effects('k')[0])
    expect(effect).toMatchObject({ staleMs: 0, ruleId: 'test' })
  })

  test('a value that outlives a change of its key is found, dropped, bypassed and reported, although no watcher noticed', async () => {
    const warnings: string[] = []
    const redis = await way.client(fixture, server.port, {
      canaryMs: 20,
      leaseMs: 100,
      onWarning: ({ message }) => warnings.push(message),
    })
    // Tracking does not report SWAPDB.
    await fixture.plain.set('k', 'old')
    await fixture.plain.call('SELECT', '1')
    await fixture.plain.set('k', 'new')
    await fixture.plain.call('SELECT', '0')
    await fixture.makeHot(redis, 'k')
    expect(await redis.get('k')).toBe('old')
    await fixture.plain.call('SWAPDB', '0', '1')
    await waitFor(async () => (await redis.get('k')) === 'new')
    await waitFor(() => effects('k').some(({ staleMs }) => staleMs! > 0))
    await waitFor(() => warnings.some((message) => message.includes('under rule test')))
    // Its reads go to Redis for a while.
    const before = await fixture.calls('get')
    for (let count = 0; count < 5; count++) await redis.get('k')
    expect((await fixture.calls('get')) - before).toBeGreaterThanOrEqual(5)
  })

  test('maxStalenessMs is kept by a bypass when the watcher alone would serve longer', async () => {
    const [maxStalenessMs, leaseMs] = [50, 3000]
    const proxy = await FaultProxy.start(server.port)
    const slowness = new Slowness(server.port)
    const redis = await way.watchedThrough(fixture, server.port, proxy, { leaseMs })
    const oracle = new VersionOracle()
    await oracle.write((value) => fixture.plain.set('k', value))
    fixture.hub.heat('main', ['k'], { strategy: { ...defaultLocalCache, maxStalenessMs } })
    await waitFor(async () => (await redis.get('k')) && (await redis.peek('k')) === '1')
    proxy.faults.isBlackHole = true
    const reader = new VersionReader(oracle, async () => (await redis.peek('k')) ?? fixture.plain.get('k'))
    const endAt = performance.now() + 1000
    const writer = (async () => {
      while (performance.now() < endAt) {
        await oracle.write((value) => fixture.plain.set('k', value))
        await letTimePass(5)
      }
    })()
    await Promise.all([writer, reader.until(() => performance.now() > endAt)])
    // Shows that the disturbance works: without a limit every read of that second would be stale.
    expect(reader.reads).toBeGreaterThan(0)
    expect(await redis.peek('k')).toBeUndefined()
    expect(largest(reader.staleMs)).toBeLessThanOrEqual(maxStalenessMs + slowness.allow(50))
    slowness.stop()
    await proxy.close()
  })
})

test('the hub shows p50, p99 and max of each rule, and raises an alarm if a rule allows less', async () => {
  const hub: Hub = await startHub({
    logLevel: 'silent',
    heartbeatMs: 100,
    initialRules: [{ id: 'swap', key: 'k', threshold: 1, maxStalenessMs: 250, strategy: 'LocalCache' }],
  })
  const redis = new Redis(server.port)
  await fixture.adopt(redis, { hubs: [hub.url], canaryMs: 20, instanceId: 'canary' })
  await fixture.plain.mset({ k: 'old' })
  await waitFor(async () => (await redis.get('k')) && peek(redis, 'k') === 'old', { timeoutMs: 30_000 })
  const rules = async () => {
    const answer = (await (await fetch(`${hub.url}/v1/staleness`)).json()) as { rules: RuleStalenessView[] }
    return answer.rules
  }
  const fresh = await waitFor(async () => (await redis.get('k')) && (await rules())[0])
  expect(fresh).toMatchObject({ ruleId: 'swap', p50Ms: 0, maxStalenessMs: 250 })
  // The key gets another database's value, and nobody is notified.
  await waitFor(async () => {
    await redis.get('k')
    if (peek(redis, 'k') === undefined) return false
    await fixture.plain.call('SWAPDB', '0', '1')
    return waitFor(async () => (await rules())[0]!.maxMs > 0, { timeoutMs: 3000 }).catch(() => false)
  })
  const alarm = await waitFor(() => hub.core.alarms.list().find(({ id }) => id === 'stale:swap'))
  expect(alarm.cause).toMatch(/a value under rule `swap` was \d+ ms stale; 250 ms are allowed/)
  expect(await (await fetch(`${hub.url}/metrics`)).text()).toContain(
    'firebreak_staleness_ms{rule="swap",quantile="0.99"}',
  )
  await hub.close()
})
