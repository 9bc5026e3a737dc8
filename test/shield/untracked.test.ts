import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
  await server.cli('ACL', 'SETUSER', 'untracked', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking')
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

const strategy = { strategy: 'RedundantKeys', copies: ['k_1', 'k_2'], ttlJitterMs: 0 } as const
const untracked = { username: 'untracked', password: 'secret' }
const fallbackTtlMs = 100
const refresher = () => fixture.plain.get('{k}:firebreak-refresher')

test('if no process can follow a key, none is elected and its copies are trusted no longer than the fallback', async () => {
  const redis = await fixture.client({ instanceId: 'untracked' }, untracked)
  await fixture.plain.set('k', '0')
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await redis.get('k')) === '0' && (await fixture.plain.exists('k_1', 'k_2')) === 2)
  for (let version = 1; version <= 8; version++) {
    await fixture.plain.set('k', String(version))
    await waitFor(
      async () => {
        const value = await redis.get('k')
        const lives = await Promise.all(['{k_1}', '{k_2}'].map((tag) => fixture.plain.pttl(`${tag}:firebreak-marker`)))
        for (const markerMs of lives) expect(markerMs).toBeLessThanOrEqual(fallbackTtlMs)
        expect(await refresher()).toBe(null)
        return value === String(version)
      },
      { everyMs: 1 },
    )
  }
})

test('of a process that receives changes and one that does not, only the first is elected; the other benefits', async () => {
  const blind = await fixture.client({ instanceId: 'untracked' }, untracked)
  await fixture.plain.set('k', '0')
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await blind.get('k')) === '0' && (await fixture.plain.exists('k_1', 'k_2')) === 2)
  const told = await fixture.client({ instanceId: 'tracked' })
  await waitFor(async () => (await told.get('k')) === '0' && (await refresher()) !== null)
  const elected = await refresher()
  const markers = () => fixture.plain.pttl('{k_1}:firebreak-marker')
  for (let version = 1; version <= 5; version++) {
    await fixture.plain.set('k', String(version))
    // Nobody reads: the refresher writes the copies on its own, and marks them as current.
    await waitFor(async () => (await fixture.plain.get('k_1')) === String(version) && (await markers()) > fallbackTtlMs)
    expect(await blind.get('k')).toBe(String(version))
    expect(await refresher()).toBe(elected)
  }
})

test('a process that loses the permission for tracking stops following the key', async () => {
  const rights = ['on', '>secret', '~*', '&*', '+@all']
  await server.cli('ACL', 'SETUSER', 'changing', ...rights)
  const redis = await fixture.client({ instanceId: 'changing' }, { username: 'changing', password: 'secret' })
  await fixture.plain.set('k', '0')
  fixture.hub.heat('main', ['k'], { strategy })
  await waitFor(async () => (await redis.get('k')) === '0' && (await refresher()) !== null)
  await server.cli('ACL', 'SETUSER', 'changing', '-client|tracking')
  await server.cli('CLIENT', 'KILL', 'USER', 'changing')
  await waitFor(async () => (await refresher()) === null)
  await waitFor(async () => {
    await redis.get('k').catch(() => {})
    const markerMs = await fixture.plain.pttl('{k_1}:firebreak-marker')
    return markerMs > 0 && markerMs <= fallbackTtlMs
  })
  expect(await refresher()).toBe(null)
})
