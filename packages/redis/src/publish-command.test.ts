import { hasCapability, type RedisCluster, redisKind, startCluster, waitFor } from '@firebreak/testkit'
import { Cluster as Cluster6 } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { Cluster as IovalkeyCluster } from 'iovalkey'
import { createCluster as createCluster6 } from 'redis'
import { createCluster as createCluster5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toRedis } from './adapters/to-redis.ts'
import { publishCommand } from './publish-command.ts'
import type { Redis } from './redis.ts'

/** Disables sharded pub/sub, as if the server were Redis 6.2. */
const without = ['SPUBLISH', 'SSUBSCRIBE', 'SUNSUBSCRIBE'].flatMap((name) => ['--rename-command', name, ''])
const isOld = !hasCapability(redisKind(), 'shardedPubSub')

let old: RedisCluster
let usual: RedisCluster
beforeAll(async () => {
  old = await startCluster(isOld ? {} : { args: without })
  usual = await startCluster()
})
afterAll(() => Promise.all([old.stop(), usual.stop()]))

interface Opened {
  readonly redis: Redis
  close(): void
}
type Open = (cluster: RedisCluster) => Promise<Opened>

const ofIoredis =
  (Cluster: new (nodes: RedisCluster['addresses']) => Cluster6): Open =>
  async ({ addresses }) => {
    const client = new Cluster(addresses)
    client.on('error', () => {})
    return { redis: toRedis(client), close: () => client.disconnect() }
  }
const ofNodeRedis =
  (create: typeof createCluster6): Open =>
  async ({ addresses }) => {
    const client = create({ rootNodes: addresses.map(({ host, port }) => ({ url: `redis://${host}:${port}` })) })
    client.on('error', () => {})
    await client.connect()
    return { redis: toRedis(client), close: () => client.destroy() }
  }

const libraries: [string, Open][] = [
  ['ioredis 6', ofIoredis(Cluster6 as never)],
  ['ioredis 5', ofIoredis(Cluster5 as never)],
  ['iovalkey', ofIoredis(IovalkeyCluster as never)],
  ['node-redis 6', ofNodeRedis(createCluster6)],
  ['node-redis 5', ofNodeRedis(createCluster5 as never)],
]

describe.each(libraries)('%s', (name, open) => {
  test('subscribes on a cluster without sharded pub/sub, and hears what others publish there', async () => {
    const listening = await open(old)
    const speaking = await open(old)
    for (const { redis } of [listening, speaking]) await redis.send(['GET', 'k'])
    const subscriber = await listening.redis.subscriber()
    // Channels on every node.
    const channels = Array.from({ length: 12 }, (_, index) => `channel ${index} ${name}`)
    const heard = new Set<string>()
    for (const channel of channels) await subscriber.subscribe(channel, (message) => heard.add(`${channel} ${message}`))
    await waitFor(async () => (await publishCommand(speaking.redis)) === 'PUBLISH')
    for (const channel of channels) await speaking.redis.send(['PUBLISH', channel, 'word'])
    await waitFor(() => heard.size === channels.length)
    expect([...heard].sort()).toEqual(channels.map((channel) => `${channel} word`).sort())
    await subscriber.close()
    listening.close()
    speaking.close()
  })

  test('asks a cluster once, and again if nobody could answer', async () => {
    const opened = await open(usual)
    const { redis } = opened
    await redis.send(['GET', 'k'])
    expect(await publishCommand(redis)).toBe(isOld ? 'PUBLISH' : 'SPUBLISH')
    let asked = 0
    const answers: (() => Promise<[]>)[] = [() => Promise.reject(new Error('NOPERM')), async () => []]
    const odd: Redis = {
      ...redis,
      topology: 'cluster',
      masters: async () => {
        asked++
        return (await (answers.shift() ?? redis.masters.bind(redis))()) as never
      },
    }
    for (let call = 0; call < 2; call++) expect(await publishCommand(odd)).toBe('SPUBLISH')
    expect(asked).toBe(2)
    for (let call = 0; call < 3; call++) expect(await publishCommand(odd)).toBe(isOld ? 'PUBLISH' : 'SPUBLISH')
    expect(asked).toBe(3)
    opened.close()
  })
})
