import { FaultProxy, letTimePass, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Locks, type LocksOptions } from '../index.ts'

let server: RedisServer
let direct: Ioredis
beforeAll(async () => {
  server = await startRedis()
  direct = new Ioredis(server.port)
})
afterAll(async () => {
  direct.disconnect()
  await server.stop()
})

/** Locks whose connection goes through a proxy that can be made to fail. */
async function openFaulty(options: LocksOptions) {
  const proxy = await FaultProxy.start(server.port)
  const client = new Ioredis(proxy.port, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const locks = new Locks(client, options)
  return {
    proxy,
    locks,
    async close() {
      await locks.close()
      client.disconnect()
      await proxy.close()
    },
  }
}

describe('watchdog', () => {
  test('renews 1,000 locks, taken at different times, with at most 20 scripts a third of a lease', async () => {
    const leaseMs = 3000
    const locks = new Locks(direct, { leaseMs })
    for (let group = 0; group < 10; group++) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => locks.getLock(`many ${group} ${index}`).lock()))
    }
    await direct.config('RESETSTAT')
    const startedAt = performance.now()
    const before = locks.metrics().renewals
    await letTimePass(leaseMs * 1.4)
    const thirds = Math.ceil((performance.now() - startedAt) / (leaseMs / 3))
    const scripts = locks.metrics().renewals - before
    expect(scripts).toBeGreaterThanOrEqual(10)
    expect(scripts).toBeLessThanOrEqual(20 * thirds)
    const stats = await direct.info('commandstats')
    const calls = Number(stats.match(/cmdstat_evalsha:calls=(\d+)/)?.[1]) || 0
    expect(calls).toBeLessThanOrEqual(20 * thirds)
    expect(locks.snapshot().heldCount).toBe(1000)
    expect(await direct.exists('many 0 0', 'many 9 99')).toBe(2)
    await locks.close()
    await direct.flushall()
  })

  test('locks that were released in any order are never reported as lost', async () => {
    const locks = new Locks(direct)
    const lost: string[] = []
    locks.onLost(({ name }) => lost.push(name))
    const leaseMs = 1500
    const names = ['a', 'b', 'c', 'd']
    const handles = await Promise.all(names.map((name) => locks.getLock(`released ${name}`).lock({ leaseMs })))
    for (const index of [0, 3, 1, 2]) expect(await handles[index]!.unlock()).toBe(true)
    await letTimePass(leaseMs * 1.2)
    expect(lost).toEqual([])
    await locks.close()
  })

  test('survives errors: no lock is lost when a connection is cut again and again', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 3000 })
    const handle = await locks.getLock('cut').lock()
    const startedAt = performance.now()
    await waitFor(
      () => {
        proxy.cut()
        return performance.now() - startedAt > 4500
      },
      { everyMs: 150 },
    )
    expect(handle.isHeld).toBe(true)
    expect(locks.metrics().lost).toEqual({ expired: 0, taken: 0 })
    expect(await handle.unlock()).toBe(true)
    await close()
  })

  test('at the deadline the lock counts as lost without waiting for Redis, before Redis gives it to others', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 900 })
    await locks.withLock('warm', () => {})
    // The request travels for long, and Redis starts counting that much later.
    proxy.faults.clientDelayMs = 600
    const handle = await locks.getLock('swallowed').lock()
    proxy.faults.isBlackHole = true
    const { signal } = handle
    await waitFor(() => !handle.isHeld)
    expect(await direct.exists('swallowed')).toBe(1)
    await waitFor(() => signal.aborted)
    expect(signal.reason).toMatchObject({ code: 'FB_LOCK_LOST', reason: 'expired', lock: 'swallowed' })
    // This needs no request to Redis, which does not answer.
    expect(await handle.unlock()).toBe(false)
    proxy.faults.isBlackHole = false
    proxy.cut()
    await close()
  })

  test('the deadline counts from before the request was sent', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 5000 })
    await locks.withLock('warm', () => {})
    proxy.faults.serverDelayMs = 300
    const handle = await locks.getLock('slow').lock()
    // A timer of 300 ms may fire in the last millisecond.
    expect(handle.remainingMs).toBeLessThanOrEqual(5000 - 299)
    await close()
  })

  test('a reply that took longer than the lease does not give a lock', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 5000 })
    await locks.withLock('warm', () => {})
    proxy.faults.serverDelayMs = 200
    expect(await locks.getLock('too late').tryLock(0, 100)).toBe(undefined)
    await close()
  })

  test('an unlock whose reply was lost is repeated and returns true, and the lock is free', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 5000 })
    const lock = locks.getLock('reply lost')
    const handle = await lock.lock()
    proxy.faults.serverDelayMs = 60_000
    const unlocking = handle.unlock()
    await waitFor(async () => (await direct.exists('reply lost')) === 0)
    proxy.faults.serverDelayMs = 0
    proxy.cut()
    expect(await unlocking).toBe(true)
    expect(locks.metrics().lost).toEqual({ expired: 0, taken: 0 })
    await close()
  })

  test('a lock whose reply was lost is acquired by the repetition, once', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 600_000 })
    await locks.withLock('warm', () => {})
    proxy.faults.serverDelayMs = 60_000
    const locking = locks.getLock('taken once').lock()
    await waitFor(async () => (await direct.exists('taken once')) === 1)
    proxy.faults.serverDelayMs = 0
    proxy.cut()
    const handle = await locking
    expect(await direct.hgetall('taken once')).toEqual({ [handle.owner]: '1' })
    await handle.unlock()
    expect(await direct.exists('taken once')).toBe(0)
    await close()
  })

  test('a lock that arrives after its caller has given up is released', async () => {
    const { proxy, locks, close } = await openFaulty({ leaseMs: 60_000 })
    await locks.withLock('warm', () => {})
    proxy.faults.serverDelayMs = 400
    expect(await locks.getLock('unwanted').tryLock(100)).toBe(undefined)
    expect(await direct.exists('unwanted')).toBe(1)
    await waitFor(async () => (await direct.exists('unwanted')) === 0)
    await close()
  })
})
