import { shieldOf, unprotect } from '@firebreak/client'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'

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

const strategy = { strategy: 'RedundantKeys', copies: ['k_1', 'k_2'], ttlJitterMs: 0 } as const

test('copies on a single node are made, with a warning that they do not help, and why', async () => {
  const warnings: { kind: string; message: string }[] = []
  const redis = await fixture.client({ onWarning: (warning) => void warnings.push(warning) })
  await fixture.plain.set('k', 'v')
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await redis.get('k')) === 'v' && (await fixture.plain.exists('k_1', 'k_2')) === 2)
  const told = warnings.filter(({ kind }) => kind === 'copies-one-node')
  expect(told).toHaveLength(1)
  expect(told[0]!.message).toMatch(/k have no effect: there is only one node/)
})

test('with ttlJitterMs 0 a copy ends with its key', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v', 'PX', 3000)
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await redis.get('k')) === 'v' && (await fixture.plain.exists('k_1', 'k_2')) === 2)
  const script = "return {redis.call('PTTL', 'k'), redis.call('PTTL', 'k_1'), redis.call('PTTL', 'k_2')}"
  const [own, ...copies] = (await fixture.plain.eval(script, 0)) as number[]
  for (const copy of copies) {
    expect(copy).toBeGreaterThan(0)
    // The TTL's path from the key to the copy.
    expect(copy).toBeLessThanOrEqual(own! + 1000)
  }
})

test('a copy whose marker has expired is still recognised as ours and written again', async () => {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v1')
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await redis.get('k')) === 'v1' && (await fixture.plain.exists('k_1', 'k_2')) === 2)
  // As after a pause of the refresher longer than a marker's life.
  await fixture.plain.del('{k_1}:firebreak-marker', '{k_2}:firebreak-marker')
  await fixture.plain.set('k', 'v2')
  await waitFor(async () => {
    const values = await fixture.plain.mget('k_1', 'k_2')
    return values.every((value) => value === 'v2') && (await redis.get('k')) === 'v2'
  })
  expect(await fixture.plain.exists('{k_1}:firebreak-marker', '{k_2}:firebreak-marker')).toBe(2)
})

/** What is in Redis besides the key and its version counter, which expires by itself. */
const beside = async () => (await fixture.plain.keys('*')).filter((name) => name !== 'k' && !name.endsWith('-version'))

/** Makes the copies, and waits until this process follows the key. */
async function copied(): Promise<Redis> {
  const redis = await fixture.client()
  await fixture.plain.set('k', 'v')
  fixture.hub.heat('main', ['k'], { strategy })
  const made = ['k_1', 'k_2', '{k}:firebreak-refresher']
  await waitFor(async () => (await redis.get('k')) === 'v' && (await fixture.plain.exists(...made)) === made.length)
  return redis
}

test('the kill switch has copies removed, also of a key that becomes hot meanwhile, and they come back after it', async () => {
  const redis = await copied()
  fixture.hub.setOff(true)
  await waitFor(async () => (await beside()).length === 0, { what: 'the copies to be gone' })
  fixture.hub.heat('main', ['k'], { strategy: { ...strategy, copies: ['k_3'] } })
  await waitFor(() => shieldOf(redis)?.tableVersion.version === fixture.hub.version)
  expect(await redis.get('k')).toBe('v')
  expect(await beside()).toEqual([])
  fixture.hub.setOff(false)
  await waitFor(async () => (await redis.get('k')) === 'v' && (await fixture.plain.exists('k_3')) === 1)
})

test('the last client of a process that leaves removes the copies', async () => {
  const redis = await copied()
  unprotect(redis)
  // They would expire by themselves, but not that soon.
  await waitFor(async () => (await beside()).length === 0, { timeoutMs: 4000, what: 'the copies to be gone' })
})
