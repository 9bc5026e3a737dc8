import { Locks } from '@firebreak/locks'
import { type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { isFullRun, startCluster, startRedis, startSentinel, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis, Cluster as IoredisCluster } from 'ioredis'
import { createCluster, createSentinel } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

interface Arrangement {
  readonly clients: Record<string, () => Promise<{ client: RedisClient; close(): void }>>
  stop(): Promise<void>
}

async function connected<C extends { on(event: 'error', listener: () => void): unknown; connect(): Promise<unknown> }>(
  client: C & { destroy(): void } & RedisClient,
) {
  client.on('error', () => {})
  await client.connect()
  return { client, close: () => client.destroy() }
}

async function cluster(): Promise<Arrangement> {
  const started = await startCluster()
  return {
    clients: {
      async ioredis() {
        const client = new IoredisCluster([...started.addresses])
        return { client, close: () => client.disconnect() }
      },
      'node-redis': () =>
        connected(createCluster({ rootNodes: started.addresses.map((socket) => ({ socket: { ...socket } })) })),
    },
    stop: () => started.stop(),
  }
}

async function sentinel(): Promise<Arrangement> {
  const started = await startSentinel()
  return {
    clients: {
      async ioredis() {
        const client = new Ioredis({ sentinels: [...started.sentinels], name: started.name })
        return { client, close: () => client.disconnect() }
      },
      'node-redis': () => connected(createSentinel({ name: started.name, sentinelRootNodes: [...started.sentinels] })),
    },
    stop: () => started.stop(),
  }
}

describe.each(Object.entries({ cluster, sentinel }))('%s', (topology, start) => {
  let arrangement: Arrangement
  beforeAll(async () => {
    arrangement = await start()
  })
  afterAll(() => arrangement.stop())

  test.each(['ioredis', 'node-redis'])('every kind of lock works and wakes over %s', async (name) => {
    const [here, there] = [await arrangement.clients[name]!(), await arrangement.clients[name]!()]
    const options = { leaseMs: 20_000, replicas: topology === 'sentinel' ? { count: 1, timeoutMs: 2000 } : undefined }
    const [a, b] = [here, there].map(({ client }) =>
      options.replicas === undefined
        ? new Locks(client, { leaseMs: options.leaseMs })
        : new Locks(client, { leaseMs: options.leaseMs, replicas: options.replicas }),
    ) as [Locks, Locks]
    const startedAt = performance.now()

    for (const get of ['getLock', 'getFairLock'] as const) {
      const key = `${get} ${name}`
      const held = await a[get](key).lock()
      expect(await b[get](key).tryLock()).toBe(undefined)
      const waiting = [b[get](key).lock(), a[get](key).lock()]
      await waitFor(() => a.snapshot().waitingCount + b.snapshot().waitingCount === 2)
      await held.unlock()
      const next = await Promise.race(waiting)
      expect(next.token).toBeGreaterThan(held.token)
      await next.unlock()
      for (const handle of await Promise.all(waiting)) await handle.unlock()
    }

    const [readWrite, otherReadWrite] = [a, b].map((locks) => locks.getReadWriteLock(`rw ${name}`))
    const readers = await Promise.all([readWrite!.read.lock(), otherReadWrite!.read.lock()])
    const writing = otherReadWrite!.write.lock()
    await waitFor(() => b.snapshot().waitingCount === 1)
    for (const reader of readers) await reader.unlock()
    await (await writing).unlock()

    const permit = await a.getSemaphore(`permits ${name}`, 1).acquire()
    const wanting = b.getSemaphore(`permits ${name}`, 1).acquire()
    await waitFor(() => b.snapshot().waitingCount === 1)
    await permit.unlock()
    await (await wanting).unlock()

    const latch = a.getCountdownLatch(`latch ${name}`)
    await latch.trySetCount(1)
    const latched = b.getCountdownLatch(`latch ${name}`).wait()
    await latch.countDown()
    expect(await latched).toBe(true)

    const names = Array.from({ length: 6 }, (_, index) => `multi ${index} ${name}`)
    await Promise.all([
      a.getMultiLock(names).withLock(() => {}),
      b.getMultiLock([...names].reverse()).withLock(() => {}),
    ])

    // It was woken: no lease of 20 s has passed.
    expect(performance.now() - startedAt).toBeLessThan(20_000)
    expect(a.metrics().lost).toEqual({ expired: 0, taken: 0 })
    await Promise.all([a.close(), b.close()])
    here.close()
    there.close()
  })
})

test('on a cluster locks are renewed slot by slot, and a name that cannot keep its keys in one slot is refused', async () => {
  const arrangement = await cluster()
  const { client, close } = await arrangement.clients['ioredis']!()
  const locks = new Locks(client, { leaseMs: 6000 })
  const handles = await Promise.all(Array.from({ length: 30 }, (_, index) => locks.getLock(`many ${index}`).lock()))
  await waitFor(() => locks.metrics().renewals >= 60)
  expect(handles.every(({ isHeld }) => isHeld)).toBe(true)
  expect(() => locks.getLock('a}b')).toThrow(/option name/)
  expect((await locks.getLock('{tag} x').lock()).isHeld).toBe(true)
  await locks.close()
  close()
  await arrangement.stop()
})

test('a lock that too few replicas confirmed is given back', async () => {
  const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('master_link_status:up'))
  const client = new Ioredis(master.port)
  const locks = new Locks(client, { replicas: { count: 1, timeoutMs: 5000 } })
  const handle = await locks.getLock('replicated').lock()
  expect(await replica.cli('HEXISTS', 'replicated', handle.owner)).toBe('1')
  await handle.unlock()
  const strict = new Locks(client, { replicas: { count: 2, timeoutMs: 300 } })
  await expect(strict.getLock('too much').lock()).rejects.toMatchObject({
    code: 'FB_LOCK_NOT_REPLICATED',
    acknowledged: 1,
  })
  expect(await toRedis(client).send(['EXISTS', 'too much'])).toBe(0)
  await Promise.all([locks.close(), strict.close()])
  client.disconnect()
  await Promise.all([master.stop(), replica.stop()])
})

// A quick run takes the kind that is handed over within a process, and the one that is handed over in Redis.
const passed = ['lock', 'fair', 'write', 'permit'] as const
test.each(passed.filter((_, index) => isFullRun || index < 2))(
  'a %s that is handed over within a process counts as taken only when a replica has it',
  async (kind) => {
    const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
    await waitFor(async () => (await master.cli('INFO', 'replication')).includes('state=online'))
    const client = new Ioredis(master.port)
    const locks = new Locks(client, { replicas: { count: 1, timeoutMs: 3000 } })
    const lock = {
      lock: () => locks.getLock('passed').lock(),
      write: () => locks.getReadWriteLock('passed').write.lock(),
      fair: () => locks.getFairLock('passed').lock(),
      permit: () => locks.getSemaphore('passed', 1).acquire(),
    }[kind]
    try {
      const first = await lock()
      const second = lock()
      await waitFor(() => locks.snapshot().waitingCount === 1)
      await first.unlock()
      const held = await second
      expect(held.token).toBeGreaterThan(first.token)
      const third = lock()
      await waitFor(() => locks.snapshot().waitingCount === 1)
      replica.child.signal('SIGSTOP')
      const refused = expect(third).rejects.toMatchObject({ code: 'FB_LOCK_NOT_REPLICATED', acknowledged: 0 })
      await held.unlock()
      await refused
    } finally {
      replica.child.signal('SIGCONT')
      await locks.close()
      client.disconnect()
      await Promise.all([master.stop(), replica.stop()])
    }
  },
)

test('if a replica must confirm each lock, no token goes back across a promotion, whatever its clock says', async () => {
  const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  await waitFor(async () => (await master.cli('INFO', 'replication')).includes('state=online'))
  const clients = [new Ioredis(master.port), new Ioredis(replica.port)]
  const [before, after] = clients.map((client) => new Locks(client, { replicas: { count: 1, timeoutMs: 3000 } })) as [
    Locks,
    Locks,
  ]
  // A clock that is an hour ahead: the promoted server's is behind everything issued.
  const counter = 'firebreak_lock_token:{ahead}'
  await before.withLock('ahead', () => {})
  const ahead = Number(await master.cli('GET', counter)) + 3_600_000_000
  await master.cli('SET', counter, String(ahead), 'PX', '3600000')
  let issued = 0
  await Promise.all(
    Array.from({ length: 10 }, () =>
      before.withLock('ahead', ({ token }) => {
        expect(token).toBeGreaterThan(Math.max(issued, ahead))
        issued = token
      }),
    ),
  )
  master.child.signal('SIGKILL')
  await replica.cli('REPLICAOF', 'NO', 'ONE')
  const third = await startRedis({ args: ['--replicaof', '127.0.0.1', String(replica.port)] })
  await waitFor(async () => (await replica.cli('INFO', 'replication')).includes('state=online'))
  expect(await after.withLock('ahead', ({ token }) => token)).toBeGreaterThan(issued)
  await Promise.all([before.close(), after.close()])
  for (const client of clients) client.disconnect()
  await Promise.all([master.stop(), replica.stop(), third.stop()])
})

test('a replica count that comes from another master than the lock is not accepted', async () => {
  const old = await startRedis()
  const promoted = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] })
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(promoted.port)] })
  await waitFor(async () => (await promoted.cli('INFO', 'replication')).includes('state=online'))
  const clients = [new Ioredis(old.port), new Ioredis(promoted.port)] as const
  // Like a cluster client: requests that were unanswered when a master died go to its successor.
  let master = toRedis(clients[0])
  const following: Redis = {
    topology: 'cluster',
    send(args, options) {
      if (args[0] === 'WAIT') master = toRedis(clients[1])
      return master.send(args, options)
    },
    run: (...call) => master.run(...call),
    masters: () => master.masters(),
    subscriber: () => master.subscriber(),
    onReconnect: () => () => {},
  }
  const locks = new Locks(following, { replicas: { count: 1, timeoutMs: 3000 } })
  const handle = await locks.getLock('followed').lock()
  expect(await promoted.cli('HEXISTS', 'followed', handle.owner)).toBe('1')
  expect(await replica.cli('HEXISTS', 'followed', handle.owner)).toBe('1')
  await handle.unlock()
  await locks.close()
  for (const client of clients) client.disconnect()
  await Promise.all([old.stop(), promoted.stop(), replica.stop()])
})
