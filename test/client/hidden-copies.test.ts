import { protect, shieldOf, unprotect } from '@firebreak/client'
import { startProxy } from '@firebreak/proxy'
import { type RedisCluster, type RedisServer, startCluster, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

/** A client that lists names, as bytes in Latin-1. */
interface Lister {
  keys(pattern: string): Promise<string[]>
  /** Every form of SCAN that the library has. */
  scans(options: ScanOptions): Promise<string[][]>
  randomKey(): Promise<string | null>
  get(key: string): Promise<unknown>
}
interface ScanOptions {
  readonly MATCH?: string
  readonly COUNT?: number
  readonly TYPE?: string
}

const latin1 = (name: Buffer) => name.toString('latin1')

function ioredisLister(redis: Redis): Lister {
  return {
    keys: async (pattern) => (await redis.keysBuffer(pattern)).map(latin1),
    async scans({ MATCH, COUNT, TYPE }) {
      const words = Object.entries({ MATCH, COUNT, TYPE }).flatMap(([name, value]) =>
        value === undefined ? [] : [name, String(value)],
      )
      const names: Buffer[] = []
      let cursor = '0'
      do {
        const [next, page] = (await redis.callBuffer('SCAN', cursor, ...words)) as [Buffer, Buffer[]]
        names.push(...page)
        cursor = String(next)
      } while (cursor !== '0')
      const options = { ...(MATCH && { match: MATCH }), ...(COUNT && { count: COUNT }), ...(TYPE && { type: TYPE }) }
      const streamed: Buffer[] = []
      for await (const page of redis.scanBufferStream(options)) streamed.push(...(page as Buffer[]))
      const [[, [, piped]]] = (await redis
        .pipeline([
          ['scanBuffer', '0', 'COUNT', '1000', ...(MATCH ? ['MATCH', MATCH] : []), ...(TYPE ? ['TYPE', TYPE] : [])],
        ])
        .exec()) as [[null, [Buffer, Buffer[]]]]
      return [names, streamed, piped].map((list) => list.map(latin1))
    },
    async randomKey() {
      const name = (await redis.callBuffer('RANDOMKEY')) as Buffer | null
      return name && latin1(name)
    },
    get: (key) => redis.get(key),
  }
}

const makeNodeRedis = () => createClient({ socket: { host: '127.0.0.1', port: server.port } })

function nodeRedisLister(client: ReturnType<typeof makeNodeRedis>): Lister {
  const inBytes = client.withTypeMapping({ 36: Buffer })
  return {
    keys: async (pattern) => (await inBytes.keys(pattern)).map((name) => latin1(name as unknown as Buffer)),
    async scans(options) {
      const names: string[] = []
      for await (const page of inBytes.scanIterator(options)) {
        names.push(...(page as unknown as Buffer[]).map(latin1))
      }
      return [names]
    },
    async randomKey() {
      const name = (await inBytes.randomKey()) as unknown as Buffer | null
      return name && latin1(name)
    },
    get: (key) => client.get(key),
  }
}

let server: RedisServer
let hub: TestHub
let plain: Redis
const closers: (() => unknown)[] = []

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  hub = await TestHub.start()
  plain = new Redis(server.port)
  await plain.flushall()
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  plain.disconnect()
  await hub.kill()
})

async function protectedBy<Client extends object>(client: Client): Promise<Client> {
  const base = { hubs: [hub.url], redisClusterId: 'main', tableFile: false, canaryMs: 0 } as const
  protect(client, { ...base, serviceId: 'shop', onWarning: () => {} })
  closers.push(() => unprotect(client))
  await waitFor(() => shieldOf(client)?.isConnected)
  return client
}

async function proxyTo(upstream: string): Promise<Redis> {
  const known = hub.hellos.length
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  const proxy = await startProxy({ upstream, port: 0, drainMs: 1, shield })
  closers.push(() => proxy.close())
  await waitFor(() => hub.hellos.length > known)
  const redis = new Redis(proxy.port)
  closers.push(() => redis.disconnect())
  return redis
}

const open: Record<string, () => Promise<Lister>> = {
  async ioredis() {
    const redis = new Redis(server.port)
    closers.push(() => redis.disconnect())
    return ioredisLister(await protectedBy(redis))
  },
  async 'node-redis'() {
    const client = makeNodeRedis()
    client.on('error', () => {})
    await client.connect()
    closers.push(() => client.destroy())
    return nodeRedisLister(await protectedBy(client))
  },
  'the proxy': async () => ioredisLister(await proxyTo(`127.0.0.1:${server.port}`)),
}

const binary = 'a\xff\xc3'
/** One is called as a copy would be, one as our markers once were. */
const mine = ['k', 'k_2', 'other', '{user:1}:fb', binary].sort()
const strategy = (key: string, names: readonly string[]) =>
  ({ strategy: { strategy: 'RedundantKeys', copies: names.map((name) => `${key}_${name}`), ttlJitterMs: 0 } }) as const
const binaryName = `\0b${binary}`

describe.each(Object.keys(open))('what %s shows', (way) => {
  test('is every key of the application, and neither a copy nor what stands beside it', async () => {
    for (const name of mine) await plain.set(Buffer.from(name, 'latin1'), 'v')
    const lister = await open[way]!()
    hub.heat('main', ['k'], strategy('k', ['1', '2', '3']))
    hub.heat('main', [binaryName], strategy(binaryName, ['1', '2']))
    await waitFor(async () => {
      await lister.get('k')
      const ours = await plain.exists('k_1', 'k_3', Buffer.from(`${binary}_1`, 'latin1'), '{k}:firebreak-refresher')
      return ours === 4
    })
    // Also where the answer to the write of a copy is still on its way.
    expect((await lister.keys('*')).sort()).toEqual(mine)
    expect((await plain.keysBuffer('*')).length).toBeGreaterThan(mine.length + 8)
    expect((await lister.keys('k_*')).sort()).toEqual(['k_2'])
    for (const names of await lister.scans({})) expect(names.sort()).toEqual(mine)
    for (const names of await lister.scans({ COUNT: 2 })) expect(names.sort()).toEqual(mine)
    for (const names of await lister.scans({ MATCH: 'k*', COUNT: 3, TYPE: 'string' }))
      expect(names.sort()).toEqual(['k', 'k_2'])
    const drawn = new Set<string | null>()
    for (let draw = 0; draw < 200; draw++) drawn.add(await lister.randomKey())
    for (const name of drawn) expect(mine).toContain(name)
    for (const name of mine) await plain.del(Buffer.from(name, 'latin1'))
    expect(await lister.randomKey()).toBe(null)
  })
})

/** A client of a cluster, and what listing its nodes one by one shows. */
interface ClusterLister {
  get(key: string): Promise<unknown>
  names(): Promise<string[]>
}

const openCluster: Record<string, (addresses: RedisCluster['addresses']) => Promise<ClusterLister>> = {
  async ioredis(addresses) {
    const redis = new Cluster([...addresses])
    closers.push(() => redis.disconnect())
    await protectedBy(redis)
    return {
      get: (key) => redis.get(key),
      async names() {
        const names: string[] = []
        for (const node of redis.nodes('master')) {
          for await (const page of node.scanStream()) names.push(...(page as string[]))
          expect((await node.keys('*')).length).toBeLessThanOrEqual(names.length)
        }
        return names
      },
    }
  },
  async 'node-redis'(addresses) {
    const redis = createCluster({ rootNodes: addresses.map((socket) => ({ socket })) })
    redis.on('error', () => {})
    // Its connections are opened after it is protected.
    await protectedBy(redis)
    await redis.connect()
    closers.push(() => redis.destroy())
    return {
      get: (key) => redis.get(key),
      async names() {
        const names: string[] = []
        for (const { client } of redis.masters) for await (const page of client!.scanIterator()) names.push(...page)
        return names
      },
    }
  },
}

describe('a cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster()
  })
  beforeEach(() => Promise.all(cluster.nodes.map((node) => node.cli('FLUSHALL'))))
  afterAll(() => cluster.stop())

  test.each(Object.keys(openCluster))('of which %s lists the nodes shows no copies', async (library) => {
    const { get, names } = await openCluster[library]!(cluster.addresses)
    const mine = ['k', ...Array.from({ length: 12 }, (_, index) => `mine${index}`)].sort()
    const bare = new Cluster([...cluster.addresses])
    closers.push(() => bare.disconnect())
    for (const name of mine) await bare.set(name, 'v')
    hub.heat('main', ['k'], strategy('k', ['1', '2', '3', '4', '5', '6']))
    const all = async () =>
      (await Promise.all(cluster.nodes.map((node) => node.cli('DBSIZE')))).reduce((sum, size) => sum + Number(size), 0)
    await waitFor(async () => (await get('k')) === 'v' && (await all()) >= mine.length + 6, { what: 'the copies' })
    await waitFor(async () => (await names()).length === mine.length, { what: 'the copies to be known' })
    expect((await names()).sort()).toEqual(mine)
  })

  test('shows no copies through the proxy', async () => {
    const redis = await proxyTo(cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(','))
    const names = ['k', ...Array.from({ length: 12 }, (_, index) => `mine${index}`)].sort()
    for (const name of names) await redis.set(name, 'v')
    hub.heat('main', ['k'], strategy('k', ['1', '2', '3', '4', '5', '6']))
    const lister = ioredisLister(redis)
    const all = async () =>
      (await Promise.all(cluster.nodes.map((node) => node.cli('DBSIZE')))).reduce((sum, size) => sum + Number(size), 0)
    await waitFor(async () => (await lister.get('k')) === 'v' && (await all()) >= names.length + 6 * 3)
    await waitFor(async () => (await lister.keys('*')).length === names.length)
    expect((await lister.keys('*')).sort()).toEqual(names)
    for (let draw = 0; draw < 50; draw++) expect(names).toContain(await lister.randomKey())
    const [scanned] = await lister.scans({ COUNT: 5 })
    expect(scanned!.sort()).toEqual(names)
  })
})
