import { letTimePass, waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { oneRedis } from '../testing/one-redis.ts'

const redis = oneRedis()
const { open } = redis

/** So long that a waiter that only checks again after a lease is far too late for its test. */
const patient = { leaseMs: 600_000 }

/** A lock held by somebody else, which nobody in this process releases. */
async function holdElsewhere(name: string, leaseMs = patient.leaseMs): Promise<void> {
  await redis.client.hset(name, 'elsewhere:1', 1)
  await redis.client.pexpire(name, leaseMs)
}

const channelOf = (name: string) => `redisson_lock__channel:{${name}}`
const subscribersOf = async (name: string) => Number((await redis.client.pubsub('NUMSUB', channelOf(name)))[1])

async function scriptCalls(): Promise<number> {
  return Number((await redis.client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+)/)?.[1] ?? 0)
}

describe('waiting', () => {
  test('no waiter polls: twenty waiters have one subscription and send nothing while they wait', async () => {
    const locks = open()
    const name = 'silence'
    await holdElsewhere(name)
    const waiting = Array.from({ length: 20 }, () => locks.getLock(name).lock())
    await waitFor(async () => (await subscribersOf(name)) === 1 && locks.snapshot().waitingCount === 20)
    await letTimePass(100)
    const before = await scriptCalls()
    await letTimePass(400)
    expect(await scriptCalls()).toBe(before)
    await redis.client.multi().del(name).publish(channelOf(name), '0').exec()
    const first = await Promise.race(waiting)
    // The message woke one task, which sent one request.
    expect(await scriptCalls()).toBe(before + 1)
    expect(locks.snapshot().waitingCount).toBe(19)
    await first.unlock()
    for (const handle of waiting.slice(1)) await (await handle).unlock()
  })

  test('a channel is unsubscribed some time after its last waiter has left, and subscribed again later', async () => {
    const locks = open({ channelLingerMs: 50 })
    const name = 'lingering'
    for (let round = 0; round < 2; round++) {
      const holder = await locks.getLock(name).lock()
      const waiting = [locks.getLock(name).lock(), locks.getLock(name).lock()]
      await waitFor(async () => (await subscribersOf(name)) === 1)
      await holder.unlock()
      for (const handle of waiting) await (await handle).unlock()
      await waitFor(async () => (await subscribersOf(name)) === 0)
    }
  })

  test('after a reconnect every waiter checks once, for messages that were missed', async () => {
    const locks = open(patient)
    const name = 'missed'
    await holdElsewhere(name)
    const waiting = locks.getLock(name).lock()
    await waitFor(async () => (await subscribersOf(name)) === 1)
    await redis.client.del(name)
    await redis.server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await (await waiting).unlock()
  })

  test('checks again when the holder’s lease has expired silently', async () => {
    const locks = open(patient)
    await holdElsewhere('silent death', 300)
    const handle = await locks.getLock('silent death').lock()
    expect(await redis.client.hkeys('silent death')).toEqual([handle.owner])
  })

  test('a waiter that gives up passes the notification on to the next', async () => {
    const locks = open(patient)
    const name = 'passed on'
    await holdElsewhere(name)
    const leaving = new AbortController()
    const first = expect(locks.getLock(name).lock({ signal: leaving.signal })).rejects.toThrow('leaving')
    await waitFor(() => locks.snapshot().waitingCount === 1)
    const second = locks.getLock(name).lock()
    await waitFor(() => locks.snapshot().waitingCount === 2)
    // The lock is free, but nobody was notified; only the next in line checks.
    await redis.client.del(name)
    leaving.abort(new Error('leaving'))
    await first
    expect((await second).isHeld).toBe(true)
  })

  test('a lock handed from task to task is offered to other processes again and again', async () => {
    const [here, there] = [open({ maxLocalHandoffs: 4 }), open()]
    const name = 'generous'
    const holder = await here.getLock(name).lock()
    const served: string[] = []
    const tasks = Array.from({ length: 300 }, () => here.withLock(name, () => served.push('here')))
    const other = there.withLock(name, () => served.push('there'))
    await waitFor(async () => here.snapshot().waitingCount === 300 && (await subscribersOf(name)) === 2)
    await holder.unlock()
    await Promise.all([...tasks, other])
    // Then they come first, whoever is closer to Redis: at the first offer, or at a later one if this process was slow.
    expect(served.indexOf('there')).toBeLessThan(300)
    const { handedOver, acquired } = here.metrics()
    expect(handedOver).toBeGreaterThan(0)
    // One in five was acquired from Redis, where others could have acquired it too.
    expect(acquired - handedOver).toBeGreaterThanOrEqual(acquired / 5)
  })

  test('more waiters than allowed are refused', async () => {
    const locks = open({ maxWaiting: 2 })
    const name = 'crowded'
    const holder = await locks.getLock(name).lock()
    const waiting = [locks.getLock(name).lock(), locks.getLock(name).lock()]
    await waitFor(() => locks.snapshot().waitingCount === 2)
    await expect(locks.getLock(name).lock()).rejects.toMatchObject({ code: 'FB_LOCK_QUEUE_FULL' })
    await holder.unlock()
    for (const handle of waiting) await (await handle).unlock()
  })

  test('metrics show waiting, holding, contention, refusals and hand-offs', async () => {
    const locks = open()
    const lock = locks.getLock('measured')
    const holder = await lock.lock()
    expect(await lock.tryLock()).toBe(undefined)
    const waiting = lock.lock()
    await waitFor(() => locks.snapshot().waitingCount === 1)
    await letTimePass(30)
    await holder.unlock()
    await (await waiting).unlock()
    const { acquired, contended, handedOver, refused, released, wait, hold, lost } = locks.metrics()
    expect({ acquired, contended, handedOver, refused, released, lost }).toEqual({
      acquired: 2,
      contended: 1,
      handedOver: 1,
      refused: 1,
      released: 2,
      lost: { expired: 0, taken: 0 },
    })
    expect([wait.count, hold.count]).toEqual([1, 2])
    expect(wait.maxMs).toBeGreaterThanOrEqual(25)
    expect(hold.sumMs).toBeGreaterThanOrEqual(25)
    expect(wait.buckets.reduce((sum, count) => sum + count)).toBe(1)
  })
})
