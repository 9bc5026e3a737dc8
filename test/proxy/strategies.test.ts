import { keySlot, type RateLimitStrategy } from '@firebreak/core'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type RedisCluster, startCluster, startRedis, TestHub, testRule, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let hub: TestHub
let closers: (() => Promise<unknown>)[]

beforeEach(async () => {
  hub = await TestHub.start()
  closers = []
})

afterEach(async () => {
  for (const close of closers.reverse()) await close()
  await hub.kill()
})

async function start(upstream: string, options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
  const known = hub.hellos.length
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  const proxy = await startProxy({
    upstream,
    port: 0,
    drainMs: 1,
    ...options,
    shield: { ...shield, ...options.shield },
  })
  closers.push(() => proxy.close())
  await waitFor(() => hub.hellos.length >= known + (options.workers ?? 1))
  return proxy
}

async function connect(proxy: FirebreakProxy): Promise<RawClient> {
  const client = await RawClient.connect(proxy.port)
  closers.push(() => client.close())
  return client
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`

/** Waits until a key that is hot since now is answered from memory: the table is there. */
async function knowsTable(client: RawClient): Promise<void> {
  await waitFor(async () => {
    await client.ask('GET', 'marker')
    return (await client.ask('FIREBREAK', 'PEEK', 'marker')) !== '*0\r\n'
  })
}

test.each([
  ['reject', /^-LIMITED .*retry after \d+ ms/],
  ['stale', /^\$1\r\nv/],
  ['wait', /^\$1\r\nv/],
] as const)('a limited key: %s', async (onLimit, expected) => {
  const server = await startRedis()
  closers.push(() => server.stop())
  const redis = await connect(await start(server.url))
  await redis.ask('SET', 'hot', 'v')
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 5,
    windowMs: onLimit === 'wait' ? 50 : 60_000,
    onLimit,
    scope: 'process',
  }
  hub.heat('main', ['hot'], { strategy })
  const limited = /firebreak_limited_(?:rejected|waited|stale):[1-9]/
  await waitFor(async () => {
    await redis.ask('GET', 'hot')
    return limited.test(await redis.ask('INFO', 'firebreak'))
  })
  for (let index = 0; index < 8; index++) redis.send('GET', 'hot')
  redis.send('GET', 'cold')
  for (let index = 0; index < 8; index++) expect(await redis.next()).toMatch(expected)
  expect(await redis.next()).toBe('$-1\r\n')
})

test('what is sent behind FLUSHALL finds nothing, also under a limit that keeps replies', async () => {
  const server = await startRedis()
  closers.push(() => server.stop())
  const redis = await connect(await start(server.url))
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 100_000,
    windowMs: 60_000,
    onLimit: 'stale',
    scope: 'process',
  }
  hub.heat('main', ['hot'], { strategy })
  hub.heat('main', ['marker'])
  await knowsTable(redis)
  for (let round = 0; round < 20; round++) {
    await redis.ask('SET', 'hot', 'v')
    for (const request of [['GET', 'hot'], ['FLUSHALL'], ['GET', 'hot']]) redis.send(...request)
    const replies = [await redis.next(), await redis.next(), await redis.next()]
    expect(replies).toEqual([bulk('v'), '+OK\r\n', '$-1\r\n'])
  }
})

test('a request of several keys that has to wait for a limit is counted once', async () => {
  const server = await startRedis()
  closers.push(() => server.stop())
  const redis = await connect(await start(server.url))
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 5,
    windowMs: 50,
    onLimit: 'wait',
    scope: 'process',
  }
  hub.heat('main', ['hot'], { strategy })
  const waited = async () => Number(/limited_waited:(\d+)/.exec(await redis.ask('INFO', 'firebreak'))![1])
  await waitFor(async () => {
    await redis.ask('GET', 'hot')
    return (await waited()) > 0
  })
  const before = await waited()
  for (let index = 0; index < 30; index++) redis.send('MGET', 'hot', 'beside')
  for (let index = 0; index < 30; index++) expect(await redis.next()).toBe('*2\r\n$-1\r\n$-1\r\n')
  expect((await waited()) - before).toBeGreaterThan(15)
  // What is reported comes in the order it was counted in.
  await redis.ask('GET', 'last')
  await waitFor(() => hub.counted('last').count === 1)
  expect(hub.counted('beside').count).toBe(30)
})

test('a limit of scope shared is one limit for all proxies, users and connections', async () => {
  const server = await startRedis()
  closers.push(() => server.stop())
  await server.cli('ACL', 'SETUSER', 'everybody', 'on', '>pass', '~*', '+@all')
  const [first, second] = [await start(server.url), await start(server.url)]
  const clients = [await connect(first), await connect(second), await connect(second)]
  expect(await clients[2]!.ask('AUTH', 'everybody', 'pass')).toBe('+OK\r\n')
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 20,
    windowMs: 600_000,
    onLimit: 'reject',
    scope: 'shared',
  }
  hub.heat('main', ['hot'], { strategy })
  hub.heat('main', ['marker'])
  for (const client of clients) await knowsTable(client)
  await server.cli('SET', 'hot', 'v')
  for (const client of clients) for (let count = 0; count < 15; count++) client.send('GET', 'hot')
  const replies: string[] = []
  for (const client of clients) for (let count = 0; count < 15; count++) replies.push(await client.next())
  const admitted = replies.filter((reply) => reply === bulk('v'))
  // Ten minutes give a token every thirty seconds.
  expect(admitted.length).toBeGreaterThanOrEqual(20)
  expect(admitted.length).toBeLessThanOrEqual(22)
  expect(replies.filter((reply) => reply.startsWith('-LIMITED'))).toHaveLength(45 - admitted.length)
})

test('a limit of scope process is one limit for all users of a proxy', async () => {
  const server = await startRedis()
  closers.push(() => server.stop())
  await server.cli('ACL', 'SETUSER', 'everybody', 'on', '>pass', '~*', '+@all')
  const proxy = await start(server.url)
  const clients = [await connect(proxy), await connect(proxy)]
  expect(await clients[1]!.ask('AUTH', 'everybody', 'pass')).toBe('+OK\r\n')
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 10,
    windowMs: 600_000,
    onLimit: 'reject',
    scope: 'process',
  }
  hub.heat('main', ['hot'], { strategy })
  hub.heat('main', ['marker'])
  for (const client of clients) await knowsTable(client)
  const replies: string[] = []
  for (let count = 0; count < 20; count++) for (const client of clients) replies.push(await client.ask('GET', 'hot'))
  expect(replies.filter((reply) => reply === '$-1\r\n')).toHaveLength(10)
})

test('a key that one thread finds hot is hot in all threads at once', async () => {
  const server = await startRedis()
  closers.push(() => server.stop())
  await server.cli('SET', 'k', 'v')
  const proxy = await start(server.url, { workers: 3 })
  hub.setRules([testRule(200)])
  const threadOf = async (client: RawClient) =>
    /firebreak_thread:(\d+)/.exec(await client.ask('FIREBREAK', 'INFO'))![1]!
  const busy = await connect(proxy)
  const others = new Map<string, RawClient>()
  // The kernel spreads connections over the threads.
  await waitFor(async () => {
    const client = await connect(proxy)
    others.set(await threadOf(client), client)
    return others.size === 3
  })
  others.delete(await threadOf(busy))
  const served = new Set<RawClient>()
  let asked = 0
  await waitFor(async () => {
    for (let count = 0; count < 100; count++) busy.send('GET', 'k')
    for (let count = 0; count < 100; count++) await busy.next()
    for (const client of others.values()) {
      if (served.has(client)) continue
      // Far below the threshold itself: this thread would never find the key hot.
      if (asked++ < 40) await client.ask('GET', 'k')
      if ((await client.ask('FIREBREAK', 'PEEK', 'k')) === `*1\r\n${bulk('v')}`) served.add(client)
    }
    return served.size === others.size
  })
})

describe('copies behind the proxy, on a real cluster', () => {
  const names = Array.from({ length: 6 }, (_, index) => `hot_${index + 1}`)
  let cluster: RedisCluster

  const getsByNode = () =>
    Promise.all(
      cluster.nodes.map(async (node) =>
        Number((await node.cli('INFO', 'commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? 0),
      ),
    )
  const copies = async () => {
    const lists = await Promise.all(cluster.nodes.map((node) => node.cli('KEYS', 'hot_*')))
    return lists.flatMap((list) => list.split('\n')).filter((name) => name !== '')
  }

  test('stand on all nodes, share the reads, follow every write, and go when the key cools', async () => {
    cluster = await startCluster()
    closers.push(() => cluster.stop())
    const upstream = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    const [proxy, other] = [await start(upstream), await start(upstream)]
    const [client, writer] = [await connect(proxy), await connect(other)]
    await client.ask('SET', 'hot', 'v1')
    hub.heat('main', ['hot'], { strategy: { strategy: 'RedundantKeys', copies: names, ttlJitterMs: 0 } })
    await waitFor(async () => {
      expect(await client.ask('GET', 'hot')).toBe(bulk('v1'))
      await writer.ask('GET', 'hot')
      return (await copies()).length >= names.length - 1
    })
    expect(new Set((await copies()).map((name) => Math.floor(keySlot(name) / 5461))).size).toBe(3)

    const before = await getsByNode()
    for (let count = 0; count < 300; count++) client.send('GET', 'hot')
    for (let count = 0; count < 300; count++) expect(await client.next()).toBe(bulk('v1'))
    const counts = (await getsByNode()).map((count, index) => count - before[index]!)
    const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
    expect(Math.min(...counts)).toBeGreaterThan(mean / 4)

    for (let version = 2; version < 30; version++) {
      const value = `v${version}`
      expect(await client.ask('SET', 'hot', value)).toBe('+OK\r\n')
      expect(await client.ask('GET', 'hot')).toBe(bulk(value))
    }
    expect(await writer.ask('SET', 'hot', 'theirs')).toBe('+OK\r\n')
    await waitFor(async () => (await client.ask('GET', 'hot')) === bulk('theirs'))
    await client.ask('DEL', 'hot')
    await waitFor(async () => (await writer.ask('GET', 'hot')) === '$-1\r\n')

    await client.ask('SET', 'hot', 'last')
    hub.cool('main', ['hot'])
    await waitFor(async () => (await copies()).length === 0, { what: 'the copies to go' })
    expect(await client.ask('GET', 'hot')).toBe(bulk('last'))
  })
})
