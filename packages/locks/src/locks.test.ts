import { toRedis } from '@firebreak/redis'
import { waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { LockLostError } from './index.ts'
import { oneRedis } from './testing/one-redis.ts'

const redis = oneRedis()
const { open, freshName } = redis

/** Acts like another program that holds the lock in Redisson's way. */
async function holdAsRedisson(name: string, leaseMs: number): Promise<{ release(): Promise<void> }> {
  await redis.client.hset(name, 'b983c153-7421-469a-addb-44fb92259a1b:57', 1)
  await redis.client.pexpire(name, leaseMs)
  return {
    async release() {
      await redis.client.multi().del(name).publish(`redisson_lock__channel:{${name}}`, '0').exec()
    },
  }
}

describe('reentrant lock', () => {
  test('is a hash of owner to hold count in Redis, with a lease, and is gone after the last unlock', async () => {
    const locks = open({ leaseMs: 5000 })
    const name = freshName()
    await locks.withLock(name, async (handle) => {
      expect(await redis.client.hgetall(name)).toEqual({ [handle.owner]: '1' })
      expect(handle.owner.startsWith(`${locks.instanceId}:`)).toBe(true)
      const ttl = await redis.client.pttl(name)
      expect(ttl).toBeGreaterThan(0)
      expect(ttl).toBeLessThanOrEqual(5000)
      await locks.withLock(name, async (inner) => {
        expect(inner.owner).toBe(handle.owner)
        expect(inner.token).toBe(handle.token)
        expect(inner.holdCount).toBe(2)
        expect(await redis.client.hgetall(name)).toEqual({ [handle.owner]: '2' })
      })
      expect(handle.holdCount).toBe(1)
      expect(await redis.client.hgetall(name)).toEqual({ [handle.owner]: '1' })
      expect(handle.isHeld).toBe(true)
    })
    expect(await redis.client.exists(name)).toBe(0)
  })

  test('two concurrent tasks of one process are two owners, even inside one outer section', async () => {
    const locks = open()
    const name = freshName()
    let inside = 0
    let most = 0
    const task = () =>
      locks.withLock(name, async () => {
        most = Math.max(most, ++inside)
        await redis.client.ping()
        inside--
      })
    await Promise.all(Array.from({ length: 10 }, task))
    await locks.withLock(freshName(), () => Promise.all([task(), task(), task()]))
    expect(most).toBe(1)
  })

  test('a task that outlives its section is a new owner', async () => {
    const locks = open()
    const name = freshName()
    let detached: Promise<number> | undefined
    let go: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const first = await locks.withLock(name, async (handle) => {
      detached = gate.then(() => locks.withLock(name, (inner) => inner.token))
      return handle.token
    })
    go()
    expect(await detached).toBeGreaterThan(first)
  })

  test('an owner named in the call re-enters, counts and unlocks by name', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const owner = 'job 7'
    await Promise.all([lock.lock({ owner }), locks.getLock(lock.name).lock({ owner })])
    expect(lock.holdCount({ owner })).toBe(2)
    expect(lock.isHeld({ owner })).toBe(true)
    expect(lock.isHeld({ owner: 'job 8' })).toBe(false)
    expect(await lock.tryLock(0, undefined, { owner: 'job 8' })).toBe(undefined)
    await lock.unlock({ owner })
    expect(lock.holdCount({ owner })).toBe(1)
    await lock.unlock({ owner })
    expect(await lock.isLocked()).toBe(false)
    await expect(lock.unlock({ owner })).rejects.toMatchObject({ code: 'FB_LOCK_NOT_OWNED' })
  })

  test('asOwner makes everything that a function does one owner, without handles', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    await locks.asOwner(async () => {
      await lock.lock()
      await lock.lock()
      expect(lock.holdCount()).toBe(2)
      await lock.unlock()
      expect(lock.isHeld()).toBe(true)
      await lock.unlock()
      expect(lock.isHeld()).toBe(false)
    })
    await expect(lock.unlock()).rejects.toMatchObject({ code: 'FB_LOCK_NOT_OWNED' })
  })

  test('a handle disposes itself at the end of its block', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    {
      await using handle = await lock.lock()
      expect(handle.isHeld).toBe(true)
    }
    expect(await lock.isLocked()).toBe(false)
  })

  test('tryLock gives up at once or after its wait, or gets the lock; a fixed lease is not renewed', async () => {
    const locks = open({ leaseMs: 90 })
    const lock = locks.getLock(freshName())
    const handle = (await lock.tryLock(0, 400))!
    expect(await lock.tryLock()).toBe(undefined)
    expect(await lock.tryLock(50)).toBe(undefined)
    expect(await lock.remainingMs()).toBeLessThanOrEqual(400)
    expect(handle.remainingMs).toBeGreaterThan(0)
    const next = (await lock.tryLock(20_000))!
    expect(handle.isHeld).toBe(false)
    expect(next.token).toBeGreaterThan(handle.token)
    expect(await handle.unlock()).toBe(false)
    expect(await lock.isLocked()).toBe(true)
    await next.unlock()
  })

  test('an AbortSignal ends the waiting with its reason, and withLock times out with a code', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const handle = await lock.lock()
    const controller = new AbortController()
    const waiting = lock.lock({ signal: controller.signal })
    await waitFor(() => locks.snapshot().waiting.length === 1)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(lock.withLock(() => 1, { waitMs: 20 })).rejects.toMatchObject({ code: 'FB_LOCK_TIMEOUT', waitMs: 20 })
    await expect(lock.lock({ signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
    await handle.unlock()
    expect(await lock.tryLock()).toBeDefined()
  })

  test('withLock returns what its function returns, and unlocks when it throws', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    expect(await lock.withLock(() => 42)).toBe(42)
    await expect(
      lock.withLock(() => {
        throw new Error('inside')
      }),
    ).rejects.toThrow('inside')
    expect(await lock.isLocked()).toBe(false)
  })

  test('forceUnlock releases it whoever holds it, wakes a waiter, and the holder’s unlock does no harm', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const handle = await lock.lock()
    const waiting = lock.lock()
    await waitFor(() => locks.snapshot().waiting.length === 1)
    expect(await lock.forceUnlock()).toBe(true)
    const next = await waiting
    expect(next.token).toBeGreaterThan(handle.token)
    await handle.unlock()
    expect(await redis.client.hexists(lock.name, next.owner)).toBe(1)
    await next.unlock()
    expect(await lock.forceUnlock()).toBe(false)
  })

  test('excludes and is woken by a holder that speaks Redisson’s keys and channel', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const foreign = await holdAsRedisson(lock.name, 60_000)
    expect(await lock.tryLock()).toBe(undefined)
    const waiting = lock.lock()
    await waitFor(() => locks.snapshot().waiting.length === 1)
    await waitFor(async () => (await redis.client.pubsub('NUMSUB', `redisson_lock__channel:{${lock.name}}`))[1] === 1)
    await foreign.release()
    const handle = await waiting
    const heard: string[] = []
    const listener = await toRedis(redis.client).subscriber()
    await listener.subscribe(`redisson_lock__channel:{${lock.name}}`, (message) => heard.push(message))
    await handle.unlock()
    await expect.poll(() => heard).toEqual(['0'])
    await listener.close()
  })

  test('a release wakes the waiter of another process’ locks long before the lease ends', async () => {
    const [here, there] = [open(), open()]
    const name = freshName()
    const handle = await here.getLock(name).lock()
    const startedAt = performance.now()
    const waiting = there.getLock(name).lock()
    await waitFor(() => there.snapshot().waiting.length === 1)
    await handle.unlock()
    await waiting
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test('names with a hash tag keep it, and an empty name is refused', async () => {
    const locks = open()
    await locks.withLock('{tag}:lock', async () => {
      expect(await redis.client.exists('firebreak_lock_token:{tag}:lock')).toBe(1)
    })
    expect(() => locks.getLock('')).toThrow(/option name/)
  })

  test('a spin lock waits without a subscription', async () => {
    const locks = open()
    const lock = locks.getSpinLock(freshName())
    const handle = await lock.lock()
    const waiting = lock.lock()
    expect(await lock.tryLock(30)).toBe(undefined)
    expect((await redis.client.pubsub('NUMSUB', `redisson_lock__channel:{${lock.name}}`))[1]).toBe(0)
    await handle.unlock()
    expect((await waiting).isHeld).toBe(true)
  })

  test('survives SCRIPT FLUSH between any two calls', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    for (let round = 0; round < 3; round++) {
      await redis.client.script('FLUSH')
      const handle = await lock.lock()
      await redis.client.script('FLUSH')
      const waiting = lock.lock()
      await waitFor(() => locks.snapshot().waiting.length === 1)
      await handle.unlock()
      await redis.client.script('FLUSH')
      await (await waiting).unlock()
    }
  })

  test.each(['before', 'after'])('close ends the waiting %s the subscription stands', async (when) => {
    const locks = open()
    const lock = locks.getLock(freshName())
    await lock.lock()
    const ending = expect(lock.lock()).rejects.toMatchObject({ code: 'FB_LOCKS_CLOSED' })
    await waitFor(() => locks.snapshot().waiting.length === 1, { everyMs: 1 })
    const channel = `redisson_lock__channel:{${lock.name}}`
    if (when === 'after') await waitFor(async () => (await redis.client.pubsub('NUMSUB', channel))[1] === 1)
    await locks.close()
    await ending
    await expect(lock.lock()).rejects.toMatchObject({ code: 'FB_LOCKS_CLOSED' })
  })
})

describe('loss', () => {
  test('a lock that Redis forgot is lost: event, signal, isHeld, unlock', async () => {
    const locks = open({ leaseMs: 900 })
    const lost: string[] = []
    locks.onLost(({ name, reason }) => lost.push(`${name} ${reason}`))
    const name = freshName()
    let ended: unknown
    const running = locks.withLock(name, async (handle, signal) => {
      await redis.client.del(name)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      ended = signal.reason
      expect(handle.isHeld).toBe(false)
      expect(handle.holdCount).toBe(0)
      expect(handle.remainingMs).toBe(0)
      expect(await handle.unlock()).toBe(false)
      return 'done too late'
    })
    await expect(running).rejects.toMatchObject({ code: 'FB_LOCK_LOST', reason: 'taken', result: 'done too late' })
    expect(ended).toBeInstanceOf(LockLostError)
    expect(lost).toEqual([`${name} taken`])
    expect(locks.metrics().lost).toEqual({ expired: 0, taken: 1 })
  })

  test('the default lease is renewed for as long as the lock is held', async () => {
    const locks = open({ leaseMs: 3000 })
    const handle = await locks.getLock(freshName()).lock()
    // Three thirds of the lease and one more.
    await waitFor(() => locks.metrics().renewals >= 4)
    expect(handle.isHeld).toBe(true)
    expect(await handle.unlock()).toBe(true)
  })

  test('withLock resolves as if nothing had happened if so configured', async () => {
    const locks = open()
    const name = freshName()
    const forced = () => locks.getLock(name).forceUnlock()
    await expect(locks.withLock(name, forced, { onLost: 'resolve' })).resolves.toBe(true)
    await expect(locks.withLock(name, forced)).rejects.toMatchObject({ code: 'FB_LOCK_LOST', result: true })
  })

  test('the caller sees the function’s error, whether the lock was lost or not', async () => {
    const locks = open()
    const name = freshName()
    const failing = async () => {
      await locks.getLock(name).forceUnlock()
      throw new Error('the work failed')
    }
    await expect(locks.withLock(name, failing)).rejects.toThrow('the work failed')
  })

  test('every kind reports a loss: multi-lock, semaphore, reader, writer, fair, an inner entry', async () => {
    const locks = open({ leaseMs: 60_000 })
    const name = freshName()
    const lost = { code: 'FB_LOCK_LOST', result: 'x' }
    const emptied = async () => {
      await redis.client.flushall()
      return 'x'
    }
    await expect(locks.getMultiLock([name, `${name} b`]).withLock(emptied)).rejects.toMatchObject(lost)
    await expect(locks.getSemaphore(name, 2).withPermit(emptied)).rejects.toMatchObject(lost)
    await expect(locks.getReadWriteLock(name).read.withLock(emptied)).rejects.toMatchObject(lost)
    await expect(locks.getReadWriteLock(name).write.withLock(emptied)).rejects.toMatchObject(lost)
    await expect(locks.getFairLock(name).withLock(emptied)).rejects.toMatchObject(lost)
    const inner = locks.withLock(name, () => locks.withLock(name, emptied))
    await expect(inner).rejects.toMatchObject(lost)
  })

  test('a lease that expired while the function worked is reported', async () => {
    const locks = open()
    const slow = async (handle: { readonly isHeld: boolean }) => {
      await waitFor(() => !handle.isHeld, { everyMs: 2, what: () => 'the end of the lease' })
      return 7
    }
    const running = locks.withLock(freshName(), slow, { leaseMs: 30 })
    await expect(running).rejects.toMatchObject({ code: 'FB_LOCK_LOST', reason: 'expired', result: 7 })
  })
})

describe('leases', () => {
  test('extend makes a lease longer or shorter from now on, locally and in Redis', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const handle = await lock.lock({ leaseMs: 5000 })
    expect(await handle.extend(60_000)).toBe(true)
    expect(handle.remainingMs).toBeGreaterThan(50_000)
    expect(await lock.remainingMs()).toBeGreaterThan(50_000)
    expect(await handle.extend(2000)).toBe(true)
    expect(handle.remainingMs).toBeLessThanOrEqual(2000)
    expect(await lock.remainingMs()).toBeLessThanOrEqual(2000)
    await handle.unlock()
    expect(await handle.extend(1000)).toBe(false)
    await expect(handle.extend(0)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })

  test('extend of a permit and of a reader works on their own lease', async () => {
    const locks = open()
    const permit = (await locks.getSemaphore(freshName(), 1).tryAcquire(0, 5000))!
    const reader = await locks.getReadWriteLock(freshName()).read.lock({ leaseMs: 5000 })
    for (const handle of [permit, reader]) {
      expect(await handle.extend(60_000)).toBe(true)
      expect(handle.remainingMs).toBeGreaterThan(50_000)
      expect(await handle.extend(300)).toBe(true)
      expect(handle.remainingMs).toBeLessThanOrEqual(300)
    }
    await waitFor(() => locks.metrics().lost.expired === 2, { what: () => 'the end of the shorter leases' })
    expect(permit.isHeld || reader.isHeld).toBe(false)
  })

  test('extend of a lock that is gone says so, and the lock is lost', async () => {
    const locks = open()
    const lock = locks.getLock(freshName())
    const handle = await lock.lock({ leaseMs: 60_000 })
    await lock.forceUnlock()
    expect(await handle.extend(1000)).toBe(false)
    expect(handle.isHeld).toBe(false)
    expect(handle.signal.reason).toBeInstanceOf(LockLostError)
  })

  test('an explicit lease is renewed on request, after every third of its own length', async () => {
    const locks = open({ leaseMs: 60_000 })
    const lock = locks.getLock(freshName())
    const handle = await lock.lock({ leaseMs: 300, renew: true })
    const fixed = await locks.getLock(freshName()).lock({ leaseMs: 300 })
    await waitFor(() => locks.metrics().renewals >= 5, { what: () => 'five renewals' })
    expect(handle.isHeld).toBe(true)
    expect(await lock.remainingMs()).toBeLessThanOrEqual(300)
    expect(fixed.isHeld).toBe(false)
    // Changed while it is held: from now on renewals use the new lease.
    expect(await handle.extend(900)).toBe(true)
    const { renewals } = locks.metrics()
    await waitFor(() => locks.metrics().renewals > renewals + 1, { what: () => 'renewals with the new lease' })
    expect(await lock.remainingMs()).toBeGreaterThan(400)
    expect(await handle.unlock()).toBe(true)
  })

  test('a lock with the default lease can be taken without renewal', async () => {
    const locks = open({ leaseMs: 90 })
    const handle = await locks.getLock(freshName()).lock({ renew: false })
    await waitFor(() => !handle.isHeld, { everyMs: 5, what: () => 'the end of the lease' })
    expect(locks.metrics().renewals).toBe(0)
  })
})
