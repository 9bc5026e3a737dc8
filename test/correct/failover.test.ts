import { keySlot } from '@firebreak/core/commands'
import {
  letTimePass,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  redisCli,
  scale,
  startCluster,
  startRedis,
  startSentinel,
  waitFor,
} from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { Slowness } from './slowness.ts'
import { largest, VersionOracle, VersionReader } from './version-oracle.ts'
import { type Guarded, ways } from './ways.ts'

let control: RedisServer
let fixture: Fixture
let slowness: Slowness

beforeAll(async () => {
  control = await startRedis()
})
afterAll(() => control.stop())
beforeEach(async () => {
  fixture = await Fixture.start(control.port)
  slowness = new Slowness(control.port)
})
afterEach(async () => {
  slowness.stop()
  await fixture.close()
})

/** Waits until the client answers this value from memory. */
const serves = (redis: Guarded, key: string, value: string | null) =>
  waitFor(async () => (await redis.get(key).catch(() => undefined)) === value && (await redis.peek(key)) === value, {
    timeoutMs: 30_000,
    what: `${key} to be served as ${value}`,
  })

describe('a cluster', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1 })
    for (const node of cluster.nodes) {
      await waitFor(
        async () => {
          const [nodes, replication] = [await node.cli('CLUSTER', 'NODES'), await node.cli('INFO', 'replication')]
          const replicas = nodes.split('\n').filter((line) => /slave [0-9a-f]{40}/.test(line))
          return replicas.length === 3 && !replication.includes('master_link_status:down')
        },
        { timeoutMs: 30_000, what: `node ${node.port} to know whose replica is whose` },
      )
    }
  })
  afterAll(() => cluster.stop())

  const connect = () => {
    const client = new Cluster([...cluster.addresses])
    client.on('error', () => {})
    return client
  }

  /** Ports of the slot's master and of its replica, once the first node knows who they are. */
  const ownersOf = (slot: number) =>
    waitFor(
      async () => {
        const owners = await seenOwnersOf(slot)
        return owners !== undefined && (await redisCli(owners[0], 'ROLE')).startsWith('master') && owners
      },
      { timeoutMs: 30_000, what: `the owners of slot ${slot}` },
    )

  async function seenOwnersOf(slot: number): Promise<[number, number] | undefined> {
    const lines = (await cluster.nodes[0]!.cli('CLUSTER', 'NODES')).split('\n').map((line) => line.split(' '))
    const portOf = (line: string[]) => Number(line[1]!.match(/:(\d+)/)![1])
    const covers = (range: string) => {
      const [from, to = from] = range.split('-').map(Number)
      return slot >= from! && slot <= to!
    }
    const master = lines.find((line) => line[2]?.includes('master') && line.slice(8).some(covers))
    const replica = lines.find((line) => master !== undefined && line[3] === master[0])
    return master === undefined || replica === undefined ? undefined : [portOf(master), portOf(replica)]
  }

  test.each(ways)(
    'each node has one connection of the shield, with tracking, and only for hot keys: $name',
    async (way) => {
      const redis = await way.cluster(fixture, cluster.addresses)
      const keys = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `{${name}}k`)
      const plain = connect()
      for (const key of keys) await plain.set(key, 'v')
      fixture.hub.heat('main', keys)
      for (const key of keys) await serves(redis, key, 'v')
      const masters = new Set<number>()
      for (const key of keys) masters.add((await ownersOf(keySlot(key)))[0])
      expect(masters.size).toBeGreaterThan(1)
      for (const port of masters) {
        const clients = (await redisCli(port, 'CLIENT', 'LIST')).split('\n')
        expect(clients.filter((line) => / flags=\S*t/.test(line))).toHaveLength(1)
      }
      const tracked = await Promise.all([...masters].map((port) => redisCli(port, 'INFO', 'stats')))
      const count = tracked.reduce((sum, info) => sum + Number(info.match(/tracking_total_keys:(\d+)/)![1]), 0)
      expect(count).toBe(keys.length)
      plain.disconnect()
    },
  )

  test.each(ways)('a failover leaves nothing stale, and no version goes back: $name', async (way) => {
    const redis = await way.cluster(fixture, cluster.addresses)
    const plain = connect()
    const oracle = new VersionOracle()
    await oracle.write((value) => plain.set('k', value))
    fixture.hub.heat('main', ['k'])
    await serves(redis, 'k', '1')
    const reader = new VersionReader(oracle, () => redis.get('k'))
    for (let round = 0; round < scale(1, 3); round++) {
      let isDone = false
      const writer = (async () => {
        while (!isDone) {
          await oracle.write((value) => plain.set('k', value))
          await letTimePass(10)
        }
      })()
      const reading = reader.until(() => isDone)
      const [master, replica] = await ownersOf(keySlot('k'))
      await waitFor(async () => (await redisCli(replica, 'INFO', 'replication')).includes('master_link_status:up'))
      // The other masters may have just voted and refuse to do so again right away: then the replica asks again.
      await waitFor(
        async () => {
          await redisCli(replica, 'CLUSTER', 'FAILOVER')
          const hasHappened = async () => (await redisCli(master, 'ROLE')).startsWith('slave')
          return waitFor(hasHappened, { timeoutMs: 6000 }).catch(() => false)
        },
        { timeoutMs: 40_000, what: 'a failover' },
      )
      const acked = oracle.acked
      await waitFor(() => oracle.acked > acked + 20, { timeoutMs: 30_000 })
      isDone = true
      await Promise.all([writer, reading])
      await serves(redis, 'k', (await plain.get('k'))!)
    }
    // A coordinated failover pauses the master, so that no acknowledged write is lost.
    expect(largest(reader.staleMs)).toBeLessThanOrEqual(slowness.allow(50))
    expect(reader.backwards).toBe(0)
    plain.disconnect()
  })

  test.each(ways)('a slot that moves away with a cached NIL is fresh within the poll interval: $name', async (way) => {
    const redis = await way.cluster(fixture, cluster.addresses)
    const key = `{moving ${way.name}}nothing`
    const slot = keySlot(key)
    fixture.hub.heat('main', [key])
    await serves(redis, key, null)
    const [from] = await ownersOf(slot)
    const [to] = await ownersOf((slot + 8192) % 16_384)
    expect(to).not.toBe(from)
    const [fromId, toId] = [await redisCli(from, 'CLUSTER', 'MYID'), await redisCli(to, 'CLUSTER', 'MYID')]
    // As every resharding tool does it. No key moves, so nobody is sent a push.
    for (const [port, ...words] of [
      [to, 'IMPORTING', fromId],
      [from, 'MIGRATING', toId],
      [to, 'NODE', toId],
      [from, 'NODE', toId],
    ] as const)
      expect(await redisCli(port, 'CLUSTER', 'SETSLOT', String(slot), ...words)).toBe('OK')
    expect(await redisCli(to, 'SET', key, 'new')).toBe('OK')
    const writtenAt = performance.now()
    await waitFor(async () => (await redis.get(key)) === 'new', { everyMs: 1 })
    // The poll of 500 ms, its turn of 50 ms, and a probe, a new map and a read.
    expect(performance.now() - writtenAt).toBeLessThan(550 + slowness.allow(50, 4))
  })
})

describe('Sentinel', () => {
  let sentinel: RedisSentinel

  beforeAll(async () => {
    sentinel = await startSentinel({ replicas: 1, sentinels: 1 })
  })
  afterAll(() => sentinel.stop())

  test('a failover leaves nothing of the old master in memory, by any kind of read', async () => {
    const all = await Promise.all(ways.map((way) => way.sentinel(fixture, sentinel)))
    await all[0]!.set('k', 'before')
    fixture.hub.heat('main', ['k'])
    for (const redis of all) await serves(redis, 'k', 'before')
    const before = await sentinel.masterPort()
    await sentinel.failover()
    const after = await sentinel.masterPort()
    expect(after).not.toBe(before)
    // A Sentinel cuts the clients of servers whose role it changes, redis-cli among them.
    const ask = (port: number, ...words: string[]) => redisCli(port, ...words).catch(() => 'cut')
    await waitFor(async () => (await ask(after, 'ROLE')).startsWith('master'), { timeoutMs: 30_000 })
    await waitFor(async () => (await ask(before, 'ROLE')).startsWith('slave'), { timeoutMs: 30_000 })
    await waitFor(async () => (await ask(after, 'SET', 'k', 'after')) === 'OK', { timeoutMs: 30_000 })
    const ackedAt = performance.now()
    // The old master closed its connections when it became a replica: nothing of it may be served now.
    for (const redis of all) {
      await waitFor(async () => (await redis.peek('k')) !== 'before', { everyMs: 1 })
      expect(performance.now() - ackedAt).toBeLessThan(slowness.allow(50))
    }
    for (const redis of all) await serves(redis, 'k', 'after')
  })
})
