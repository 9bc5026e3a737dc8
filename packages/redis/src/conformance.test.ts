import { keySlot } from '@firebreak/core/commands'
import {
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startRedis,
  startSentinel,
  waitFor,
} from '@firebreak/testkit'
import { Redis as Ioredis6, Cluster as IoredisCluster6 } from 'ioredis'
import { Redis as Ioredis5, Cluster as IoredisCluster5 } from 'ioredis5'
import { Redis as Iovalkey, Cluster as IovalkeyCluster } from 'iovalkey'
import {
  createClient as createClient6,
  createCluster as createCluster6,
  createSentinel as createSentinel6,
  RESP_TYPES,
} from 'redis'
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { IoredisLike } from './adapters/ioredis.ts'
import type { NodeRedisLike } from './adapters/node-redis.ts'
import { toRedis } from './adapters/to-redis.ts'
import { publishCommand } from './publish-command.ts'
import type { Redis, RedisTopology } from './redis.ts'
import { defineScript } from './script/redis-script.ts'

/** The servers of one topology, and how to open each client on them. */
interface Arrangement {
  /** The servers that clients talk to (without Sentinels). */
  readonly servers: readonly RedisServer[]
  readonly open: Record<string, () => Promise<Opened>>
  stop(): Promise<void>
}

interface Opened {
  readonly redis: Redis
  close(): void
}

interface Connectable {
  connect(): Promise<unknown>
  destroy(): void
  on(event: string, listener: () => void): unknown
}

async function connected(client: Connectable & NodeRedisLike): Promise<Opened> {
  client.on('error', () => {})
  await client.connect()
  return { redis: toRedis(client), close: () => client.destroy() }
}

async function opened(client: IoredisLike): Promise<Opened> {
  return { redis: toRedis(client), close: () => client.disconnect() }
}

/** Clients that give the application numbers as text and text as bytes. */
const mapped = ', replies mapped'
const commandOptions = { typeMapping: { [RESP_TYPES.NUMBER]: String, [RESP_TYPES.BLOB_STRING]: Buffer } }

async function standalone(): Promise<Arrangement> {
  const server = await startRedis()
  return {
    servers: [server],
    open: {
      'ioredis 6': () => opened(new Ioredis6(server.port)),
      'ioredis 5': () => opened(new Ioredis5(server.port)),
      iovalkey: () => opened(new Iovalkey(server.port)),
      'node-redis 6': () => connected(createClient6({ url: server.url })),
      'node-redis 5': () => connected(createClient5({ url: server.url })),
      [`ioredis 6${mapped}`]: () => opened(new Ioredis6(server.port, { stringNumbers: true })),
      [`ioredis 5${mapped}`]: () => opened(new Ioredis5(server.port, { stringNumbers: true })),
      [`iovalkey${mapped}`]: () => opened(new Iovalkey(server.port, { stringNumbers: true })),
      [`node-redis 6${mapped}`]: () => connected(createClient6({ url: server.url, commandOptions })),
      [`node-redis 5${mapped}`]: () => connected(createClient5({ url: server.url, commandOptions })),
    },
    stop: () => server.stop(),
  }
}

function clusterClients(started: RedisCluster): Arrangement['open'] {
  const addresses = [...started.addresses]
  const rootNodes = addresses.map((socket) => ({ socket }))
  return {
    'ioredis 6': () => opened(new IoredisCluster6(addresses)),
    'ioredis 5': () => opened(new IoredisCluster5(addresses)),
    iovalkey: () => opened(new IovalkeyCluster(addresses)),
    'node-redis 6': () => connected(createCluster6({ rootNodes })),
    'node-redis 5': () => connected(createCluster5({ rootNodes })),
    [`ioredis 6${mapped}`]: () => opened(new IoredisCluster6(addresses, { redisOptions: { stringNumbers: true } })),
    [`ioredis 5${mapped}`]: () => opened(new IoredisCluster5(addresses, { redisOptions: { stringNumbers: true } })),
    [`iovalkey${mapped}`]: () => opened(new IovalkeyCluster(addresses, { redisOptions: { stringNumbers: true } })),
    [`node-redis 6${mapped}`]: () => connected(createCluster6({ rootNodes, commandOptions })),
    [`node-redis 5${mapped}`]: () => connected(createCluster5({ rootNodes, commandOptions })),
  }
}

async function cluster(): Promise<Arrangement> {
  const started = await startCluster()
  return { servers: started.nodes, open: clusterClients(started), stop: () => started.stop() }
}

function sentinelClients(started: RedisSentinel): Arrangement['open'] {
  const sentinels = [...started.sentinels]
  const options = { name: started.name, sentinelRootNodes: sentinels }
  return {
    'ioredis 6': () => opened(new Ioredis6({ sentinels, name: started.name })),
    'ioredis 5': () => opened(new Ioredis5({ sentinels, name: started.name })),
    iovalkey: () => opened(new Iovalkey({ sentinels, name: started.name })),
    'node-redis 6': () => connected(createSentinel6(options)),
    'node-redis 5': () => connected(createSentinel5(options)),
    [`ioredis 6${mapped}`]: () => opened(new Ioredis6({ sentinels, name: started.name, stringNumbers: true })),
    [`ioredis 5${mapped}`]: () => opened(new Ioredis5({ sentinels, name: started.name, stringNumbers: true })),
    [`iovalkey${mapped}`]: () => opened(new Iovalkey({ sentinels, name: started.name, stringNumbers: true })),
    [`node-redis 6${mapped}`]: () => connected(createSentinel6({ ...options, commandOptions })),
    [`node-redis 5${mapped}`]: () => connected(createSentinel5({ ...options, commandOptions })),
  }
}

async function sentinel(): Promise<Arrangement> {
  const started = await startSentinel()
  return { servers: started.servers, open: sentinelClients(started), stop: () => started.stop() }
}

const arrangements: Record<RedisTopology, () => Promise<Arrangement>> = { standalone, cluster, sentinel }
const clientNames = ['ioredis 6', 'ioredis 5', 'iovalkey', 'node-redis 6', 'node-redis 5']

describe.each(Object.keys(arrangements) as RedisTopology[])('%s', (topology) => {
  let arrangement: Arrangement
  beforeAll(async () => {
    arrangement = await arrangements[topology]()
  })
  afterAll(() => arrangement.stop())

  test.each(clientNames)('%s whose replies are mapped answers in the same types', async (name) => {
    const { redis, close } = await arrangement.open[name + mapped]!()
    const key = `mapped ${name}`
    expect(await redis.send(['SET', key, 12])).toBe('OK')
    expect(await redis.send(['GET', key])).toBe('12')
    expect(await redis.send(['GET', key], { asBytes: true })).toEqual(Buffer.from('12'))
    expect(await redis.send(['INCR', key])).toBe(13)
    expect(await redis.send(['EXISTS', `no ${key}`])).toBe(0)
    expect(await redis.send(['GET', `no ${key}`])).toBe(null)
    const script = defineScript('types', `return {7, KEYS[1], {ARGV[1], false, '8', redis.status_reply('FINE')}}`)
    expect(await redis.run(script, [key], ['9'])).toEqual([7, key, ['9', null, '8', 'FINE']])
    const bytes = [7, Buffer.from(key), [Buffer.from('9'), null, Buffer.from('8'), expect.anything()]]
    for (const atMostOnce of [true, false]) {
      expect(await redis.run(script, [key], ['9'], { asBytes: true, atMostOnce })).toEqual(bytes)
    }
    for (const master of await redis.masters()) expect(await master.send(['DBSIZE'])).toEqual(expect.any(Number))
    await expect(redis.send(['LPUSH', key, 'x'])).rejects.toThrow(/^WRONGTYPE /)
    close()
  })

  describe.each(clientNames)('%s', (name) => {
    let client: Opened
    let redis: Redis
    beforeAll(async () => {
      client = await arrangement.open[name]!()
      redis = client.redis
    })
    afterAll(() => client.close())

    const publish = async (channel: string, message: string) =>
      redis.send([await publishCommand(redis), channel, message])

    /** Kills the connections of a kind on every server, as an administrator or a crash does. */
    const kill = (type: 'pubsub' | 'normal') =>
      Promise.all(arrangement.servers.map((server) => server.cli('CLIENT', 'KILL', 'TYPE', type)))

    /** Channels on every node of the cluster. */
    const channels = Array.from({ length: 12 }, (_, index) => `channel ${index} ${name}`)

    test('knows its topology', () => {
      expect(redis.topology).toBe(topology)
    })

    test('sends text and bytes, and returns whichever was asked for', async () => {
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
      for (const master of await redis.masters()) await master.send(['SCRIPT', 'FLUSH'])
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => redis.run(script, [`a ${index % 7}`], [index])),
      )
      expect(answers.map((answer) => (answer as number[])[1])).toEqual(
        Array.from({ length: 50 }, (_, index) => index * 2),
      )
    })

    test('sends a command without a key to the node of the given key', async () => {
      for (const key of ['a', 'b', 'c', 'd', 'e']) {
        const port = await redis.send(['CONFIG', 'GET', 'port'], { key })
        const owner = await ownerOf(arrangement, topology, key)
        expect(JSON.stringify(port)).toContain(`"${owner}"`)
      }
    })

    test('masters returns all masters and nothing else', async () => {
      const masters = await redis.masters()
      expect(masters).toHaveLength(topology === 'cluster' ? arrangement.servers.length : 1)
      for (const master of masters) expect(await master.send(['PING'])).toBe('PONG')
    })

    test('a subscriber hears each channel once its subscription is confirmed, until it unsubscribes', async () => {
      const subscriber = await redis.subscriber()
      const heard: string[] = []
      await Promise.all(
        channels.map((channel) => subscriber.subscribe(channel, (message) => heard.push(`${channel} ${message}`))),
      )
      await Promise.all(channels.map((channel) => publish(channel, 'one')))
      await expect.poll(() => heard.length).toBe(channels.length)
      expect([...heard].sort()).toEqual(channels.map((channel) => `${channel} one`).sort())
      await subscriber.unsubscribe(channels[0]!)
      await publish(channels[0]!, 'two')
      await publish(channels[1]!, 'two')
      await expect.poll(() => heard.length).toBe(channels.length + 1)
      expect(heard.at(-1)).toBe(`${channels[1]} two`)
      await subscriber.subscribe(channels[0]!, (message) => heard.push(`again ${message}`))
      await publish(channels[0]!, 'three')
      await expect.poll(() => heard.at(-1)).toBe('again three')
      await subscriber.close()
      await expect(subscriber.subscribe('late', () => {})).rejects.toMatchObject({ code: 'FB_SUBSCRIBER_CLOSED' })
    })

    test('a subscriber whose connections are killed reports when all its subscriptions are back', async () => {
      const subscriber = await redis.subscriber()
      const heard = new Set<string>()
      for (const channel of channels) await subscriber.subscribe(channel, () => heard.add(channel))
      for (let round = 0; round < 2; round++) {
        heard.clear()
        const nodes = new Set(channels.map((channel) => (topology === 'cluster' ? ownerIndex(channel) : 0))).size
        let reconnects = 0
        const stop = subscriber.onReconnect(() => reconnects++)
        await kill('pubsub')
        // On a cluster each node's connection reconnects on its own.
        await waitFor(() => reconnects >= nodes, { what: () => `${nodes} reconnects; there were ${reconnects}` })
        await Promise.all(channels.map((channel) => publish(channel, 'again')))
        await waitFor(() => heard.size === channels.length, {
          what: () => `all channels; only heard ${[...heard]}`,
        })
        stop()
      }
      await subscriber.close()
    })

    test('reports when a connection is back after it was killed', async () => {
      await redis.send(['SET', `k ${name}`, 12])
      let wasTold = false
      const stop = redis.onReconnect(() => {
        wasTold = true
      })
      // With a command in flight: a client that hides its connections notices in no other way.
      const blocked = redis.send(['BLPOP', `nothing ${name}`, 0.2]).catch(() => {})
      await kill('normal')
      await blocked
      await waitFor(async () => (await redis.send(['GET', `k ${name}`]).catch(() => undefined)) === '12')
      // This client repeats the command silently; it only reports changes of the topology (see below).
      const isSilent = topology === 'sentinel' && name === 'node-redis 6'
      await waitFor(() => wasTold || isSilent, { what: 'to be told' })
      stop()
    })
  })
})

/** Three masters share the slots in equal parts, in order. */
function ownerIndex(key: string): number {
  return Math.min(2, Math.floor(keySlot(key) / (16384 / 3)))
}

async function ownerOf(arrangement: Arrangement, topology: RedisTopology, key: string): Promise<number> {
  if (topology !== 'cluster') {
    for (const server of arrangement.servers) {
      if ((await server.cli('ROLE')).startsWith('master')) return server.port
    }
    throw new Error('no master')
  }
  for (const server of arrangement.servers) {
    const answer = await server.cli('EXISTS', key)
    if (!answer.includes('MOVED')) return server.port
  }
  throw new Error(`nobody has the slot of ${key}`)
}

test('after a failover by Sentinel every client subscribes at the new master and reports it', async () => {
  const started = await startSentinel()
  const arrangement = sentinelClients(started)
  const clients = await Promise.all(clientNames.map((name) => arrangement[name]!()))
  const heard: string[][] = clients.map(() => [])
  const told = clients.map(() => 0)
  const subscribers = await Promise.all(clients.map(({ redis }) => redis.subscriber()))
  for (const [index, subscriber] of subscribers.entries()) {
    await subscriber.subscribe('news', (message) => heard[index]!.push(message))
    subscriber.onReconnect(() => told[index]!++)
    clients[index]!.redis.onReconnect(() => told[index]!++)
  }
  await started.failover()
  await waitFor(() => told.every((count) => count >= 1), { timeoutMs: 30_000, what: () => `all to be told: ${told}` })
  const port = await started.masterPort()
  const master = started.servers.find((server) => server.port === port)!
  await waitFor(
    async () => {
      await master.cli('PUBLISH', 'news', 'after')
      return heard.every((messages) => messages.includes('after'))
    },
    { timeoutMs: 30_000, everyMs: 100, what: () => `all to hear: ${JSON.stringify(heard)}` },
  )
  for (const { redis, close } of clients) {
    await waitFor(async () => (await redis.send(['SET', 'k', 'v']).catch(() => undefined)) === 'OK')
    close()
  }
  await Promise.all(subscribers.map((subscriber) => subscriber.close()))
  await started.stop()
})

test('a channel whose slot moves to another node is followed there', async () => {
  const started = await startCluster()
  const clients = clusterClients(started)
  const channel = 'news'
  const slot = String(keySlot(channel))
  for (const name of clientNames) {
    const { redis, close } = await clients[name]!()
    await redis.send(['GET', channel])
    const subscriber = await redis.subscriber()
    const heard: string[] = []
    await subscriber.subscribe(channel, (message) => heard.push(message))
    const back = new Promise<void>((resolve) => subscriber.onReconnect(resolve))
    const ids = await Promise.all(started.nodes.map((node) => node.cli('CLUSTER', 'MYID')))
    const shares = await Promise.all(started.nodes.map((node) => node.cli('EXISTS', channel)))
    const from = shares.findIndex((answer) => !answer.includes('MOVED'))
    const to = (from + 1) % started.nodes.length
    // An importing owner takes a new epoch, so gossip of the old owner that is still in flight cannot take the slot back.
    await started.nodes[to]!.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[from]!)
    // The new owner is told first, so that the slot always has an owner.
    for (const index of [to, from, (to + 1) % started.nodes.length]) {
      await started.nodes[index]!.cli('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to]!)
    }
    // A command sent to the old owner gives the client the new map.
    await waitFor(async () => (await redis.send(['GET', channel]).catch(() => undefined)) === null)
    await back
    await waitFor(
      async () => {
        await redis.send([await publishCommand(redis), channel, name]).catch(() => {})
        return heard.includes(name)
      },
      { everyMs: 50, what: `${name} to hear on the new node` },
    )
    await subscriber.close()
    close()
  }
  await started.stop()
})

test('anything that is not a client is refused by name', () => {
  expect(() => toRedis({} as never)).toThrow(/not a Redis client that Firebreak knows/)
})
