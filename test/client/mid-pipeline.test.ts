import { peek } from '@firebreak/client'
import { type RedisServer, startCluster, startRedis, waitFor } from '@firebreak/testkit'
import { Cluster as Cluster6, type Redis } from 'ioredis'
import { Cluster as Cluster5 } from 'ioredis5'
import { Cluster as ClusterOfValkey } from 'iovalkey'
import { createClient as createClient6 } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
  fixture = await Fixture.start(server.port)
})

afterAll(async () => {
  await fixture.close()
  await server.stop()
})

test.each(['get', 'getBuffer', 'strlen'] as const)(
  'a read that a pipeline’s write sends to Redis gets its own answer, and the pipeline its own (%s)',
  async (read) => {
    const redis = await fixture.client()
    await redis.mset('hot', 'h', 'other', 'o')
    await fixture.makeHot(redis, 'hot')
    const wrong: unknown[] = []
    for (let round = 0; round < 30; round++) {
      // Somebody else changes it, and the next read has to be loaded.
      await fixture.plain.set('hot', `h${round}`)
      const first = redis[read]('hot')
      const pipeline = redis
        .pipeline()
        .get('other')
        .strlen('other')
        .set('hot', 'n')
        .getBuffer('hot')
        .append('hot', Buffer.from([255]))
      const [value, replies] = await Promise.all([first, pipeline.exec()])
      const expected = [
        [null, 'o'],
        [null, 1],
        [null, 'OK'],
        [null, Buffer.from('n')],
        [null, 2],
      ]
      const isRight = read === 'strlen' ? [1, 2, 3].includes(Number(value)) : /^(h\d*|n\ufffd?)$/.test(String(value))
      if (!isRight || JSON.stringify(replies) !== JSON.stringify(expected)) wrong.push([value, replies])
    }
    expect(wrong).toEqual([])
  },
)

test('on a cluster too, with every version of the library, whichever node reads may go to', async () => {
  const cluster = await startCluster()
  fixture.onClose(() => cluster.stop())
  for (const Cluster of [
    Cluster6,
    Cluster5 as unknown as typeof Cluster6,
    ClusterOfValkey as unknown as typeof Cluster6,
  ]) {
    for (const scaleReads of ['master', 'all'] as const) {
      const bare = new Cluster([...cluster.addresses])
      const redis = await fixture.adopt(new Cluster([...cluster.addresses], { scaleReads }))
      await redis.set('{k}other', 'o')
      await redis.set('{k}hot', 'h')
      fixture.hub.heat('main', ['{k}hot'])
      await waitFor(async () => {
        await redis.get('{k}hot')
        return peek(redis, '{k}hot') !== undefined
      })
      const wrong: unknown[] = []
      for (let round = 0; round < 20; round++) {
        await bare.set('{k}hot', `h${round}`)
        await waitFor(() => peek(redis, '{k}hot') === undefined, { everyMs: 1 })
        const first = redis.get('{k}hot')
        const pipeline = redis.pipeline().get('{k}other').strlen('{k}other').set('{k}hot', 'n').get('{k}hot')
        const [value, replies] = await Promise.all([first, pipeline.exec()])
        const expected = [
          [null, 'o'],
          [null, 1],
          [null, 'OK'],
          [null, 'n'],
        ]
        const isRight = /^(h\d*|n)$/.test(String(value))
        if (!isRight || JSON.stringify(replies) !== JSON.stringify(expected)) wrong.push([value, replies])
      }
      expect(wrong).toEqual([])
      bare.disconnect()
    }
  }
})

test.each(['pipeline', 'multi', 'multi without a pipeline'] as const)(
  'a transaction holds what was put into it, and the reads before it get their own answers (%s)',
  async (kind) => {
    const redis = await fixture.client()
    await redis.mset('hot', 'h', 'other', 'o')
    await fixture.makeHot(redis, 'hot')
    const wrong: unknown[] = []
    for (let round = 0; round < 30; round++) {
      await fixture.plain.set('hot', `h${round}`)
      await waitFor(() => peek(redis, 'hot') === undefined, { everyMs: 1 })
      const reads = [redis.get('hot'), redis.strlen('hot')]
      const replies = await transact(redis, kind)
      const [value, length] = await Promise.all(reads)
      if (!/^(h\d*|n)$/.test(String(value)) || ![1, 2, 3].includes(Number(length))) wrong.push([value, length])
      if (JSON.stringify(replies) !== '["o","OK",1]') wrong.push(replies)
    }
    expect(wrong).toEqual([])
  },
)

test('a read before SELECT is a read of the database that it was sent in', async () => {
  const redis = await fixture.client()
  await redis.set('hot', 'first')
  await redis.select(1)
  await redis.set('hot', 'second')
  await redis.select(0)
  await fixture.makeHot(redis, 'hot')
  for (let round = 0; round < 30; round++) {
    await fixture.plain.set('hot', `first ${round}`)
    await waitFor(() => peek(redis, 'hot') === undefined, { everyMs: 1 })
    const reads = [redis.get('hot'), redis.get('hot')]
    const selected = redis.select(1)
    // What was on its way from the watcher is outdated, and asked for again.
    await fixture.plain.set('hot', `first ${round}`)
    for (const value of await Promise.all(reads)) expect(value).toBe(`first ${round}`)
    await selected
    await redis.select(0)
  }
})

async function transact(redis: Redis, kind: 'pipeline' | 'multi' | 'multi without a pipeline'): Promise<unknown> {
  if (kind === 'multi without a pipeline') {
    const sent = [redis.multi({ pipeline: false }), redis.get('other'), redis.set('hot', 'n'), redis.strlen('hot')]
    const [, replies] = await Promise.all([Promise.all(sent), redis.exec()])
    return replies?.map(([, reply]) => reply)
  }
  if (kind === 'multi') {
    const replies = await redis.multi().get('other').set('hot', 'n').strlen('hot').exec()
    return replies?.map(([, reply]) => reply)
  }
  const words = [['multi'], ['get', 'other'], ['set', 'hot', 'n'], ['strlen', 'hot'], ['exec']]
  const replies = await redis.pipeline(words).exec()
  return replies!.at(-1)![1]
}

test.each([
  ['node-redis 6', createClient6],
  ['node-redis 5', createClient5 as unknown as typeof createClient6],
])('%s: a transaction holds what was put into it, and the reads before it get their own answers', async (_, create) => {
  const redis = create({ socket: { port: server.port } })
  await redis.connect()
  await fixture.adopt(redis)
  await redis.mSet({ hot: 'h', other: 'o' })
  fixture.hub.heat('main', ['hot'])
  await waitFor(async () => {
    await redis.get('hot')
    return peek(redis, 'hot') !== undefined
  })
  for (let round = 0; round < 30; round++) {
    await fixture.plain.set('hot', `h${round}`)
    await waitFor(() => peek(redis, 'hot') === undefined, { everyMs: 1 })
    const reads = [redis.get('hot'), redis.get('hot')]
    const replies = redis.multi().get('other').set('hot', 'n').strLen('hot').exec()
    expect(await replies).toEqual(['o', 'OK', 1])
    for (const value of await Promise.all(reads)) expect(value).toMatch(/^(h\d*|n)$/)
  }
})
