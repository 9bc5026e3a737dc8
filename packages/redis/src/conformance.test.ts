import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis as Ioredis6 } from 'ioredis'
import { Redis as Ioredis5 } from 'ioredis5'
import { createClient as createClient6 } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toRedis } from './adapters/to-redis.ts'
import type { Redis } from './redis.ts'
import { defineScript } from './script/redis-script.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

interface Opened {
  readonly redis: Redis
  close(): void
}

const clients: Record<string, () => Promise<Opened>> = {
  'ioredis 6': async () => {
    const client = new Ioredis6(server.port)
    return { redis: toRedis(client), close: () => client.disconnect() }
  },
  'ioredis 5': async () => {
    const client = new Ioredis5(server.port)
    return { redis: toRedis(client), close: () => client.disconnect() }
  },
  'node-redis 6': async () => {
    const client = createClient6({ url: server.url })
    await client.connect()
    return { redis: toRedis(client), close: () => client.destroy() }
  },
  'node-redis 5': async () => {
    const client = createClient5({ url: server.url })
    await client.connect()
    return { redis: toRedis(client), close: () => client.destroy() }
  },
}

describe.each(Object.keys(clients))('%s', (name) => {
  let opened: Opened
  let redis: Redis
  beforeAll(async () => {
    opened = await clients[name]!()
    redis = opened.redis
  })
  afterAll(() => opened.close())

  test('sends text and bytes and gives back the one that was asked for', async () => {
    const bytes = Uint8Array.from([0, 255, 13, 10])
    expect(await redis.send(['SET', `k ${name}`, bytes])).toBe('OK')
    expect(new Uint8Array((await redis.send(['GET', `k ${name}`], { asBytes: true })) as Uint8Array)).toEqual(bytes)
    await redis.send(['SET', `k ${name}`, 12])
    expect(await redis.send(['GET', `k ${name}`])).toBe('12')
    expect(await redis.send(['GET', `nothing ${name}`])).toBe(null)
  })

  test('rejects with the server’s own sentence', async () => {
    await redis.send(['SET', `text ${name}`, 'x'])
    await expect(redis.send(['LPUSH', `text ${name}`, 'x'])).rejects.toThrow(/^WRONGTYPE /)
  })

  test('runs a script, also after SCRIPT FLUSH and many times at once', async () => {
    const script = defineScript('double', 'return {KEYS[1], ARGV[1] * 2}')
    expect(await redis.run(script, ['a'], [21])).toEqual(['a', 42])
    await redis.send(['SCRIPT', 'FLUSH'])
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => redis.run(script, ['a'], [index])))
    expect(answers.map((answer) => (answer as number[])[1])).toEqual(
      Array.from({ length: 50 }, (_, index) => index * 2),
    )
  })

  test('a subscriber hears a message once its subscription is confirmed, also after a reconnect', async () => {
    const subscriber = await redis.subscriber()
    const heard: string[] = []
    await subscriber.subscribe(`channel ${name}`, (message) => heard.push(message))
    await redis.send(['PUBLISH', `channel ${name}`, 'one'])
    await expect.poll(() => heard).toEqual(['one'])
    const reconnected = new Promise<void>((resolve) => subscriber.onReconnect(resolve))
    await redis.send(['CLIENT', 'KILL', 'TYPE', 'pubsub'])
    await reconnected
    await expect
      .poll(async () => {
        await redis.send(['PUBLISH', `channel ${name}`, 'two'])
        return heard.includes('two')
      })
      .toBe(true)
    await subscriber.close()
  })

  test('masters of a lone server is that server', async () => {
    const masters = await redis.masters()
    expect(masters).toHaveLength(1)
    expect(await masters[0]!.send(['PING'])).toBe('PONG')
  })
})

test('something that is not a client is refused by name', () => {
  expect(() => toRedis({} as never)).toThrow(/not a Redis client that Firebreak knows/)
})
