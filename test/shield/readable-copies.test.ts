import { protect, shieldOf, unprotect } from '@firebreak/client'
import { keySlot } from '@firebreak/core/commands'
import { type Hub, startHub } from '@firebreak/hub'
import { moveSlot, type RedisCluster, type RedisServer, startCluster, waitFor } from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

let servers: RedisCluster
let hub: Hub
let bare: Cluster
let clients: Cluster[] = []

const connect = () => new Cluster([...servers.addresses], { redisOptions: { connectTimeout: 2000 } })

beforeAll(async () => {
  servers = await startCluster()
  const spread = (id: string, more: object) => ({
    id,
    prefix: id,
    threshold: 20,
    windowMs: 1000,
    minHoldMs: 60_000,
    strategy: { strategy: 'RedundantKeys', ...more },
  })
  hub = await startHub({
    initialRules: [
      spread('fixed', { copyCount: 5 }),
      spread('each', { copiesPerNode: 2 }),
      spread('timed', { copyCount: 3, ttl: 'key', ttlJitterMs: 5000 }),
    ],
    logLevel: 'fatal',
  })
  bare = connect()
  await waitFor(() => bare.status === 'ready')
  clients = [0, 1].map((number) =>
    protect(connect(), {
      hubs: [hub.url],
      serviceId: 'shop',
      instanceId: `reader-${number}`,
      redisClusterId: 'c',
      tableFile: false,
    }),
  )
  await waitFor(() => clients.every((client) => client.status === 'ready' && shieldOf(client)!.isConnected))
}, 60_000)

afterAll(async () => {
  for (const client of clients) {
    unprotect(client)
    client.disconnect()
  }
  bare.disconnect()
  await hub.close()
  await servers.stop()
})

/** The names of a key's copies from the table, as read over HTTP. */
async function tableNames(key: string): Promise<string[]> {
  const answer = await fetch(`${hub.url.replace(/^ws/, 'http')}/v1/table?service=shop`)
  const { clusters } = (await answer.json()) as {
    clusters: Record<string, { strategy: string; keys: Record<string, string[]> }[]>
  }
  const copied = clusters['c']?.find(({ strategy }) => strategy === 'RedundantKeys')
  return copied?.keys[key] ?? []
}

/** What a client without Firebreak reads under each of these names. */
async function valuesOf(names: readonly string[]): Promise<(string | null)[]> {
  return Promise.all(names.map((name) => bare.get(name)))
}

/** Reads with both clients until a reader that only has the table finds a value under every name in it. */
async function areReadable(key: string, value: string, isEnough: (names: string[]) => boolean): Promise<string[]> {
  let names: string[] = []
  let values: (string | null)[] = []
  await waitFor(
    async () => {
      for (let index = 0; index < 30; index++)
        await Promise.all(clients.map((client) => client.get(key).catch(() => undefined)))
      names = await tableNames(key)
      values = await valuesOf(names)
      return isEnough(names) && values.every((found) => found === value)
    },
    { timeoutMs: 30_000, everyMs: 50, what: () => `copies of ${key} under ${names.join()}: ${values.join()}` },
  )
  return names
}

const ownerOf = async (slot: number): Promise<RedisServer> => {
  const ranges = (await bare.cluster('SLOTS')) as unknown as [number, number, [string, number]][]
  const [, , [, port]] = ranges.find(([low, high]) => slot >= low && slot <= high)!
  return servers.nodes.find((node) => node.port === port)!
}

const nodesOf = async (names: readonly string[]) =>
  Promise.all(names.map(async (name) => (await ownerOf(keySlot(name))).port))

test('the table names the copies in Redis, and follows a slot that moves', async () => {
  await bare.set('fixed1', 'v1')
  const names = await areReadable('fixed1', 'v1', ({ length }) => length === 5)
  expect(new Set(await nodesOf(names)).size).toBe(3)
  // The slot map has chosen other names than the rule's.
  expect(names.some((name) => name.includes('~'))).toBe(true)
  await bare.set('fixed1', 'v2')
  await areReadable('fixed1', 'v2', ({ length }) => length === 5)

  const [moved] = names
  const slot = keySlot(moved!)
  const from = await ownerOf(slot)
  await moveSlot(servers, slot, from, servers.nodes.find((node) => node !== from)!)
  const after = await areReadable('fixed1', 'v2', (found) => found.length === 5 && !found.includes(moved!))
  expect(new Set(await nodesOf(after)).size).toBe(3)
}, 60_000)

test('the requested number of copies is on each node', async () => {
  await bare.set('each1', 'v')
  const names = await areReadable('each1', 'v', ({ length }) => length === 6)
  const counts = Object.values(Object.groupBy(await nodesOf(names), String)).map((list) => list!.length)
  expect(counts).toEqual([2, 2, 2])
}, 60_000)

test('a copy with the TTL of its key lives as long as the key, plus a random part', async () => {
  await bare.set('timed1', 'v', 'EX', 1000)
  const names = await areReadable('timed1', 'v', ({ length }) => length === 3)
  const left = await Promise.all(names.map((name) => bare.pttl(name)))
  const own = await bare.pttl('timed1')
  for (const ms of left) {
    expect(ms).toBeGreaterThan(own - 5000)
    expect(ms).toBeLessThanOrEqual(1_005_000)
  }
  expect(new Set(left).size).toBeGreaterThan(1)
}, 60_000)
