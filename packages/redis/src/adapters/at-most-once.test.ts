import { FaultProxy, type RedisServer, startCluster, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis6, Cluster as IoredisCluster6 } from 'ioredis'
import { Redis as Ioredis5, Cluster as IoredisCluster5 } from 'ioredis5'
import { createClient as createClient6 } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Redis, RunOptions } from '../redis.ts'
import { defineScript } from '../script/redis-script.ts'
import type { IoredisLike } from './ioredis.ts'
import { toRedis } from './to-redis.ts'

const charge = defineScript('charge', "return redis.call('INCR', KEYS[1])")

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

interface Opened {
  readonly redis: Redis
  close(): void
}

const soon = () => 1

async function nodeRedis(client: ReturnType<typeof createClient6> | ReturnType<typeof createClient5>): Promise<Opened> {
  client.on('error', () => {})
  await client.connect()
  return { redis: toRedis(client as never), close: () => client.destroy() }
}

function ioredis(client: IoredisLike): Opened {
  client.on('error', () => {})
  return { redis: toRedis(client), close: () => client.disconnect() }
}

/** Runs the script, and cuts the connection after it took effect, before its reply arrives. */
async function loseReply(redis: Redis, proxy: FaultProxy, behind: RedisServer, key: string, options: RunOptions) {
  await redis.run(charge, [key], [])
  proxy.faults.serverDelayMs = 60_000
  const call = redis.run(charge, [key], [], options).then(
    (reply) => reply,
    () => 'rejected',
  )
  await waitFor(async () => (await behind.cli('GET', key)) === '2')
  proxy.faults.serverDelayMs = 0
  proxy.cut()
  const outcome = await call
  // Commands sent on the new connection come after all that the client repeats.
  await waitFor(async () => (await redis.send(['GET', key]).catch(() => undefined)) !== undefined)
  return { outcome, runs: Number(await behind.cli('GET', key)) - 1 }
}

const clients: Record<string, (port: number) => Opened | Promise<Opened>> = {
  'ioredis 6': (port) => ioredis(new Ioredis6({ port, retryStrategy: soon })),
  'ioredis 5': (port) => ioredis(new Ioredis5({ port, retryStrategy: soon })),
  'ioredis 6 with automatic pipelines': (port) =>
    ioredis(new Ioredis6({ port, retryStrategy: soon, enableAutoPipelining: true })),
  'ioredis 5 with automatic pipelines': (port) =>
    ioredis(new Ioredis5({ port, retryStrategy: soon, enableAutoPipelining: true })),
  'node-redis 6': (port) => nodeRedis(createClient6({ socket: { port, reconnectStrategy: soon } })),
  'node-redis 5': (port) => nodeRedis(createClient5({ socket: { port, reconnectStrategy: soon } })),
}

test.each(Object.keys(clients))(
  '%s: a script that must run at most once is rejected, not sent again, when its reply is lost',
  async (name) => {
    const proxy = await FaultProxy.start(server.port)
    const { redis, close } = await clients[name]!(proxy.port)
    try {
      for (const options of [{ atMostOnce: true }, { atMostOnce: true, asBytes: true }]) {
        const key = `${name} ${options.asBytes}`
        expect(await loseReply(redis, proxy, server, key, options)).toEqual({ outcome: 'rejected', runs: 1 })
      }
    } finally {
      close()
      await proxy.close()
    }
  },
)

test('without it, ioredis sends the script again', async () => {
  const proxy = await FaultProxy.start(server.port)
  const { redis, close } = await clients['ioredis 6']!(proxy.port)
  try {
    expect(await loseReply(redis, proxy, server, 'again', { atMostOnce: false })).toEqual({ outcome: 3, runs: 2 })
  } finally {
    close()
    await proxy.close()
  }
})

test('ioredis on a cluster, which retries on any node: the same', async () => {
  const cluster = await startCluster()
  const proxies = await Promise.all(cluster.nodes.map((node) => FaultProxy.start(node.port)))
  const host = '127.0.0.1'
  const natMap = Object.fromEntries(
    cluster.nodes.map((node, index) => [`${host}:${node.port}`, { host, port: proxies[index]!.port }]),
  )
  try {
    for (const Cluster of [IoredisCluster6, IoredisCluster5]) {
      for (const atMostOnce of [true, false]) {
        const options = { natMap, clusterRetryStrategy: soon, retryDelayOnFailover: 1 }
        const { redis, close } = ioredis(new Cluster([{ host, port: proxies[0]!.port }], options))
        const key = 'charged'
        const answers = await Promise.all(cluster.nodes.map((node) => node.cli('DEL', key)))
        const owner = answers.findIndex((answer) => !answer.includes('MOVED'))
        const lost = await loseReply(redis, proxies[owner]!, cluster.nodes[owner]!, key, { atMostOnce })
        expect(lost).toEqual(atMostOnce ? { outcome: 'rejected', runs: 1 } : { outcome: 3, runs: 2 })
        close()
      }
    }
  } finally {
    for (const proxy of proxies) await proxy.close()
    await cluster.stop()
  }
})
