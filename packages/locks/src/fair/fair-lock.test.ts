import { letTimePass, scale, waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { oneRedis } from '../testing/one-redis.ts'

const redis = oneRedis()
const { open, freshName } = redis

describe('fair lock', () => {
  test('serves 50 waiters of several processes in order of arrival', { timeout: 120_000 }, async () => {
    const clients = [open(), open(), open()]
    for (let repeat = 0; repeat < scale(2, 20); repeat++) {
      const name = freshName()
      const first = await clients[0]!.getFairLock(name).lock()
      const served: number[] = []
      const waiting: Promise<void>[] = []
      for (let index = 0; index < 50; index++) {
        const lock = clients[index % clients.length]!.getFairLock(name)
        waiting.push(
          lock.withLock(() => {
            served.push(index)
          }),
        )
        await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === index + 1)
      }
      await first.unlock()
      await Promise.all(waiting)
      expect(served).toEqual(Array.from({ length: 50 }, (_, index) => index))
      expect(await redis.client.exists(`firebreak_lock_queue:{${name}}`, `firebreak_lock_alive:{${name}}`)).toBe(0)
    }
  })

  test('is handed over directly: a newcomer cannot get in between', async () => {
    const locks = open()
    const name = freshName()
    const lock = locks.getFairLock(name)
    const first = await lock.lock()
    const waiting = lock.lock()
    await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 1)
    const [, newcomer] = await Promise.all([first.unlock(), lock.tryLock()])
    expect(newcomer).toBe(undefined)
    const second = await waiting
    expect(second.token).toBeGreaterThan(first.token)
    await second.unlock()
  })

  test('skips a waiter that was silent for too long on Redis’ clock', async () => {
    const locks = open({ waiterTtlMs: 5000 })
    const name = freshName()
    const lock = locks.getFairLock(name)
    const first = await lock.lock()
    // Two waiters of dead processes: one silent for long, one never heard from.
    await redis.client.rpush(`firebreak_lock_queue:{${name}}`, 'dead-1:1', 'dead-2:1')
    await redis.client.zadd(`firebreak_lock_alive:{${name}}`, Date.now() - 1, 'dead-1:1')
    const waiting = lock.lock()
    await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 3)
    await first.unlock()
    expect((await waiting).isHeld).toBe(true)
  })

  test('continues after a waiter that died with the lock reserved for it, and after a holder that died', async () => {
    const locks = open({ waiterTtlMs: 150 })
    const name = freshName()
    const lock = locks.getFairLock(name)
    const first = await lock.lock()
    await redis.client.rpush(`firebreak_lock_queue:{${name}}`, 'dead:1')
    await redis.client.zadd(`firebreak_lock_alive:{${name}}`, Date.now() + 60_000, 'dead:1')
    const waiting = lock.lock()
    await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 2)
    await first.unlock()
    expect(await redis.client.hkeys(name)).toEqual(['dead:1'])
    const second = await waiting
    const third = lock.lock()
    await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 1)
    await redis.client.del(name)
    expect((await third).token).toBeGreaterThan(second.token)
  })

  test('keeps the place of a waiter that waits far longer than its time to live', async () => {
    const locks = open({ waiterTtlMs: 500 })
    const name = freshName()
    const lock = locks.getFairLock(name)
    const first = await lock.lock()
    const order: number[] = []
    const waiting = [1, 2].map((number) => lock.withLock(() => order.push(number)))
    await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 2)
    await letTimePass(1500)
    expect(await redis.client.llen(`firebreak_lock_queue:{${name}}`)).toBe(2)
    await first.unlock()
    await Promise.all(waiting)
    expect(order).toEqual([1, 2])
  })

  test('a waiter that gives up leaves the queue, and a holder re-enters the lock', async () => {
    const locks = open()
    const name = freshName()
    const lock = locks.getFairLock(name)
    await lock.withLock(async (handle) => {
      expect(await locks.asOwner(() => lock.tryLock(40))).toBe(undefined)
      await waitFor(async () => (await redis.client.llen(`firebreak_lock_queue:{${name}}`)) === 0)
      await lock.withLock((inner) => {
        expect(inner.holdCount).toBe(2)
        expect(inner.token).toBe(handle.token)
      })
    })
    expect(await lock.isLocked()).toBe(false)
  })

  test('excludes the plain lock of the same name and wakes it', async () => {
    const locks = open()
    const name = freshName()
    const fair = await locks.getFairLock(name).lock()
    expect(await locks.getLock(name).tryLock()).toBe(undefined)
    const waiting = locks.getLock(name).lock()
    await waitFor(async () => (await redis.client.pubsub('NUMSUB', `redisson_lock__channel:{${name}}`))[1] === 1)
    await fair.unlock()
    const plain = await waiting
    const back = locks.getFairLock(name).lock()
    await waitFor(() => locks.snapshot().waitingCount === 1)
    expect(await locks.getFairLock(name).forceUnlock()).toBe(true)
    expect((await back).token).toBeGreaterThan(plain.token)
  })
})
