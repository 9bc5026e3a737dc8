import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { keySlot } from '@firebreak/core/commands'
import {
  FaultProxy,
  moveSlot,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  redisCli,
  scale,
  startCluster,
  startRedis,
  startSentinel,
  startSource,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AnyClient, libraries, type Place } from './libraries.ts'
import { startTlsFront } from './tls-front.ts'

/** The ways to a server on which a hot key must be as right as on the plain one, by the same bodies for every library. */
let hub: TestHub
let server: RedisServer
let opened: AnyClient[] = []

beforeAll(async () => {
  hub = await TestHub.start()
  server = await startRedis()
})
afterAll(async () => {
  await hub.kill()
  await server.stop()
})
beforeEach(() => server.cli('FLUSHALL'))
afterEach(() => {
  for (const client of opened) {
    unprotect(client.raw)
    client.close()
  }
  opened = []
})

/** What a call came to. */
const outcome = (call: Promise<unknown>) =>
  call.then(
    (reply) => ({ reply }),
    ({ name, message }: Error) => ({ error: name, message }),
  )

let clusterCount = 0

async function open(library: string, place: Place): Promise<AnyClient> {
  const client = await libraries[library]!(place)
  ;(client.raw as { on(event: string, listener: () => void): void }).on('error', () => {})
  opened.push(client)
  return client
}

/** A protected client, and its cluster's name at the hub. */
async function openGuarded(library: string, place: Place, options: object = {}) {
  const redisClusterId = `paths ${++clusterCount}`
  const client = await open(library, place)
  protect(client.raw, {
    hubs: [hub.url],
    serviceId: 'shop',
    redisClusterId,
    tableFile: false,
    canaryMs: 0,
    onWarning() {},
    ...options,
  })
  await waitFor(() => shieldOf(client.raw)?.isConnected, { what: 'the hub link' })
  return { client, redisClusterId }
}

/** Waits until the client answers this value, and from memory. */
const serves = (client: AnyClient, key: string, value: string | null) =>
  waitFor(async () => (await client.get(key).catch(() => undefined)) === value && peek(client.raw, key) === value, {
    timeoutMs: 60_000,
    what: `${key} to be served as ${value}`,
  })

const gets = async (port: number) =>
  Number((await redisCli(port, 'INFO', 'commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? 0)

describe.each(Object.keys(libraries))('%s', (library) => {
  const plainPlace = (): Place => ({ kind: 'standalone', port: server.port })

  test('over TLS the watcher is encrypted too, and changes are seen', async () => {
    const front = await startTlsFront(server.port)
    const { client, redisClusterId } = await openGuarded(library, {
      kind: 'standalone',
      port: front.port,
      ca: front.ca,
    })
    await server.cli('SET', 'k', 'v0')
    hub.heat(redisClusterId, ['k'])
    await serves(client, 'k', 'v0')
    for (let version = 1; version <= 3; version++) {
      await server.cli('SET', 'k', `v${version}`)
      await serves(client, 'k', `v${version}`)
    }
    // It is tracked, not left to a short TTL.
    const clients = (await server.cli('CLIENT', 'LIST')).split('\n')
    expect(clients.filter((line) => / flags=\S*t/.test(line))).toHaveLength(1)
    front.close()
  })

  test('SELECT takes the client to other entries of the same name', async () => {
    const { client, redisClusterId } = await openGuarded(library, plainPlace())
    await server.cli('SET', 'k', 'zero')
    await server.cli('-n', '2', 'SET', 'k', 'two')
    hub.heat(redisClusterId, ['k'])
    await serves(client, 'k', 'zero')
    await client.select(2)
    expect(await client.get('k')).toBe('two')
    await serves(client, 'k', 'two')
    await server.cli('-n', '2', 'SET', 'k', 'two again')
    await serves(client, 'k', 'two again')
    await client.select(0)
    expect(await client.get('k')).toBe('zero')
    // A select and a read behind it, not waited for.
    const selecting = client.select(2)
    expect(await client.get('k')).toBe('two again')
    await selecting
  })

  test('under WATCH a hot key is read from Redis, and a lost race is told as by the bare client', async () => {
    const bare = await open(library, plainPlace())
    const { client, redisClusterId } = await openGuarded(library, plainPlace())
    const race = async (racer: AnyClient, key: string) => {
      await racer.watch(key)
      const before = await gets(server.port)
      const value = await racer.get(key)
      const reads = (await gets(server.port)) - before
      await server.cli('SET', key, 'changed meanwhile')
      const result = await outcome(racer.multi([['SET', key, 'lost update']]))
      return { value, reads, result, after: await racer.get(key) }
    }
    await server.cli('MSET', 'bare', 'v', 'hot', 'v')
    hub.heat(redisClusterId, ['hot'])
    await serves(client, 'hot', 'v')
    const expected = await race(bare, 'bare')
    expect(expected).toMatchObject({ value: 'v', reads: 1, after: 'changed meanwhile' })
    expect(await race(client, 'hot')).toStrictEqual(expected)
    // The watch has ended: the key comes from memory again.
    await serves(client, 'hot', 'changed meanwhile')
    expect(await outcome(client.multi([['SET', 'hot', 'won']]))).toEqual(
      await outcome(bare.multi([['SET', 'bare', 'won']])),
    )
    expect(await client.get('hot')).toBe('won')
  })

  test('200 readers of a key whose load takes 100 ms, at the instant of its invalidation, make one load', async () => {
    const proxy = await FaultProxy.start(server.port)
    const place: Place = { kind: 'standalone', port: proxy.port }
    const { client, redisClusterId } = await openGuarded(library, place, { leaseMs: 10_000 })
    await server.cli('SET', 'k', 'old')
    hub.heat(redisClusterId, ['k'])
    await serves(client, 'k', 'old')
    proxy.faults.serverDelayMs = 100
    const before = await gets(server.port)
    await server.cli('SET', 'k', 'new')
    await waitFor(() => peek(client.raw, 'k') === undefined, { everyMs: 1 })
    const values = await Promise.all(Array.from({ length: 200 }, () => client.get('k')))
    expect(new Set(values)).toEqual(new Set(['new']))
    expect((await gets(server.port)) - before).toBe(1)
    proxy.faults.serverDelayMs = 0
    await proxy.close()
  })
})

// ioredis 6 has its own in load-and-plugins.test.ts.
test.each(Object.keys(libraries).filter((library) => library !== 'ioredis 6'))(
  'getOrLoad of %s loads once in all processes together',
  async (library) => {
    const plan = JSON.stringify({ port: server.port, key: 'k', readers: 200, library })
    const children = Array.from({ length: scale(2, 4) }, () =>
      startSource(new URL('./loader-process.ts', import.meta.url), [plan]),
    )
    for (const child of children) expect(JSON.parse((await child.printed(/\{.*\}/))[0])).toEqual({ right: 200 })
    expect(await server.cli('GET', 'k:loads')).toBe('1')
    expect(await server.cli('GET', 'k')).toBe('loaded')
  },
)

// Version 5 of node-redis has no prefix.
test.each(Object.keys(libraries).filter((library) => library !== 'node-redis 5'))(
  'a prefix that %s puts before keys is part of the name',
  async (library) => {
    const keyPrefix = `app ${library}:`
    const [key, prefixed] = [`k ${library}`, `${keyPrefix}k ${library}`]
    const { client, redisClusterId } = await openGuarded(library, { kind: 'standalone', port: server.port, keyPrefix })
    await server.cli('MSET', prefixed, 'prefixed', key, 'plain')
    hub.heat(redisClusterId, [prefixed])
    await serves(client, key, 'prefixed')
    await server.cli('SET', key, 'another key')
    await server.cli('SET', prefixed, 'changed')
    await serves(client, key, 'changed')
    await client.set(key, 'own')
    expect(await client.get(key)).toBe('own')
    expect(await server.cli('GET', prefixed)).toBe('own')
    await waitFor(() => hub.counted(prefixed).writes === 1)
    expect(hub.counted(key).count).toBe(0)
  },
)

describe('a cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster.stop())

  test.each(Object.keys(libraries))('a slot that moves leaves %s nothing stale, a NIL included', async (library) => {
    const place: Place = { kind: 'cluster', addresses: cluster.addresses }
    const { client, redisClusterId } = await openGuarded(library, place)
    const tag = `{${library}}`
    const [value, nothing] = [`${tag}value`, `${tag}nothing`]
    await client.set(value, 'before')
    hub.heat(redisClusterId, [value, nothing])
    await serves(client, value, 'before')
    await serves(client, nothing, null)
    const slot = keySlot(value)
    const owners = await Promise.all(cluster.nodes.map((node) => node.cli('CLUSTER', 'COUNTKEYSINSLOT', String(slot))))
    const from = cluster.nodes[owners.findIndex((count) => Number(count) > 0)]!
    const to = cluster.nodes.find((node) => node !== from)!
    await moveSlot(cluster, slot, from, to)
    await to.cli('MSET', value, 'after', nothing, 'something')
    // Nobody pushes news of a NIL whose slot has gone: the poll of its owner finds it.
    await serves(client, value, 'after')
    await serves(client, nothing, 'something')
    await to.cli('SET', value, 'and on')
    await serves(client, value, 'and on')
  })
})

describe('a Sentinel group', () => {
  let group: RedisSentinel
  beforeAll(async () => {
    group = await startSentinel({ sentinels: 1, replicas: 1 })
  })
  afterAll(() => group.stop())

  // ioredis has its own in test/correct.
  test.each(Object.keys(libraries).filter((library) => library !== 'ioredis 6'))(
    'a failover leaves %s nothing stale, and it follows the new master',
    async (library) => {
      const { name, sentinels } = group
      const { client, redisClusterId } = await openGuarded(library, { kind: 'sentinel', name, sentinels })
      const key = `k ${library}`
      await redisCli(await group.masterPort(), 'SET', key, 'before')
      hub.heat(redisClusterId, [key])
      await serves(client, key, 'before')
      await group.failover()
      const master = await group.masterPort()
      // A Sentinel cuts the clients of servers whose role it changes, redis-cli among them.
      const write = (value: string) =>
        waitFor(async () => (await redisCli(master, 'SET', key, value).catch(() => 'cut')) === 'OK')
      await write('after')
      await serves(client, key, 'after')
      for (let version = 0; version < 5; version++) {
        await write(`v${version}`)
        await serves(client, key, `v${version}`)
      }
    },
  )
})
