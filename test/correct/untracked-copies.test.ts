import { letTimePass, type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { libraries } from '../client/libraries.ts'
import { Slowness } from './slowness.ts'
import { largest, VersionOracle, VersionReader } from './version-oracle.ts'

// How stale are reads of copies of a key that no process may follow?

let server: RedisServer
let fixture: Fixture
let slowness: Slowness

beforeAll(async () => {
  server = await startRedis()
  await server.cli('ACL', 'SETUSER', 'untracked', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking')
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

const fallbackTtlMs = 100
const login = { username: 'untracked', password: 'secret' }
const strategy = { strategy: 'RedundantKeys', copies: ['k_1', 'k_2'], ttlJitterMs: 0 } as const

test.each(Object.keys(libraries))(
  '%s: no read is older than the fallback, and no client goes back in time',
  async (library) => {
    const oracle = new VersionOracle()
    await oracle.write((value) => fixture.plain.set('k', value))
    const open = async (instanceId: string) => {
      const client = await libraries[library]!({ kind: 'standalone', port: server.port, login })
      await fixture.adopt(client.raw, { instanceId, fallbackTtlMs })
      return client
    }
    const clients = [await open('one'), await open('two')]
    fixture.hub.heat('main', ['k'], { strategy })
    await waitFor(async () => {
      for (const client of clients) await client.get('k')
      return (await fixture.plain.exists('k_1', 'k_2')) === 2
    })
    const readsOf = async () => fixture.calls('get')
    const before = await readsOf()
    const readers = clients.map((client) => new VersionReader(oracle, () => client.get('k')))
    const endAt = performance.now() + scale(1500, 20_000)
    const isDone = () => performance.now() > endAt
    const write = async () => {
      while (!isDone()) {
        await oracle.write((value) => fixture.plain.set('k', value))
        await letTimePass(30)
      }
    }
    await Promise.all([write(), ...readers.map((reader) => reader.until(isDone))])
    expect(oracle.acked).toBeGreaterThan(5)
    expect(await readsOf()).toBeGreaterThan(before)
    const staleMs = readers.flatMap((reader) => reader.staleMs)
    // Copies were read: the key itself is never old.
    expect(largest(staleMs)).toBeGreaterThan(0)
    expect(largest(staleMs)).toBeLessThanOrEqual(slowness.allow(fallbackTtlMs))
    expect(readers.map(({ backwards, failures }) => [backwards, failures])).toEqual(readers.map(() => [0, 0]))
  },
)
