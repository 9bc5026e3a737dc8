import { protect, shieldOf, unprotect } from '@firebreak/client'
import { keySlot } from '@firebreak/core/commands'
import { type Hub, startHub } from '@firebreak/hub'
import { type RedisCluster, startCluster, waitFor } from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

let servers: RedisCluster
let hub: Hub
let bare: Cluster
let clients: Cluster[] = []
let round = 0
let key = ''

const copyCount = 6
const ttlJitterMs = 500
const connect = () => new Cluster([...servers.addresses], { redisOptions: { connectTimeout: 2000 } })

beforeAll(async () => {
  servers = await startCluster()
  const strategy = { strategy: 'RedundantKeys', copyCount, template: '{key}_{n}', ttlJitterMs }
  hub = await startHub({
    initialRules: [{ id: 'spread', prefix: 'hot', threshold: 20, windowMs: 1000, minHoldMs: 1000, strategy }],
    logLevel: 'fatal',
  })
  bare = connect()
  await waitFor(() => bare.status === 'ready')
  clients = [0, 1].map((number) =>
    protect(connect(), {
      hubs: [hub.url],
      serviceId: 'shop',
      instanceId: `copies-${number}`,
      redisClusterId: 'c',
      tableFile: false,
    }),
  )
  await waitFor(() => clients.every((client) => client.status === 'ready' && shieldOf(client)!.isConnected))
})
beforeEach(() => {
  key = `hot${++round}`
})
afterAll(async () => {
  for (const client of clients) {
    unprotect(client)
    client.disconnect()
  }
  bare.disconnect()
  await hub.close()
  await servers.stop()
})

async function allKeys(): Promise<string[]> {
  const lists = await Promise.all(servers.nodes.map((node) => node.cli('KEYS', `*${key}*`)))
  return lists.flatMap((list) => list.split('\n')).filter((name) => name !== '')
}

const copiesOf = async () => (await allKeys()).filter((name) => name.startsWith(`${key}_`))

/** Reads with both clients until the copies exist. */
async function makeHot(): Promise<void> {
  await waitFor(
    async () => {
      for (let index = 0; index < 30; index++)
        await Promise.all(clients.map((client) => client.get(key).catch(() => undefined)))
      return (await copiesOf()).length >= copyCount - 1
    },
    { timeoutMs: 30_000, what: () => `copies of ${key}` },
  )
}

/** How many commands each node served for the key's reads in a while. */
async function readsByNode(reads: number): Promise<number[]> {
  const calls = () =>
    Promise.all(
      servers.nodes.map(async (node) =>
        Number((await node.cli('INFO', 'commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? 0),
      ),
    )
  const before = await calls()
  for (let index = 0; index < reads; index++) await Promise.all(clients.map((client) => client.get(key)))
  return (await calls()).map((count, index) => count - before[index]!)
}

describe('copies of a hot key on a real cluster', () => {
  test('are on all nodes, marked as ours, and share the reads', async () => {
    await bare.set(key, 'v1')
    await makeHot()
    const nodes = new Set((await copiesOf()).map((name) => Math.floor(keySlot(name) / 5461)))
    expect(nodes.size).toBe(3)
    // Copies do not expire together: each has a random time on top of the common one.
    const times = await Promise.all((await copiesOf()).map((name) => bare.pttl(name)))
    expect(Math.max(...times)).toBeLessThanOrEqual(1500 + 5000 + ttlJitterMs)
    expect(new Set(times).size).toBeGreaterThan(1)
    const names = await allKeys()
    for (const copy of await copiesOf()) expect(names).toContain(`{${copy}}:firebreak-marker`)
    const counts = await readsByNode(300)
    const busiest = Math.max(...counts)
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
    // Two gets a read (marker and copy); six copies on three nodes, read at random.
    expect(busiest).toBeLessThan(mean * 1.5)
    expect(await clients[0]!.get(key)).toBe('v1')
  })

  test('follow the key, whoever writes it: another client, a script, RENAME, DEL, EXPIRE', async () => {
    await bare.set(key, 'v1')
    await makeHot()
    await bare.set(key, 'v2')
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === 'v2'),
    )
    await bare.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, key, 'v3')
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === 'v3'),
    )
    await bare.set(`{${key}}other`, 'v4')
    await bare.rename(`{${key}}other`, key)
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === 'v4'),
    )
    await bare.rename(key, `{${key}}other`)
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === null),
    )
    await bare.set(key, 'v5')
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === 'v5'),
    )
    await bare.del(key)
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === null),
    )
    await bare.set(key, 'v6', 'PX', 400)
    await waitFor(async () =>
      (await Promise.all(clients.map((client) => client.get(key)))).every((value) => value === null),
    )
  })

  test('never take a client back in time, and show it its own writes at once', async () => {
    await bare.set(key, '0')
    await makeHot()
    let highest = 0
    for (let version = 1; version <= 40; version++) {
      await bare.set(key, String(version))
      for (let read = 0; read < 5; read++) {
        const seen = Number(await clients[0]!.get(key))
        expect(seen).toBeGreaterThanOrEqual(highest)
        highest = seen
      }
    }
    for (let version = 100; version < 130; version++) {
      await clients[1]!.set(key, String(version))
      expect(await clients[1]!.get(key)).toBe(String(version))
    }
  })

  test('work for every type', async () => {
    await bare.hset(key, 'f', '1', 'g', '2')
    await waitFor(
      async () => {
        for (let index = 0; index < 30; index++) await Promise.all(clients.map((client) => client.hgetall(key)))
        return (await copiesOf()).length >= copyCount - 1
      },
      { timeoutMs: 30_000 },
    )
    expect(await clients[0]!.hgetall(key)).toEqual({ f: '1', g: '2' })
    expect(await clients[1]!.hget(key, 'g')).toBe('2')
    await expect(clients[0]!.lrange(key, 0, -1)).rejects.toThrow(/WRONGTYPE/)
  })

  test('an application’s key with the name of a copy is never read, written or deleted', async () => {
    // All the names that a copy could get at the first try are taken.
    for (let number = 1; number <= copyCount; number++) await bare.set(`${key}_${number}`, 'precious')
    await bare.set(key, 'v1')
    for (let index = 0; index < 300; index++) {
      const values = await Promise.all(clients.map((client) => client.get(key)))
      expect(values).toEqual(['v1', 'v1'])
    }
    await bare.set(key, 'v2')
    await waitFor(async () => (await clients[0]!.get(key)) === 'v2')
    for (let number = 1; number <= copyCount; number++) expect(await bare.get(`${key}_${number}`)).toBe('precious')
  })

  test('are gone when the key has cooled', async () => {
    await bare.set(key, 'v1')
    await makeHot()
    await waitFor(async () => (await copiesOf()).length === 0, { timeoutMs: 30_000, everyMs: 200 })
    expect(await bare.get(key)).toBe('v1')
  })

  test('a killed node loses no read that another copy can answer', async () => {
    // A key whose own node is not the one that dies.
    const dying = servers.nodes[2]!
    while (keySlot(key) >= 10923) key = `hot${++round}`
    await bare.set(key, 'v1')
    await makeHot()
    dying.child.signal('SIGKILL')
    await dying.child.exited
    let failures = 0
    for (let index = 0; index < 200; index++) {
      const read = clients[0]!.get(key)
      const value = await Promise.race([read, new Promise((resolve) => setTimeout(() => resolve('late'), 3000))]).catch(
        () => 'failed',
      )
      if (value !== 'v1') failures++
    }
    expect(failures).toBe(0)
  })
})
