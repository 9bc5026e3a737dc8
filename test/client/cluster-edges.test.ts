import { defaultLocalCache, keyName, type Strategy } from '@firebreak/core'
import { type RedisCluster, seededRandom, startCluster, waitFor } from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

// What a client of a cluster may be told and asked beside the usual; a bare client of the same cluster says what is right.

let cluster: RedisCluster
let fixture: Fixture
let judge: Cluster

beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())
beforeEach(async () => {
  judge = new Cluster([...cluster.addresses])
  for (const node of cluster.nodes) await node.cli('FLUSHALL')
  fixture = await Fixture.start(cluster.nodes[0]!.port)
})
afterEach(async () => {
  await fixture.close()
  judge.disconnect()
})

const rootNodes = () => cluster.addresses.map(({ host, port }) => ({ url: `redis://${host}:${port}` }))

test("node-redis' own clientSideCache on a cluster is never stale", async () => {
  const client = createCluster({ rootNodes: rootNodes(), RESP: 3, clientSideCache: {} })
  client.on('error', () => {})
  await client.connect()
  await fixture.adopt(client)
  fixture.onClose(async () => client.isOpen && client.destroy())
  const keys = ['a', 'b', 'c']
  for (const key of keys) await judge.set(key, 'first')
  fixture.hub.heat('main', keys)
  await waitFor(async () => {
    for (const key of keys) await client.get(key)
    return (client.clientSideCache?.stats().hitCount ?? 0) > 0
  })
  for (let version = 0; version < 30; version++) {
    for (const key of keys) {
      await client.set(key, `own ${version}`)
      expect(await client.get(key)).toBe(`own ${version}`)
      await judge.set(key, `other ${version}`)
      await waitFor(async () => (await client.get(key)) === `other ${version}`, { timeoutMs: 5000, everyMs: 1 })
    }
  }
})

interface BytesClient {
  readonly raw: object
  get(key: Buffer): Promise<Buffer | null>
  set(key: Buffer, value: Buffer): Promise<unknown>
  del(key: Buffer): Promise<unknown>
}

const libraries: Record<string, () => Promise<BytesClient>> = {
  async ioredis() {
    const client = new Cluster([...cluster.addresses])
    return {
      raw: client,
      get: (key) => client.getBuffer(key),
      set: (key, value) => client.set(key, value),
      del: (key) => client.del(key),
    }
  },
  async 'node-redis'() {
    const client = createCluster({ rootNodes: rootNodes() })
    client.on('error', () => {})
    await client.connect()
    const inBytes = client.withTypeMapping({ 36: Buffer })
    return {
      raw: client,
      get: (key) => inBytes.get(key) as unknown as Promise<Buffer | null>,
      set: (key, value) => client.set(key, value),
      del: (key) => client.del(key),
    }
  },
}

const strategies: Record<string, (name: string) => Strategy> = {
  LocalCache: () => defaultLocalCache,
  RedundantKeys: (name) => ({ strategy: 'RedundantKeys', copies: [`${name}_1`, `${name}_2`], ttlJitterMs: 0 }),
}

const random = seededRandom(23)
const pieces = [[0], [0x7b], [0x7d], [0x0d, 0x0a], [0xc3], [0xc3, 0xa9], [0xff], [0x25], [0xe2, 0x82]]
const randomKey = () => {
  const length = 2 + Math.floor(random() * 6)
  const piece = () => (random() < 0.3 ? [Math.floor(random() * 256)] : pieces[Math.floor(random() * pieces.length)]!)
  return Buffer.from(Array.from({ length }, piece).flat())
}

describe.each(Object.keys(libraries))('%s on a cluster', (library) => {
  test.each(Object.keys(strategies))('reads keys of any bytes under %s as a bare client does', async (strategy) => {
    const client = await libraries[library]!()
    await fixture.adopt(client.raw)
    const keys = Array.from({ length: 12 }, randomKey)
    const names = keys.map((key) => keyName(key))
    for (const [index, key] of keys.entries()) await judge.set(key, Buffer.from([0xff, index, 0]))
    for (const name of names) fixture.hub.heat('main', [name], { strategy: strategies[strategy]!(name) })
    const compare = async () => {
      for (let round = 0; round < 3; round++) {
        for (const key of keys) expect([key, await client.get(key)]).toEqual([key, await judge.getBuffer(key)])
      }
    }
    await compare()
    for (const key of keys) {
      await client.set(key, Buffer.from([0, 0xfe]))
      expect([key, await client.get(key)]).toEqual([key, Buffer.from([0, 0xfe])])
    }
    await compare()
    for (const key of keys) await client.del(key)
    await compare()
  })
})
