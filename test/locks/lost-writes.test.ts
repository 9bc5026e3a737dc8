import { copyFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { Locks, type LocksOptions } from '@firebreak/locks'
import { type RedisClient, type SendOptions, toRedis } from '@firebreak/redis'
import { isFullRun, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, test } from 'vitest'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function server(args: readonly string[] = []): Promise<RedisServer> {
  const started = await startRedis({ args })
  ends.push(() => started.stop())
  return started
}

/** An address that always leads to the current master, like a virtual IP or a DNS name. */
class MasterAddress {
  readonly #links = new Set<Socket>()
  readonly #server: Server
  #target: number

  private constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => {
      const upstream = connect(this.#target, '127.0.0.1')
      for (const socket of [client, upstream]) {
        this.#links.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          client.destroy()
          upstream.destroy()
          this.#links.delete(socket)
        })
      }
      client.pipe(upstream).pipe(client)
    })
  }

  static async of(target: number): Promise<MasterAddress> {
    const address = new MasterAddress(target)
    await new Promise<void>((resolve) => address.#server.listen(0, '127.0.0.1', resolve))
    ends.push(() => address.close())
    return address
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  moveTo(target: number): void {
    this.#target = target
    for (const socket of this.#links) socket.destroy()
  }

  close(): void {
    for (const socket of this.#links) socket.destroy()
    this.#server.close()
  }
}

/** Locks over either client library, which reconnect at once. */
const libraries: Record<string, (port: number, options?: LocksOptions) => Promise<Locks>> = {
  ioredis: async (port, options) => {
    const client = new Ioredis({ port, retryStrategy: () => 5, maxRetriesPerRequest: null })
    client.on('error', () => {})
    const locks = new Locks(client, options)
    ends.push(() => locks.close().finally(() => client.disconnect()))
    return locks
  },
  'node-redis': async (port, options) => {
    const client = createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: () => 5 } })
    client.on('error', () => {})
    await client.connect()
    const locks = new Locks(client, options)
    ends.push(() => locks.close().finally(() => client.destroy()))
    return locks
  },
}

const name = 'order 42'
const takes: Record<string, (locks: Locks) => Promise<number>> = {
  lock: (locks) => locks.withLock(name, ({ token }) => token),
  fair: (locks) => locks.getFairLock(name).withLock(({ token }) => token),
  write: (locks) => locks.getReadWriteLock(name).write.withLock(({ token }) => token),
  read: (locks) => locks.getReadWriteLock(name).read.withLock(({ token }) => token),
  permit: (locks) => locks.getSemaphore(name, 1).withPermit(({ token }) => token),
}

/** Counters expire after a second; on a slow machine that would happen here, and then nothing could go back. */
async function keepCounters(redis: RedisServer): Promise<void> {
  const keys = (await redis.cli('KEYS', 'firebreak_*_token:*')).split('\n')
  expect(keys[0]).not.toBe('')
  for (const key of keys) await redis.cli('PERSIST', key)
}

async function many(take: () => Promise<number>, count: number): Promise<number> {
  let last = 0
  for (let index = 0; index < count; index++) {
    const token = await take()
    expect(token).toBeGreaterThan(last)
    last = token
  }
  return last
}

describe.each(Object.keys(libraries))('over %s', (library) => {
  // A quick run takes every kind over one library, and every library once.
  const kinds = Object.keys(takes).filter(
    (_, index) => isFullRun || index === 0 || library === Object.keys(libraries)[0],
  )
  test.each(kinds)('tokens of a %s keep growing across a promotion that loses the last writes', async (kind) => {
    const [master, replica] = [await server(), await server()]
    const address = await MasterAddress.of(master.port)
    const locks = await libraries[library]!(address.port)
    const take = () => takes[kind]!(locks)
    await replica.cli('REPLICAOF', '127.0.0.1', String(master.port))
    await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
      what: () => 'the replica to be in step',
    })
    // The counter is in the replica; later writes, after it is cut off, are not.
    await many(take, 20)
    await keepCounters(master)
    await master.cli('WAIT', '1', '1000')
    await replica.cli('REPLICAOF', 'NO', 'ONE')
    const issued = await many(take, 50)
    address.moveTo(replica.port)
    expect(await many(take, 20)).toBeGreaterThan(issued)
  })

  test('a process that was behind another does not go back either: each starts above everything issued', async () => {
    const [master, replica] = [await server(), await server()]
    const address = await MasterAddress.of(master.port)
    const fleet = await Promise.all([0, 1, 2].map(() => libraries[library]!(address.port)))
    await replica.cli('REPLICAOF', '127.0.0.1', String(master.port))
    await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
      what: () => 'the replica to be in step',
    })
    let turn = 0
    const take = () => takes['lock']!(fleet[turn++ % 3]!)
    await many(take, 9)
    await keepCounters(master)
    await master.cli('WAIT', '1', '1000')
    await replica.cli('REPLICAOF', 'NO', 'ONE')
    const issued = await many(take, 60)
    address.moveTo(replica.port)
    expect(await many(take, 12)).toBeGreaterThan(issued)
  })

  test('a call that waits for the new connection gets a token above what was lost', async () => {
    const [master, replica] = [await server(), await server()]
    const address = await MasterAddress.of(master.port)
    const locks = await libraries[library]!(address.port)
    const take = () => takes['lock']!(locks)
    await replica.cli('REPLICAOF', '127.0.0.1', String(master.port))
    await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'), {
      what: () => 'the replica to be in step',
    })
    await many(take, 20)
    await keepCounters(master)
    await master.cli('WAIT', '1', '1000')
    await replica.cli('REPLICAOF', 'NO', 'ONE')
    const issued = await many(take, 50)
    address.moveTo(replica.port)
    // Made before anybody knows that the connection is gone, and sent, or sent again, over the next one.
    const queued = await Promise.all(Array.from({ length: 5 }, take))
    for (const token of queued) expect(token).toBeGreaterThan(issued)
    expect(new Set(queued).size).toBe(5)
  })
})

describe('a restart', () => {
  const starts: Record<string, { args: string[]; save(server: RedisServer): Promise<void>; restart: string[] }> = {
    'from an older RDB file': {
      args: [],
      save: async (redis) => void (await redis.cli('SAVE')),
      restart: [],
    },
    'from an append-only file that misses the last second': {
      args: ['--appendonly', 'yes', '--appendfsync', 'no', '--aof-use-rdb-preamble', 'no'],
      save: async () => {},
      restart: ['--appendonly', 'yes', '--aof-load-truncated', 'yes'],
    },
  }
  test.each(Object.entries(starts))('%s: tokens grow', async (_, { args, save, restart }) => {
    const redis = await startRedis({ args })
    let running = redis
    ends.push(() => running.stop())
    const locks = await libraries['ioredis']!(redis.port)
    const take = () => takes['lock']!(locks)
    await many(take, 20)
    await keepCounters(redis)
    await save(redis)
    const appended = join(redis.folder, 'appendonlydir', 'appendonly.aof.1.incr.aof')
    const isAppended = args.length > 0
    if (isAppended) copyFileSync(appended, `${appended}.older`)
    const issued = await many(take, 50)
    redis.child.signal('SIGKILL')
    await redis.child.exited
    if (isAppended) copyFileSync(`${appended}.older`, appended)
    running = await redis.restart(restart)
    // The earlier counter must still exist, or this would show nothing.
    expect(await running.cli('EXISTS', `firebreak_lock_token:{${name}}`)).toBe('1')
    expect(await many(take, 20)).toBeGreaterThan(issued)
  })
})

test('the keys that a lock name leaves behind expire after tokenMemoryMs, an hour by default', async () => {
  const redis = await server()
  const ttlsOf = async (options: LocksOptions) => {
    const locks = await libraries['ioredis']!(redis.port, options)
    for (const take of Object.values(takes)) await take(locks)
    const keys = (await redis.cli('KEYS', '*')).split('\n')
    return Promise.all(keys.map(async (key) => Number(await redis.cli('PTTL', key))))
  }
  const usual = await ttlsOf({})
  expect(usual.length).toBeGreaterThan(3)
  for (const ttl of usual) {
    expect(ttl).toBeGreaterThan(0)
    expect(ttl).toBeLessThanOrEqual(3_600_000)
  }
  await redis.cli('FLUSHALL')
  for (const ttl of await ttlsOf({ tokenMemoryMs: 5000 })) expect(ttl).toBeLessThanOrEqual(5000)
})

test('waiting for the append-only file is refused by a server that cannot do it, and the lock is given back', async () => {
  const redis = await server()
  const locks = await libraries['ioredis']!(redis.port, { fsync: {} })
  await expect(locks.getLock(name).lock()).rejects.toThrow(/WAITAOF/i)
  expect(await redis.cli('EXISTS', name)).toBe('0')
})

/** A client whose WAITAOF gets `answer`, whatever the server would say. */
function writing(redis: RedisServer, answer: () => readonly [number, number]): RedisClient {
  const client = new Ioredis(redis.port)
  ends.push(() => client.disconnect())
  const inner = toRedis(client)
  return new Proxy(inner, {
    get(target, property) {
      if (property === 'send') {
        return (args: readonly [string, ...string[]], options?: SendOptions) =>
          args[0] === 'WAITAOF' ? Promise.resolve(answer()) : target.send(args, options)
      }
      const value: unknown = Reflect.get(target, property)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

test('a lock is held and handed over only once it is in the append-only file, and given back otherwise', async () => {
  const redis = await server()
  let written: readonly [number, number] = [1, 0]
  let asked = 0
  const client = writing(redis, () => {
    asked++
    return written
  })
  const locks = new Locks(client, { fsync: { timeoutMs: 500 } })
  ends.push(() => locks.close())
  const held = await locks.getLock(name).lock()
  const next = locks.getLock(name).lock()
  await waitFor(() => locks.snapshot().waitingCount === 1)
  await held.unlock()
  const second = await next
  expect(asked).toBe(2)
  const third = locks.getLock(name).lock()
  await waitFor(() => locks.snapshot().waitingCount === 1)
  written = [0, 0]
  const refused = expect(third).rejects.toMatchObject({ code: 'FB_LOCK_NOT_REPLICATED' })
  await second.unlock()
  await refused
  expect(await redis.cli('EXISTS', name)).toBe('0')
})
