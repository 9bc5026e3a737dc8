import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { defaultLocalCache, keyText } from '@firebreak/core'
import {
  type RedisServer,
  redisCli,
  startCluster,
  startRedis,
  startSentinel,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AnyClient, libraries, type Place } from './libraries.ts'

/** The servers of one topology. */
interface Arrangement {
  readonly place: Place
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

const arrangements: Record<string, () => Promise<Arrangement>> = {
  async standalone() {
    const server = await startRedis()
    return { place: { kind: 'standalone', port: server.port }, servers: [server], stop: () => server.stop() }
  },
  async cluster() {
    const { nodes, addresses, stop } = await startCluster()
    return { place: { kind: 'cluster', addresses }, servers: nodes, stop }
  },
  async sentinel() {
    const { name, sentinels, servers, stop } = await startSentinel({ sentinels: 1, replicas: 1 })
    return { place: { kind: 'sentinel', name, sentinels }, servers, stop }
  },
}

/** One key of each type under a prefix, and the commands that make it. */
const makers: Readonly<Record<string, readonly string[]>> = {
  string: ['SET', 'hello'],
  hash: ['HSET', 'f', 'v', 'g', 'žluť'],
  list: ['RPUSH', 'a', 'b', 'c'],
  set: ['SADD', 'a'],
  zset: ['ZADD', '1.5', 'a', '2', 'b'],
  stream: ['XADD', '1-1', 'f', 'v'],
  bitmap: ['SETBIT', '7', '1'],
  log: ['PFADD', 'a', 'b'],
  geo: ['GEOADD', '13.361389', '38.115556', 'a', '15.087269', '37.502669', 'b'],
}
const readsOf: Readonly<Record<string, readonly string[]>> = {
  string: ['GET', 'STRLEN', 'GETRANGE'],
  hash: ['HGETALL', 'HGET', 'HMGET'],
  list: ['LRANGE', 'LINDEX'],
  set: ['SMEMBERS', 'SISMEMBER'],
  zset: ['ZSCORE', 'ZRANGE'],
  stream: ['XRANGE', 'XLEN'],
  bitmap: ['BITCOUNT', 'GETBIT'],
  log: ['PFCOUNT'],
  geo: ['GEOPOS', 'GEODIST'],
}
// XADD's id and SETBIT's offset stand behind the key like all else.
const make = (type: string, key: string) => {
  const [name, ...args] = makers[type]!
  return [name!, key, ...args]
}

/** What a call came to: the reply, or the error as the application sees it. */
async function outcome(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return { reply: await call() }
  } catch (error) {
    const { name, message } = error as Error
    return { error: name, message }
  }
}

let hub: TestHub
beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.kill())

describe.each(Object.keys(arrangements))('%s', (topology) => {
  let arrangement: Arrangement
  beforeAll(async () => {
    arrangement = await arrangements[topology]!()
  })
  afterAll(() => arrangement.stop())

  describe.each(Object.keys(libraries))('%s', (library) => {
    const redisClusterId = `${topology} ${library}`
    let bare: AnyClient
    let guarded: AnyClient
    const named = (name: string) => `${redisClusterId}:${name}`

    beforeAll(async () => {
      const open = libraries[library]!
      bare = await open(arrangement.place)
      guarded = await open(arrangement.place)
      // Before it is protected: of a cluster and a sentinel the connections are known then, and later ones come too.
      await guarded.set(named('warm'), '1')
      protect(guarded.raw, {
        hubs: [hub.url],
        serviceId: 'shop',
        redisClusterId,
        tableFile: false,
        // Longer than a busy machine stands still: a lease that lapses would be a second read.
        leaseMs: 10_000,
        onWarning() {},
      })
      await waitFor(() => shieldOf(guarded.raw)?.isConnected, { what: 'the hub link' })
    })
    afterAll(() => {
      unprotect(guarded.raw)
      guarded.close()
      bare.close()
    })

    /** How often the servers ran a command. */
    async function calls(command: string): Promise<number> {
      let sum = 0
      for (const { port } of arrangement.servers) {
        const info = await redisCli(port, 'INFO', 'commandstats')
        sum += Number(info.match(new RegExp(`cmdstat_${command.toLowerCase()}:calls=(\\d+)`))?.[1] ?? 0)
      }
      return sum
    }

    /** Waits until `read` reaches no server. */
    async function isServed(command: string, read: () => Promise<unknown>): Promise<void> {
      await waitFor(
        async () => {
          await read()
          const before = await calls(command)
          await read()
          return (await calls(command)) === before
        },
        { what: `${command} to be answered from memory` },
      )
    }

    async function makeHot(name: string, value: string): Promise<string> {
      const key = named(name)
      await bare.set(key, value)
      hub.heat(redisClusterId, [key])
      await waitFor(async () => (await guarded.get(key)) === value && peek(guarded.raw, key) === value, {
        what: 'a hot key to be in memory',
      })
      return key
    }

    test('a hot key is answered from memory, and a write by a bare client is seen', async () => {
      const key = await makeHot('memory', 'v0')
      const before = await calls('get')
      const values = await Promise.all(Array.from({ length: 300 }, () => guarded.get(key)))
      expect(new Set(values)).toEqual(new Set(['v0']))
      expect(await guarded.getBuffer(key)).toEqual(Buffer.from('v0'))
      expect(await guarded.call(['GET', key])).toEqual(await bare.call(['GET', key]))
      expect((await calls('get')) - before).toBe(1)
      for (let version = 1; version <= 5; version++) {
        await bare.set(key, `v${version}`)
        await waitFor(async () => (await guarded.get(key)) === `v${version}`, { everyMs: 1 })
      }
    })

    test.each(Object.keys(makers))('reads of a %s come from memory just as a bare client gives them', async (type) => {
      const key = named(type)
      await bare.call(make(type, key))
      hub.heat(redisClusterId, [key])
      for (const command of readsOf[type]!) {
        const expected = await outcome(() => bare.reads[command]!(key))
        await isServed(command, () => guarded.reads[command]!(key))
        const own = await outcome(() => guarded.reads[command]!(key))
        expect(own).toStrictEqual(expected)
      }
    })

    test('own writes are read back, waited for or not', async () => {
      const key = await makeHot('own', 'v')
      for (let version = 0; version < 50; version++) {
        await guarded.set(key, `a${version}`)
        expect(await guarded.get(key)).toBe(`a${version}`)
        const write = guarded.set(key, `b${version}`)
        expect(await guarded.get(key)).toBe(`b${version}`)
        await write
      }
    })

    test('transactions and pipelines keep their order and their replies', async () => {
      const key = await makeHot('order', 'first')
      const commands = [
        ['GET', key],
        ['SET', key, 'second'],
        ['GET', key],
        ['STRLEN', key],
      ]
      for (const way of ['pipeline', 'multi'] as const) {
        await bare.set(key, 'first')
        const expected = await bare[way](commands)
        await bare.set(key, 'first')
        await waitFor(async () => (await guarded.get(key)) === 'first')
        expect(await guarded[way](commands)).toStrictEqual(expected)
        expect(await guarded.get(key)).toBe('second')
      }
    })

    test('a key that is deleted or changes its type while hot gives what Redis gives, errors included', async () => {
      const key = await makeHot('changing', 'text')
      const wrong = () => outcome(() => guarded.reads['HGETALL']!(key))
      const refusal = await outcome(() => bare.reads['HGETALL']!(key))
      expect(refusal).toMatchObject({ message: expect.stringContaining('WRONGTYPE') })
      expect(await wrong()).toStrictEqual(refusal)
      await bare.call(['DEL', key])
      await waitFor(async () => (await guarded.get(key)) === null)
      await isServed('get', () => guarded.get(key))
      expect(peek(guarded.raw, key)).toBeNull()
      await bare.call(['RPUSH', key, 'item'])
      const listRefusal = await outcome(() => bare.get(key))
      await waitFor(async () => 'error' in ((await outcome(() => guarded.get(key))) as object))
      expect(await outcome(() => guarded.get(key))).toStrictEqual(listRefusal)
      await bare.set(key, 'text again')
      await waitFor(async () => (await guarded.get(key).catch(() => '')) === 'text again')
    })

    test('a value larger than the cache is read from Redis and not kept', async () => {
      const key = named('large')
      const value = 'x'.repeat(10_000)
      await bare.set(key, value)
      hub.heat(redisClusterId, [key], { strategy: { ...defaultLocalCache, maxBytes: 5000 } })
      await waitFor(async () => {
        expect(await guarded.get(key)).toBe(value)
        const told = hub.statuses.flatMap(({ keys }) => keys)
        return told.some((effect) => effect.key === keyText(key) && effect.redisReads > 0)
      })
      expect(await guarded.get(key)).toBe(value)
      expect(peek(guarded.raw, key)).toBeUndefined()
    })

    test('200 readers at the instant of an invalidation make one read of Redis', async () => {
      const key = await makeHot('crowd', 'old')
      const before = await calls('get')
      await bare.set(key, 'new')
      await waitFor(() => peek(guarded.raw, key) === undefined, { everyMs: 1 })
      const values = await Promise.all(Array.from({ length: 200 }, () => guarded.get(key)))
      expect(new Set(values)).toEqual(new Set(['new']))
      expect((await calls('get')) - before).toBe(1)
    })

    test('accesses are counted under their keys, reads and writes apart', async () => {
      const key = named('counted')
      await guarded.set(key, 'v')
      for (let index = 0; index < 9; index++) await guarded.get(key)
      await waitFor(() => hub.counted(key).count >= 10)
      expect(hub.counted(key)).toMatchObject({ count: 10, writes: 1 })
    })

    test('unprotect gives the bare client back', async () => {
      const other = await libraries[library]!(arrangement.place)
      const before = other.get
      protect(other.raw, { hubs: [hub.url], redisClusterId: `${redisClusterId} other`, tableFile: false })
      expect(await other.get(named('nothing'))).toBeNull()
      unprotect(other.raw)
      expect(other.get).toBe(before)
      expect(peek(other.raw, named('nothing'))).toBeUndefined()
      expect(await other.get(named('nothing'))).toBeNull()
      other.close()
    })
  })
})
