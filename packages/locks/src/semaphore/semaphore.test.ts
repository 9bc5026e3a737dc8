import { waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { oneRedis } from '../testing/one-redis.ts'

const redis = oneRedis()
const { open, freshName } = redis

describe('semaphore', () => {
  test('never grants more permits than there are, and grants all of them', async () => {
    const clients = [open(), open()]
    const name = freshName()
    let inside = 0
    let most = 0
    const task = (index: number) =>
      clients[index % 2]!.getSemaphore(name, 3).withPermit(async () => {
        most = Math.max(most, ++inside)
        await redis.client.ping()
        inside--
      })
    await Promise.all(Array.from({ length: 40 }, (_, index) => task(index)))
    expect(most).toBeLessThanOrEqual(3)
    const semaphore = clients[0]!.getSemaphore(name, 3)
    expect(await semaphore.available()).toBe(3)
    const permits = [await semaphore.tryAcquire(), await semaphore.tryAcquire(), await semaphore.tryAcquire()]
    expect(permits.every((permit) => permit?.isHeld)).toBe(true)
    expect(await clients[1]!.getSemaphore(name, 3).tryAcquire()).toBe(undefined)
  })

  test('the permit of a dead holder comes back when its lease ends, and a late release frees nobody else’s', async () => {
    const locks = open()
    const semaphore = locks.getSemaphore(freshName(), 1)
    const dying = (await semaphore.tryAcquire(0, 120))!
    expect(await semaphore.tryAcquire()).toBe(undefined)
    expect(await semaphore.available()).toBe(0)
    const next = (await semaphore.tryAcquire(20_000))!
    expect(next.token).toBeGreaterThan(dying.token)
    expect(await dying.unlock()).toBe(false)
    expect(await semaphore.available()).toBe(0)
    expect(await next.unlock()).toBe(true)
  })

  test('a permit without an explicit lease is renewed; a second one is another permit', async () => {
    const locks = open({ leaseMs: 2400 })
    const semaphore = locks.getSemaphore(freshName(), 2)
    await semaphore.withPermit(async (outer) => {
      await semaphore.withPermit(async (inner) => {
        expect(inner.owner).not.toBe(outer.owner)
        expect(await semaphore.available()).toBe(0)
        await waitFor(() => locks.metrics().renewals >= 4)
        expect(await semaphore.available()).toBe(0)
        expect(outer.isHeld && inner.isHeld).toBe(true)
      })
    })
    expect(await semaphore.available()).toBe(2)
    expect(() => locks.getSemaphore('x', 0)).toThrow(/option permits/)
  })
})

describe('countdown latch', () => {
  test('releases all waiters when the count is zero, and only then', async () => {
    const [here, there] = [open(), open()]
    const name = freshName()
    const latch = here.getCountdownLatch(name)
    expect(await latch.wait()).toBe(true)
    expect(await latch.trySetCount(3)).toBe(true)
    expect(await latch.trySetCount(5)).toBe(false)
    let gone = 0
    const waiting = [latch, there.getCountdownLatch(name), latch].map((each) => each.wait().then(() => gone++))
    expect(await latch.wait({ waitMs: 30 })).toBe(false)
    expect(await latch.countDown()).toBe(2)
    expect(await there.getCountdownLatch(name).countDown()).toBe(1)
    expect(await latch.count()).toBe(1)
    expect(gone).toBe(0)
    expect(await latch.countDown()).toBe(0)
    await Promise.all(waiting)
    expect(await latch.countDown()).toBe(0)
    expect(await redis.client.exists(name, `firebreak_latch_counted:{${name}}`)).toBe(0)
  })

  test('an AbortSignal ends the waiting with its reason', async () => {
    const latch = open().getCountdownLatch(freshName())
    await latch.trySetCount(1)
    const controller = new AbortController()
    const waiting = expect(latch.wait({ signal: controller.signal })).rejects.toThrow('stop')
    controller.abort(new Error('stop'))
    await waiting
  })

  test('reacts to a count-down through Redisson’s key and channel', async () => {
    const latch = open().getCountdownLatch(freshName())
    await latch.trySetCount(1)
    const waiting = latch.wait()
    const channel = `redisson_countdownlatch__channel__{${latch.name}}`
    await waitFor(async () => (await redis.client.pubsub('NUMSUB', channel))[1] === 1)
    await redis.client.multi().del(latch.name).publish(channel, '0').exec()
    expect(await waiting).toBe(true)
  })
})

describe('multi-lock', () => {
  test('never deadlocks, whatever the order in which its locks are named or nested', async () => {
    const clients = [open(), open()]
    const [a, b, c] = [freshName(), freshName(), freshName()] as const
    const orders = [
      [a, b, c],
      [c, b, a],
      [b, a, c],
    ]
    const inside = new Set<string>()
    const task = (index: number) =>
      clients[index % 2]!.getMultiLock(orders[index % 3]!).withLock(async (handle) => {
        for (const name of [a, b, c]) expect(inside.has(name)).toBe(false)
        for (const name of [a, b, c]) inside.add(name)
        expect(handle.isHeld).toBe(true)
        await redis.client.ping()
        for (const name of [a, b, c]) inside.delete(name)
      })
    // And another task nests single locks in the opposite order.
    const nested = () => clients[0]!.withLock(c, () => clients[0]!.withLock(a, () => redis.client.ping()))
    await Promise.all([...Array.from({ length: 18 }, (_, index) => task(index)), nested(), nested(), nested()])
    expect(await redis.client.exists(a, b, c)).toBe(0)
  })

  test('holds nothing when it gives up, and has a token for each', async () => {
    const locks = open()
    const [a, b] = [freshName(), freshName()] as const
    const other = await locks.getLock(b).lock()
    const multi = locks.getMultiLock([a, b])
    expect(await multi.tryLock()).toBe(undefined)
    expect(await multi.tryLock(40)).toBe(undefined)
    expect(await redis.client.exists(a)).toBe(0)
    const waiting = multi.lock()
    await waitFor(() => locks.snapshot().waitingCount === 1)
    await other.unlock()
    const handle = await waiting
    expect([...handle.tokens.keys()]).toEqual([a, b])
    expect(handle.tokens.get(b)).toBeGreaterThan(other.token)
    expect(await handle.unlock()).toBe(true)
    await expect(multi.withLock(() => locks.withLock(a, (inner) => inner.holdCount))).resolves.toBe(2)
    expect(() => locks.getMultiLock([])).toThrow(/option names/)
  })

  test('is lost with any of its locks', async () => {
    const locks = open({ leaseMs: 600 })
    const [a, b] = [freshName(), freshName()] as const
    const handle = await locks.getMultiLock([a, b]).lock()
    const { signal } = handle
    await redis.client.del(b)
    await waitFor(() => signal.aborted)
    expect(handle.isHeld).toBe(false)
    expect(await handle.unlock()).toBe(false)
    expect(await redis.client.exists(a)).toBe(0)
  })

  test('permits are added, removed and drained for all processes', async () => {
    const [mine, others] = [open(), open()]
    const name = freshName()
    const semaphore = mine.getSemaphore(name, 2)
    const elsewhere = others.getSemaphore(name, 2)
    const held = (await semaphore.tryAcquire())!
    expect(await semaphore.drainPermits()).toBe(1)
    expect(await elsewhere.available()).toBe(0)
    expect(await elsewhere.tryAcquire()).toBe(undefined)
    // A returned permit is free again, although the others were drained.
    await held.unlock()
    expect(await elsewhere.available()).toBe(1)
    expect(await elsewhere.addPermits(3)).toBe(4)
    expect(await semaphore.available()).toBe(4)
    expect(await semaphore.addPermits(-3)).toBe(1)
    // Never below zero; everything that was added can be removed, and then no key is left.
    expect(await semaphore.addPermits(-10)).toBe(0)
    expect(await semaphore.drainPermits()).toBe(0)
    expect(await semaphore.addPermits(2)).toBe(2)
    expect(await redis.client.exists(`firebreak_semaphore_added:{${name}}`)).toBe(0)
    await expect(semaphore.addPermits(0.5)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })

  test('added permits wake waiters in any process, one after the other', async () => {
    const [mine, others] = [open(), open()]
    const name = freshName()
    await mine.getSemaphore(name, 1).drainPermits()
    const waits = [mine, others, mine].map((locks) => locks.getSemaphore(name, 1).acquire())
    await waitFor(() => mine.snapshot().waiting.length === 2 && others.snapshot().waiting.length === 1, {
      what: () => 'three waiters',
    })
    await others.getSemaphore(name, 1).addPermits(3)
    const permits = await Promise.all(waits)
    expect(permits.every(({ isHeld }) => isHeld)).toBe(true)
  })
})
