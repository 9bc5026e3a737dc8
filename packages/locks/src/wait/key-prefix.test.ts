import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LockHandle } from '../lock/lock-handle.ts'
import { Locks } from '../locks.ts'
import { oneRedis } from '../testing/one-redis.ts'

// A client puts its prefix before keys, not before channels.

const redis = oneRedis()
let client: Redis
let holder: Locks
let waiter: Locks
beforeAll(() => {
  client = new Redis({ port: redis.server.port, keyPrefix: 'app:' })
  // No waiter gets a lock in time by looking when the lease ends.
  holder = new Locks(client, { leaseMs: 600_000 })
  waiter = new Locks(client, { leaseMs: 600_000 })
})
afterAll(async () => {
  await Promise.all([holder.close(), waiter.close()])
  client.disconnect()
})

const kinds: Record<string, (locks: Locks, name: string) => Promise<LockHandle>> = {
  lock: (locks, name) => locks.getLock(name).lock(),
  'fair lock': (locks, name) => locks.getFairLock(name).lock(),
  'plain lock after a fair one': (locks, name) =>
    (locks === holder ? locks.getFairLock(name) : locks.getLock(name)).lock(),
  'read lock': (locks, name) => {
    const { read, write } = locks.getReadWriteLock(name)
    return (locks === holder ? write : read).lock()
  },
  'write lock': (locks, name) => {
    const { read, write } = locks.getReadWriteLock(name)
    return (locks === holder ? read : write).lock()
  },
  semaphore: (locks, name) => locks.getSemaphore(name, 1).acquire(),
}

test.each(Object.entries(kinds))('behind a key prefix, the release of a %s wakes its waiter', async (_, take) => {
  const name = redis.freshName()
  const handle = await take(holder, name)
  const waiting = take(waiter, name)
  await waitFor(async () => {
    const channels = (await redis.client.pubsub('CHANNELS', `*${name}*`)) as string[]
    return channels.length === 1
  })
  await handle.unlock()
  await (await waiting).unlock()
})

test('behind a key prefix, a forced release, added permits and a latch wake their waiters', async () => {
  const name = redis.freshName()
  await holder.getLock(name).lock()
  const forced = waiter.getLock(name).lock()
  await waitFor(() => waiter.snapshot().waiting.length === 1)
  await holder.getLock(name).forceUnlock()
  await (await forced).unlock()

  await holder.getSemaphore(`${name} permits`, 1).acquire()
  const permit = waiter.getSemaphore(`${name} permits`, 1).acquire()
  await waitFor(() => waiter.snapshot().waiting.length === 1)
  await holder.getSemaphore(`${name} permits`, 1).addPermits(1)
  await (await permit).unlock()

  const latch = holder.getCountdownLatch(`${name} latch`)
  await latch.trySetCount(1)
  const passed = waiter.getCountdownLatch(latch.name).wait()
  await waitFor(async () => ((await redis.client.pubsub('CHANNELS', `*${name} latch*`)) as string[]).length === 1)
  await latch.countDown()
  expect(await passed).toBe(true)
})
