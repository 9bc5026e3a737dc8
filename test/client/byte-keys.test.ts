import { protect, shieldOf, unprotect } from '@firebreak/client'
import { defaultLocalCache, keyName, type Strategy } from '@firebreak/core'
import { startProxy } from '@firebreak/proxy'
import { type RedisServer, scale, seededRandom, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** A client that takes and gives bytes. */
interface BytesClient {
  readonly raw?: object
  get(key: Buffer): Promise<Buffer | null>
  set(key: Buffer, value: Buffer): Promise<unknown>
  del(key: Buffer): Promise<unknown>
  close(): unknown
}

const stringType = 36

function fromIoredis(redis: Redis): BytesClient {
  return {
    raw: redis,
    get: (key) => redis.getBuffer(key),
    set: (key, value) => redis.set(key, value),
    del: (key) => redis.del(key),
    close: () => redis.disconnect(),
  }
}

async function openNodeRedis(port: number, keyPrefix?: string | Buffer): Promise<BytesClient> {
  const options = { socket: { host: '127.0.0.1', port }, ...(keyPrefix !== undefined && { keyPrefix }) }
  const client = createClient(options as object)
  client.on('error', () => {})
  await client.connect()
  const inBytes = client.withTypeMapping({ [stringType]: Buffer })
  return {
    raw: client,
    get: (key) => inBytes.get(key) as Promise<Buffer | null>,
    set: (key, value) => client.set(key, value),
    del: (key) => client.del(key),
    close: () => client.destroy(),
  }
}

/** A prefix whose last byte begins a character that a key's first byte may end. */
const bytePrefix = Buffer.from([0x70, 0xff, 0xc3])
const textPrefix = 'příznak:'

let server: RedisServer
let hub: TestHub
let judge: Redis

beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
  judge = new Redis(server.port)
})
afterAll(async () => {
  judge.disconnect()
  await hub.kill()
  await server.stop()
})

const ways: Record<string, { prefix: Buffer; open(): Promise<BytesClient> }> = {
  ioredis: { prefix: Buffer.alloc(0), open: async () => fromIoredis(new Redis(server.port)) },
  'ioredis with a prefix': {
    prefix: Buffer.from(textPrefix),
    open: async () => fromIoredis(new Redis(server.port, { keyPrefix: textPrefix })),
  },
  'node-redis': { prefix: Buffer.alloc(0), open: () => openNodeRedis(server.port) },
  'node-redis with a prefix': { prefix: Buffer.from(textPrefix), open: () => openNodeRedis(server.port, textPrefix) },
  'node-redis with a prefix of bytes': { prefix: bytePrefix, open: () => openNodeRedis(server.port, bytePrefix) },
  'the proxy': {
    prefix: Buffer.alloc(0),
    async open() {
      const shield = {
        hubs: [hub.url],
        redisClusterId: 'main',
        serviceId: 'test',
        tableFile: false,
        canaryMs: 0,
      } as const
      const known = hub.hellos.length
      const proxy = await startProxy({ upstream: `127.0.0.1:${server.port}`, port: 0, drainMs: 1, shield })
      await waitFor(() => hub.hellos.length > known)
      const client = fromIoredis(new Redis(proxy.port))
      const { raw: _, ...rest } = client
      return {
        ...rest,
        close: async () => {
          client.close()
          await proxy.close()
        },
      }
    },
  },
}

/** Names of copies as the hub would make them of a name. */
const copiesOf = (name: string): Strategy => ({
  strategy: 'RedundantKeys',
  copies: [`${name}_1`, `${name}_2`],
  ttlJitterMs: 0,
})
const strategies: Record<string, (name: string) => Strategy> = {
  LocalCache: () => defaultLocalCache,
  RedundantKeys: copiesOf,
  RateLimit: () => ({
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 1_000_000,
    windowMs: 1000,
    scope: 'process',
    onLimit: 'stale',
  }),
}

/** Braces are rounded in a copy's name. */
function lastCopyOf(key: Buffer): Buffer {
  const rounded = key.toString('latin1').replaceAll('{', '(').replaceAll('}', ')')
  return Buffer.from(`${rounded}_2`, 'latin1')
}

const random = seededRandom(19)
const pieces = [
  [0],
  [0x62],
  [0x7b],
  [0x7d],
  [0x0d, 0x0a],
  [0xc3],
  [0xa9],
  [0xc3, 0xa9],
  [0xff],
  [0x20],
  [0x25],
  [0xe2, 0x82],
]

/** Keys of any bytes, and mostly of those that are something to one of the written forms of a key. */
function randomKey(): Buffer {
  const length = 1 + Math.floor(random() * 8)
  const bytes = Array.from({ length }, () =>
    random() < 0.3 ? [Math.floor(random() * 256)] : pieces[Math.floor(random() * pieces.length)]!,
  )
  return Buffer.from(bytes.flat())
}

describe.each(Object.keys(ways))('keys of any bytes through %s', (way) => {
  test.each(Object.keys(strategies))('are under %s what a bare client says', async (strategy) => {
    const { prefix, open } = ways[way]!
    await judge.flushall()
    const client = await open()
    if (client.raw !== undefined) {
      protect(client.raw, {
        hubs: [hub.url],
        serviceId: 'shop',
        redisClusterId: 'main',
        tableFile: false,
        canaryMs: 0,
        onWarning: () => {},
      })
      await waitFor(() => shieldOf(client.raw!)?.isConnected)
    }
    const keys = Array.from({ length: scale(16, 200) }, randomKey)
    const whole = (key: Buffer) => Buffer.concat([prefix, key])
    const names = keys.map((key) => keyName(whole(key)))
    try {
      for (const [index, key] of keys.entries()) await judge.set(whole(key), Buffer.from([0xff, index, 0]))
      for (const name of names) hub.heat('main', [name], { strategy: strategies[strategy]!(name) })
      await waitFor(async () => {
        for (const key of keys) await client.get(key)
        return strategy !== 'RedundantKeys' || (await judge.exists(lastCopyOf(whole(keys.at(-1)!)))) === 1
      })
      const compare = async () => {
        for (let round = 0; round < 3; round++) {
          for (const key of keys) expect([key, await client.get(key)]).toEqual([key, await judge.getBuffer(whole(key))])
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
    } finally {
      hub.cool('main', names)
      if (client.raw !== undefined) unprotect(client.raw)
      await client.close()
    }
  })
})
