import { protect, shieldOf, unprotect } from '@firebreak/client'
import type { RateLimitStrategy } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import {
  type RedisCluster,
  type RedisServer,
  redisCli,
  startCluster,
  startRedis,
  startSentinel,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AnyClient, libraries, type Place } from './libraries.ts'

// Calls that a limit holds back: a bare client has sent them all before the trouble begins, so none of them may be lost by it
// but those that were on their way.

let cluster: RedisCluster
let server: RedisServer
let hub: TestHub

beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1 })
  server = await startRedis()
  hub = await TestHub.start()
}, 60_000)
afterAll(async () => {
  await hub.kill()
  await server.stop()
  await cluster.stop()
})

const oneAtATime: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 1,
  windowMs: 100,
  onLimit: 'wait',
  scope: 'process',
}

/** The master and the replica of a key's slot, as the nodes that live say; undefined while no replica is known yet. */
async function ownersOf(slot: number): Promise<readonly [master: number, replica: number] | undefined> {
  for (const { port } of cluster.nodes) {
    const text = await redisCli(port, 'CLUSTER', 'SLOTS').catch(() => '')
    const rows = [...text.matchAll(/^(\d+)\n(\d+)\n127\.0\.0\.1\n(\d+)\n\w{40}\n\n?127\.0\.0\.1\n(\d+)/gm)]
    const row = rows.find(([, from, to]) => slot >= Number(from) && slot <= Number(to))
    if (row !== undefined) return [Number(row[3]), Number(row[4])]
  }
  return undefined
}

/** A protected client of a library, one call of whose key goes out at a time. */
async function held(name: string, place: Place, key: string, windowMs = 100): Promise<AnyClient> {
  const client = await libraries[name]!(place)
  const redisClusterId = `${name} ${place.kind}`
  protect(client.raw, {
    hubs: [hub.url],
    serviceId: 'shop',
    redisClusterId,
    tableFile: false,
    onWarning() {},
    maxLimitWaitMs: 60_000,
  })
  await waitFor(() => shieldOf(client.raw)?.isConnected)
  await client.set(key, '0')
  hub.heat(redisClusterId, [key], { strategy: { ...oneAtATime, windowMs } })
  await waitFor(() => shieldOf(client.raw)!.tableVersion.version === hub.version)
  return client
}

const callCount = 30

/** Reads and writes of a key, all called at once. */
function callAll(client: AnyClient, key: string) {
  const calls = { done: 0, errors: [] as unknown[], all: undefined as unknown }
  calls.all = Promise.all(
    Array.from({ length: callCount }, (_, index) =>
      (index % 2 === 0 ? client.get(key) : client.set(key, String(index))).then(
        () => calls.done++,
        (error) => calls.errors.push(error),
      ),
    ),
  )
  return calls
}

// Each has a shard of its own to lose.
test.each([
  ['node-redis 6', 100],
  ['node-redis 5', 8000],
  ['ioredis 6', 16_000],
] as const)('%s: they survive a failover', { timeout: 60_000 }, async (name, wanted) => {
  let number = 0
  const shardOf = (key: string) => Math.floor((keySlot(key) * 3) / 16_384)
  while (shardOf(`held:${number}`) !== Math.floor((wanted * 3) / 16_384)) number++
  const key = `held:${number}`
  const client = await held(name, { kind: 'cluster', addresses: cluster.addresses }, key)
  const [master, replica] = await waitFor(() => ownersOf(keySlot(key)), { timeoutMs: 20_000 })
  await waitFor(async () => (await redisCli(replica, 'INFO', 'replication')).includes('master_link_status:up'))
  const calls = callAll(client, key)
  await waitFor(() => calls.done >= 3)
  const node = cluster.nodes.find(({ port }) => port === master)!
  node.child.process.kill('SIGKILL')
  await redisCli(replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER')
  await calls.all
  // What the limit had let go when the master died may have been on its way.
  expect(calls.errors.length, calls.errors.map(String).join('\n')).toBeLessThanOrEqual(1)
  expect(calls.done + calls.errors.length).toBe(callCount)
  unprotect(client.raw)
  client.close()
})

test.each(Object.keys(libraries))(
  '%s: they survive a failover of a Sentinel group',
  { timeout: 60_000 },
  async (name) => {
    const { sentinels, failover, stop, ...group } = await startSentinel({ sentinels: 1, replicas: 1 })
    try {
      const key = `held ${name}`
      // Slow enough that most are still held when the old master lets go of its clients.
      const client = await held(name, { kind: 'sentinel', name: group.name, sentinels }, key, 300)
      const calls = callAll(client, key)
      await waitFor(() => calls.done >= 3)
      const before = await group.masterPort()
      await failover()
      // As the Sentinels do some seconds later, when they make a replica of it; ioredis stays until then.
      await redisCli(before, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      expect(calls.done).toBeLessThan(callCount)
      await calls.all
      // What the limit had let go when the master went may have been on its way.
      expect(calls.errors.length, calls.errors.map(String).join('\n')).toBeLessThanOrEqual(1)
      expect(calls.done + calls.errors.length).toBe(callCount)
      // They have reached the new master.
      expect(await redisCli(await group.masterPort(), 'GET', key)).toBe(String(callCount - 1))
      unprotect(client.raw)
      client.close()
    } finally {
      await stop()
    }
  },
)

test.each(Object.keys(libraries))('%s: they survive a lost connection', async (name) => {
  const key = `held ${name}`
  const client = await held(name, { kind: 'standalone', port: server.port }, key, 30)
  const calls = callAll(client, key)
  for (const done of [3, 8]) {
    await waitFor(() => calls.done >= done)
    await redisCli(server.port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  }
  await calls.all
  // What the limit had let go may have been on its way, each time.
  expect(calls.errors.length, calls.errors.map(String).join('\n')).toBeLessThanOrEqual(2)
  expect(calls.done + calls.errors.length).toBe(callCount)
  unprotect(client.raw)
  client.close()
})
