import 'reflect-metadata'
import { type FirebreakHandle, getOrLoad, shieldOf, splitCounter } from '@firebreak/client'
import { firebreak as expressFirebreak } from '@firebreak/client/express'
import { firebreak as fastifyFirebreak } from '@firebreak/client/fastify'
import { FirebreakModule, firebreakToken } from '@firebreak/client/nest'
import { type RedisServer, startCluster, startRedis, startSource } from '@firebreak/testkit'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import Fastify from 'fastify'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

let server: RedisServer
let redis: Redis
const options = { hubs: [], serviceId: 'test', tableFile: false } as const

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
beforeEach(() => redis.flushall())
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

describe('getOrLoad', () => {
  test('loads once in all processes together, however many read', async () => {
    const children = [0, 1, 2].map(() =>
      startSource(new URL('./loader-process.ts', import.meta.url), [
        JSON.stringify({ port: server.port, key: 'k', readers: 200 }),
      ]),
    )
    for (const child of children) expect(JSON.parse((await child.printed(/\{.*\}/))[0])).toEqual({ right: 200 })
    expect(await redis.get('k:loads')).toBe('1')
    expect(await redis.get('k')).toBe('loaded')
    expect(await redis.pttl('k')).toBeGreaterThan(1000)
  })

  test('remembers for a moment that there is nothing', async () => {
    let loads = 0
    const loader = async () => {
      loads++
      return null
    }
    for (let index = 0; index < 5; index++) expect(await getOrLoad(redis, 'none', loader, { ttlMs: 1000 })).toBe(null)
    expect(loads).toBe(1)
    expect(await redis.exists('none')).toBe(0)
  })

  test('values that are loaded together end at different times, none later than it may', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `together:${index}`)
    for (const key of keys) await getOrLoad(redis, key, async () => 'v', { ttlMs: 100_000 })
    const left = await Promise.all(keys.map((key) => redis.pttl(key)))
    expect(Math.max(...left)).toBeLessThanOrEqual(100_000)
    expect(Math.max(...left) - Math.min(...left)).toBeGreaterThan(2000)
    await getOrLoad(redis, 'exact', async () => 'v', { ttlMs: 100_000, ttlJitter: 0 })
    expect(await redis.pexpiretime('exact')).toBeGreaterThan(0)
    expect(await redis.pttl('exact')).toBeGreaterThan(Math.max(...left) - 10_000)
    expect(() => getOrLoad(redis, 'x', async () => 'v', { ttlMs: 1, ttlJitter: 2 })).toThrow(/ttlJitter/)
  })

  test('without a lease each process loads for itself, and absence is remembered as long as was asked for', async () => {
    const other = new Redis(server.port)
    let loads = 0
    let release: (value: string) => void = () => {}
    const brought = new Promise<string>((resolve) => (release = resolve))
    const loader = () => {
      loads++
      if (loads === 2) release('v')
      return brought
    }
    const both = [redis, other].map((client) => getOrLoad(client, 'free', loader, { ttlMs: 1000, leaseMs: 0 }))
    expect(await Promise.all(both)).toEqual(['v', 'v'])
    expect(loads).toBe(2)
    expect(await redis.keys('*fb-load*')).toEqual([])
    await getOrLoad(redis, 'gone', async () => null, { ttlMs: 1000, leaseMs: 0, absentTtlMs: 60_000 })
    expect(await getOrLoad(redis, 'gone', async () => 'late', { ttlMs: 1000, leaseMs: 0 })).toBe(null)
    other.disconnect()
  })

  test('a loader that fails gives its lease back, and the next try loads', async () => {
    await expect(
      getOrLoad(redis, 'f', () => Promise.reject(new Error('the database is away')), { ttlMs: 1000 }),
    ).rejects.toThrow('away')
    expect(await getOrLoad(redis, 'f', async () => 'v', { ttlMs: 1000 })).toBe('v')
  })

  test('a loader that outlives its lease does not overwrite what came after it', async () => {
    let release: (value: string) => void = () => {}
    const slow = getOrLoad(redis, 's', () => new Promise((resolve) => (release = resolve)), {
      ttlMs: 5000,
      leaseMs: 30,
    })
    const other = new Redis(server.port)
    expect(await getOrLoad(other, 's', async () => 'newer', { ttlMs: 5000, leaseMs: 1000 })).toBe('newer')
    release('older')
    expect(await slow).toBe('older')
    expect(await redis.get('s')).toBe('newer')
    other.disconnect()
  })
})

describe('getOrLoad on a cluster', () => {
  test('whatever braces a key has, its lease lies in its slot', async () => {
    const cluster = await startCluster()
    const client = new Cluster([...cluster.addresses])
    for (const key of ['plain', '{tag}:a', 'a}b', 'x{}y', '}{', 'open{only', '{}{t}', '}']) {
      expect(await getOrLoad(client, key, async () => `of ${key}`, { ttlMs: 60_000 })).toBe(`of ${key}`)
      expect(await client.get(key)).toBe(`of ${key}`)
      expect(await getOrLoad(client, `${key}:gone`, async () => null, { ttlMs: 60_000 })).toBe(null)
    }
    client.disconnect()
    await cluster.stop()
  })
})

describe('splitCounter', () => {
  test('an increment that fails rejects once, whichever of its two commands failed', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const away = new Redis({ port: 1, lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
    away.on('error', () => {})
    await expect(splitCounter(away, 'likes', { ttlMs: 1000 }).increment()).rejects.toThrow()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    const counter = splitCounter(redis, 'views', { parts: 1, ttlMs: 60_000 })
    await counter.increment(2)
    expect(await redis.pttl(counter.keys[0]!)).toBeGreaterThan(0)
  })

  test('sums what was added to its parts, on several nodes of a cluster', async () => {
    const cluster = await startCluster()
    const client = new Cluster([...cluster.addresses])
    const counter = splitCounter(client, 'likes:{42}', { parts: 12 })
    await Promise.all(Array.from({ length: 300 }, (_, index) => counter.increment(index % 3)))
    expect(await counter.value()).toBe(300)
    const sizes = await Promise.all(cluster.nodes.map(async (node) => Number(await node.cli('DBSIZE'))))
    expect(sizes.filter((size) => size > 0).length).toBe(3)
    await counter.reset()
    expect(await counter.value()).toBe(0)
    client.disconnect()
    await cluster.stop()
  })

  test('refuses what is no number of parts', () => {
    expect(() => splitCounter(redis, 'k', { parts: 0 })).toThrow(/parts is 0/)
  })
})

describe('plug-ins', () => {
  const loader = async () => 'from the database'

  test('Fastify', async () => {
    const app = Fastify()
    await app.register(fastifyFirebreak, { client: redis, ...options })
    app.get('/', (request) => request.firebreak.getOrLoad('page', loader, { ttlMs: 1000 }))
    expect(app.firebreak.client).toBe(redis)
    expect((await app.inject('/')).body).toBe('from the database')
    await app.close()
  })

  test('Express', async () => {
    const app = express()
    const middleware = expressFirebreak({ client: redis, ...options })
    app.use(middleware)
    app.get('/', async (request, response) => {
      response.send(await request.firebreak.getOrLoad('page', loader, { ttlMs: 1000 }))
    })
    const listening = app.listen(0)
    const { port } = listening.address() as { port: number }
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('from the database')
    listening.close()
    middleware.firebreak.close()
  })

  test('Nest, with options from other providers', async () => {
    const appModule = class {}
    Module({
      imports: [
        FirebreakModule.forRootAsync({
          inject: ['SERVICE'],
          imports: [settings()],
          useFactory: ((serviceId: string) => ({ client: redis, ...options, serviceId })) as never,
        }),
      ],
    })(appModule)
    const app = await NestFactory.createApplicationContext(appModule, { logger: false })
    const handle = app.get<{
      getOrLoad(key: string, load: () => Promise<string>, how: { ttlMs: number }): Promise<string>
    }>(firebreakToken)
    expect(await handle.getOrLoad('page', loader, { ttlMs: 1000 })).toBe('from the database')
    await app.close()
  })
})

test('Nest, with options at hand', async () => {
  const appModule = class {}
  Module({ imports: [FirebreakModule.forRoot({ client: redis, ...options })] as never[] })(appModule)
  const app = await NestFactory.createApplicationContext(appModule, { logger: false })
  const handle = app.get<FirebreakHandle>(firebreakToken)
  expect(await handle.getOrLoad('at hand', async () => 'v', { ttlMs: 1000 })).toBe('v')
  expect(handle.watchKey('at hand').isHot).toBe(false)
  expect(shieldOf(redis)).toBeDefined()
  await app.close()
  expect(shieldOf(redis)).toBeUndefined()
})

/** A module that provides a service's name. */
function settings(): object {
  const settingsModule = class {}
  Module({ providers: [{ provide: 'SERVICE', useValue: 'shop' }], exports: ['SERVICE'] })(settingsModule)
  return settingsModule
}
