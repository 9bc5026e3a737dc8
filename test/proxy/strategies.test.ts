import type { RateLimitStrategy } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import type { FirebreakProxy, ProxyOptions } from '@firebreak/proxy'
import {
  FaultProxy,
  type RedisCluster,
  startCluster,
  startRedis,
  type TestHub,
  testRule,
  waitFor,
} from '@firebreak/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { letWork } from './proxy-stage.ts'
import type { RawClient } from './raw-client.ts'
import { ShieldedProxies } from './shielded-proxies.ts'

let hub: TestHub
let proxies: ShieldedProxies

beforeEach(async () => {
  proxies = await ShieldedProxies.open()
  hub = proxies.hub
})

afterEach(() => proxies.close())

const start = (upstream: string, options: Partial<ProxyOptions> = {}) => proxies.start(upstream, options)
const connect = (proxy: FirebreakProxy) => proxies.connect(proxy)

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
  proxies.onClose(() => server.stop())
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

test('each caller has a limit for himself, by the user that he is', async () => {
  const server = await startRedis()
  proxies.onClose(() => server.stop())
  for (const user of ['ann', 'bob']) await server.cli('ACL', 'SETUSER', user, 'on', '>pw', '~*', '+@all')
  const proxy = await start(server.url)
  const [ann, bob, again] = [await connect(proxy), await connect(proxy), await connect(proxy)]
  for (const [client, name] of [
    [ann, 'ann'],
    [bob, 'bob'],
    [again, 'ann'],
  ] as const)
    expect(await client.ask('AUTH', name, 'pw')).toBe('+OK\r\n')
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'slidingLog',
    limit: 5,
    windowMs: 60_000,
    onLimit: 'reject',
    scope: 'process-caller',
  }
  hub.heat('main', ['hot', 'marker'], { strategy })
  const isLimited = async (client: RawClient, key: string) => (await client.ask('GET', key)).startsWith('-LIMITED')
  const other = await connect(proxy)
  await waitFor(() => isLimited(other, 'marker'), { what: 'the table' })
  const refused = async (client: RawClient, count: number) => {
    let refusals = 0
    for (let index = 0; index < count; index++) refusals += Number(await isLimited(client, 'hot'))
    return refusals
  }
  expect([await refused(ann, 4), await refused(bob, 6), await refused(again, 3)]).toEqual([0, 1, 2])
})

test('what is sent behind FLUSHALL finds nothing, also under a limit that keeps replies', async () => {
  const server = await startRedis()
  proxies.onClose(() => server.stop())
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
  proxies.onClose(() => server.stop())
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

test.each(['process', 'shared'] as const)(
  'who leaves the line of a limit of scope %s leaves its turn',
  async (scope) => {
    const server = await startRedis()
    proxies.onClose(() => server.stop())
    const proxy = await start(server.url, { shield: { maxLimitWaitMs: 60_000 } })
    const redis = await connect(proxy)
    const strategy: RateLimitStrategy = {
      strategy: 'RateLimit',
      algorithm: 'tokenBucket',
      limit: 1,
      windowMs: 1000,
      onLimit: 'wait',
      scope,
    }
    hub.heat('main', ['hot'], { strategy })
    const figure = async (name: string) =>
      Number(new RegExp(`firebreak_${name}:(\\d+)`).exec(await redis.ask('INFO', 'firebreak'))![1])
    await waitFor(async () => {
      await redis.ask('GET', 'hot')
      return (await figure('limited_waited')) > 0
    })
    const before = await figure('limited_waited')
    const leaving = await Promise.all(Array.from({ length: 8 }, () => connect(proxy)))
    for (const client of leaving) client.send('GET', 'hot')
    for (const client of leaving) client.send('GET', 'behind')
    await waitFor(() => hub.counted('hot').count >= before + 8)
    await Promise.all(leaving.map((client) => client.close()))
    await waitFor(async () => (await figure('clients')) === 1)
    expect(await redis.ask('GET', 'hot')).toBe('$-1\r\n')
    // Its own turn, and those that came before the others left.
    expect((await figure('limited_waited')) - before).toBeLessThan(5)
  },
)

test('of what a client sends behind a request that waits for a limit, little is read', async () => {
  const server = await startRedis()
  proxies.onClose(() => server.stop())
  const proxy = await start(server.url, { shield: { maxLimitWaitMs: 120_000 } })
  const [redis, waiting] = [await connect(proxy), await connect(proxy)]
  const strategy: RateLimitStrategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1,
    windowMs: 60_000,
    onLimit: 'wait',
    scope: 'process',
  }
  hub.heat('main', ['hot'], { strategy })
  hub.heat('main', ['marker'])
  await knowsTable(redis)
  await redis.ask('GET', 'hot')
  waiting.send('GET', 'hot')
  for (let count = 0; count < 64; count++) waiting.send('SET', 'cold', 'x'.repeat(1 << 20))
  await letWork(redis)
  // The kernel takes some of it.
  expect(waiting.socket.writableLength).toBeGreaterThan(32 << 20)
})

test('a limit of scope shared is one limit for all proxies, users and connections', async () => {
  const server = await startRedis()
  proxies.onClose(() => server.stop())
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
  proxies.onClose(() => server.stop())
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
  proxies.onClose(() => server.stop())
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

describe('copies behind the proxy', () => {
  /** A client of a proxy over a Redis whose key `hot` is read from copies; `fault` stands before the Redis. */
  async function startCopies() {
    const server = await startRedis()
    proxies.onClose(() => server.stop())
    const fault = await FaultProxy.start(server.port)
    proxies.onClose(() => fault.close())
    fault.faults.onlyTracking = true
    const redis = await connect(await start(`127.0.0.1:${fault.port}`))
    const strategy = { strategy: 'RedundantKeys', copies: ['copy'], ttlJitterMs: 0 } as const
    hub.heat('main', ['hot'], { strategy })
    await waitFor(async () => {
      await redis.ask('SET', 'hot', 'old')
      await redis.ask('GET', 'hot')
      return (await server.cli('EXISTS', 'copy')) === '1'
    })
    return { server, fault, redis }
  }

  test.each([
    ['a read of a copy', true],
    ['a read that waits for a picture', false],
  ])('%s does not see what stands behind it in the pipeline', async (_, isCaughtUp) => {
    const { fault, redis } = await startCopies()
    for (const write of [['SET', 'hot', 'new'], ['DEL', 'hot'], ['FLUSHALL']]) {
      fault.faults.clientDelayMs = 0
      await redis.ask('SET', 'hot', 'old')
      if (isCaughtUp) await redis.ask('GET', 'hot')
      // What the shield reads itself arrives long after what the client sends.
      fault.faults.clientDelayMs = 50
      redis.send('GET', 'hot')
      redis.send(...write)
      expect(await redis.next()).toBe(bulk('old'))
      await redis.next()
    }
  })

  test('a picture that was taken before an own FLUSHALL is not read behind it', async () => {
    const { fault, redis } = await startCopies()
    // What the shield asks for is there long after what the client asks for.
    fault.faults.serverDelayMs = 50
    await redis.ask('SET', 'hot', 'old')
    await redis.ask('FLUSHALL')
    expect(await redis.ask('GET', 'hot')).toBe('$-1\r\n')
  })

  test('a change that the refresher could not be told of reaches the copies', async () => {
    const { server, fault } = await startCopies()
    await waitFor(async () => (await server.cli('EXISTS', '{hot}:firebreak-refresher')) === '1')
    fault.faults.refusesConnections = true
    fault.cut()
    await server.cli('SET', 'hot', 'new')
    fault.faults.refusesConnections = false
    // Nobody reads the key meanwhile, who might rewrite the copies.
    await waitFor(async () => (await server.cli('GET', 'copy')) === 'new')
  })

  test('an own write is seen although the version counter is lost', async () => {
    const { server, redis } = await startCopies()
    for (let round = 0; round < 3; round++) {
      for (let write = 0; write < 5; write++) {
        await redis.ask('SET', 'hot', 'old')
        await redis.ask('GET', 'hot')
      }
      expect(await server.cli('DEL', '{hot}:firebreak-version')).toBe('1')
      await redis.ask('SET', 'hot', `new${round}`)
      expect(await redis.ask('GET', 'hot')).toBe(bulk(`new${round}`))
    }
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
    proxies.onClose(() => cluster.stop())
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
