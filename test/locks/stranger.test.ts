import { Locks } from '@firebreak/locks'
import { letTimePass, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

// What a stranger tries with locks: odd names and numbers, everything twice, listeners that throw, keys written by hand.

let server: RedisServer
let redis: Redis
const opened: Locks[] = []
let names = 0
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()))
  await redis.flushall()
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

function open(options: ConstructorParameters<typeof Locks>[1] = {}): Locks {
  const locks = new Locks(redis, options)
  opened.push(locks)
  return locks
}
const fresh = () => `lock-${++names}`

describe('names', () => {
  const odd = [
    '__proto__',
    'constructor',
    'toString',
    '{}',
    '{',
    '}',
    '{a}b',
    'a}b{',
    ' ',
    '\0',
    '\r\n',
    '🔒',
    'a b:c',
    'x'.repeat(10_000),
  ]
  test.each(odd.map((name) => [name.slice(0, 20), name] as const))(
    'every kind of lock can have the name %j',
    async (_, name) => {
      const [here, there] = [open(), open()]
      for (const lock of [
        (locks: Locks) => locks.getLock(name),
        (locks: Locks) => locks.getFairLock(`fair${name}`),
        (locks: Locks) => locks.getReadWriteLock(`rw${name}`).write,
      ]) {
        const handle = await lock(here).lock()
        expect(handle.token).toBeGreaterThan(0)
        expect(await lock(there).tryLock()).toBeUndefined()
        expect(await handle.unlock()).toBe(true)
        await using next = (await lock(there).tryLock())!
        expect(next.token).toBeGreaterThan(handle.token)
      }
      await using permit = await here.getSemaphore(`permit${name}`, 1).acquire()
      expect(permit.isHeld).toBe(true)
      expect(await there.getSemaphore(`permit${name}`, 1).tryAcquire()).toBeUndefined()
    },
  )

  test.each(['__proto__', 'toString', 'a:b', 'hash:x', 'set:y', '\n', '🙂', ''])(
    'an owner may have the name %j',
    async (owner) => {
      const locks = open()
      const lock = locks.getLock(fresh())
      await lock.lock({ owner, leaseMs: 1500, renew: true })
      await lock.lock({ owner })
      expect(lock.holdCount({ owner })).toBe(2)
      const key = (await redis.keys('lock-*')).find((name) => name.startsWith('lock-'))!
      await waitFor(() => locks.metrics().renewals > 0, { what: 'a renewal' })
      // Asked over the connection of the renewal, and so after it.
      expect(await redis.pttl(key)).toBeGreaterThan(0)
      expect(lock.isHeld({ owner })).toBe(true)
      expect(await lock.unlock({ owner })).toBe(true)
      expect(await lock.unlock({ owner })).toBe(true)
      await expect(lock.unlock({ owner })).rejects.toMatchObject({ code: 'FB_LOCK_NOT_OWNED' })
    },
  )
})

describe('numbers', () => {
  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '100', null])(
    'a lease of %s is refused, and nothing is held',
    async (leaseMs) => {
      const locks = open()
      const name = fresh()
      const lock = locks.getLock(name)
      await expect(lock.lock({ leaseMs: leaseMs as number })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
      await expect(lock.tryLock(0, leaseMs as number)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
      const handle = await lock.lock()
      await expect(handle.extend(leaseMs as number)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
      expect(handle.isHeld).toBe(true)
      await handle.unlock()
    },
  )

  test.each([2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER])(
    'a wait of %s ms waits instead of refusing at once',
    async (waitMs) => {
      const [here, there] = [open(), open()]
      const name = fresh()
      const handle = await here.getLock(name).lock()
      let got: unknown
      const waiting = there
        .getLock(name)
        .tryLock(waitMs)
        .then((lock) => (got = lock ?? 'refused'))
      await waitFor(() => there.snapshot().waiting.length === 1 || got !== undefined, { what: 'the waiter' }).catch(
        () => {},
      )
      expect(got).toBeUndefined()
      await handle.unlock()
      await waiting
      expect(got).toMatchObject({ isHeld: true })
    },
  )

  test.each([Number.NaN, -1, '5', null])(
    'a wait of %s ms is refused by every kind, and does not wait for ever',
    async (wait) => {
      const [here, there] = [open(), open()]
      const name = fresh()
      const handle = await here.getLock(name).lock()
      const permit = await here.getSemaphore(`${name} permit`, 1).acquire()
      await here.getCountdownLatch(`${name} latch`).trySetCount(1)
      const waitMs = wait as number
      const invalid = { code: 'FB_OPTION_INVALID' }
      await expect(there.getLock(name).tryLock(waitMs)).rejects.toMatchObject(invalid)
      await expect(there.withLock(name, () => {}, { waitMs })).rejects.toMatchObject(invalid)
      await expect(there.getMultiLock([name]).tryLock(waitMs)).rejects.toMatchObject(invalid)
      await expect(there.getMultiLock([name]).withLock(() => {}, { waitMs })).rejects.toMatchObject(invalid)
      await expect(there.getSemaphore(`${name} permit`, 1).withPermit(() => {}, { waitMs })).rejects.toMatchObject(
        invalid,
      )
      await expect(there.getCountdownLatch(`${name} latch`).wait({ waitMs })).rejects.toMatchObject(invalid)
      expect(handle.isHeld && permit.isHeld).toBe(true)
    },
  )

  test('a lease of years does not keep the process busy', async () => {
    const overflows: string[] = []
    const note = ({ name }: Error) => overflows.push(name)
    process.on('warning', note)
    const locks = open()
    const handle = await locks.getLock(fresh()).lock({ leaseMs: 2 ** 41 })
    await letTimePass(50)
    expect(overflows).toEqual([])
    expect(handle.isHeld).toBe(true)
    await handle.unlock()
    process.removeListener('warning', note)
  })

  test.each(['', 7, null, undefined, {}])('a name that is %j is refused by every kind', (name) => {
    const locks = open()
    const kinds = [
      'getLock',
      'getFairLock',
      'getSpinLock',
      'getReadWriteLock',
      'getSemaphore',
      'getCountdownLatch',
    ] as const
    for (const kind of kinds)
      expect(() => locks[kind](name as string, 1), kind).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
  })

  test.each([0, -1, 1.5, Number.NaN])('a semaphore of %s permits is refused', async (permits) => {
    const locks = open()
    expect(() => locks.getSemaphore(fresh(), permits)).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
  })

  test('permits are removed below zero, and added beyond every number', async () => {
    const semaphore = open().getSemaphore(fresh(), 2)
    expect(await semaphore.addPermits(-Number.MAX_SAFE_INTEGER)).toBe(0)
    expect(await semaphore.tryAcquire()).toBeUndefined()
    expect(await semaphore.addPermits(3)).toBe(3)
    expect(await semaphore.addPermits(Number.MAX_SAFE_INTEGER - 3)).toBeGreaterThan(2 ** 52)
    await expect(semaphore.addPermits(1.5)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(semaphore.addPermits(Number.NaN)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await using permit = (await semaphore.tryAcquire())!
    expect(permit.isHeld).toBe(true)
    expect(await semaphore.drainPermits()).toBeGreaterThan(0)
    expect(await semaphore.available()).toBe(0)
  })
})

describe('everything twice', () => {
  test('a handle that is unlocked and disposed by several callers at once frees the lock once', async () => {
    const [here, there] = [open(), open()]
    const name = fresh()
    const handle = await here.getLock(name).lock()
    const next = there.getLock(name).lock()
    const all = await Promise.all([handle.unlock(), handle.unlock(), handle[Symbol.asyncDispose](), handle.unlock()])
    expect(all).toEqual([true, true, undefined, true])
    const held = await next
    await handle.unlock()
    expect(held.isHeld).toBe(true)
    expect(await here.getLock(name).tryLock()).toBeUndefined()
    await held.unlock()
  })

  test('a multi-lock of one lock twice, and of none', async () => {
    const locks = open()
    const name = fresh()
    await using handle = await locks.getMultiLock([name, name]).lock()
    expect(handle.isHeld).toBe(true)
    expect(() => locks.getMultiLock([])).toThrow(expect.objectContaining({ code: 'FB_OPTION_INVALID' }))
  })

  test('extend and unlock at once: the lock is free, and no extension brings it back', async () => {
    const locks = open()
    const name = fresh()
    for (let round = 0; round < 20; round++) {
      const handle = await locks.getLock(name).lock()
      await Promise.all([handle.extend(60_000), handle.unlock(), handle.extend(60_000)])
      expect(handle.isHeld).toBe(false)
      expect(await handle.extend(60_000)).toBe(false)
      expect(await redis.exists(name)).toBe(0)
    }
  })

  test('a signal that is already aborted, for whatever reason, acquires nothing', async () => {
    const locks = open()
    const name = fresh()
    for (const reason of [undefined, null, 0, 'why', new Error('why')]) {
      const controller = new AbortController()
      controller.abort(reason)
      const failure = await locks
        .getLock(name)
        .lock({ signal: controller.signal })
        .then(
          () => 'taken',
          (error) => ({ error }),
        )
      expect(failure).toEqual({ error: controller.signal.reason })
    }
    expect(await redis.exists(name)).toBe(0)
  })

  test('if the function throws undefined or null, the caller gets exactly that', async () => {
    const lock = open().getLock(fresh())
    for (const thrown of [undefined, null, 0, '']) {
      const seen = await lock
        .withLock(() => Promise.reject(thrown))
        .then(
          () => 'resolved',
          (error) => ({ error }),
        )
      expect(seen).toEqual({ error: thrown })
    }
    expect(await lock.tryLock()).toBeDefined()
  })
})

describe('by hand', () => {
  test('a listener that throws does not keep other locks from being renewed', async () => {
    const locks = open({ leaseMs: 300 })
    const thrown: unknown[] = []
    const uncaught = (error: unknown) => thrown.push(error)
    const before = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', uncaught)
    try {
      locks.onLost(() => {
        throw new Error('the listener’s own')
      })
      const names = Array.from({ length: 6 }, fresh)
      const handles = await Promise.all(names.map((name) => locks.getLock(name).lock()))
      await redis.del(names[0]!, names[3]!)
      await waitFor(() => thrown.length === 2, { what: 'two losses' })
      await letTimePass(700)
      expect(handles.map(({ isHeld }) => isHeld)).toEqual([false, true, true, false, true, true])
      expect(thrown.map(String)).toEqual(['Error: the listener’s own', 'Error: the listener’s own'])
    } finally {
      process.removeListener('uncaughtException', uncaught)
      for (const listener of before) process.on('uncaughtException', listener)
    }
  })

  test('a name that is a text, a list or a set in Redis is an error at once, not a wait', async () => {
    const locks = open()
    const name = fresh()
    await redis.set(name, 'x')
    await expect(locks.getLock(name).lock()).rejects.toThrow('WRONGTYPE')
    await redis.del(name)
    await using handle = await locks.getLock(name).lock()
    expect(handle.isHeld).toBe(true)
  })

  test('a lock without an expiry, by another library, is waited for until it is released', async () => {
    const locks = open()
    const name = fresh()
    await redis.hset(name, 'somebody:1', 1)
    expect(await locks.getLock(name).tryLock(50)).toBeUndefined()
    const waiting = locks.getLock(name).lock()
    await waitFor(() => locks.snapshot().waiting.length === 1, { what: 'the waiter' })
    await waitFor(
      async () =>
        Number(((await redis.call('PUBSUB', 'NUMSUB', `redisson_lock__channel:{${name}}`)) as unknown[])[1]) === 1,
      { what: 'its subscription' },
    )
    await redis.del(name)
    await redis.publish(`redisson_lock__channel:{${name}}`, '0')
    expect((await waiting).isHeld).toBe(true)
  })
})

describe('owners', () => {
  test('an owner named by a number is not mistaken for one without a name', async () => {
    const locks = open()
    const lock = locks.getLock(fresh())
    const handle = await lock.lock()
    for (let number = 0; number < 20; number++) {
      for (const owner of [String(number), `#${number}`, `##${number}`])
        expect(await lock.tryLock(0, undefined, { owner })).toBeUndefined()
    }
    await handle.unlock()
    // Nor does one name affect another.
    await lock.lock({ owner: '#1' })
    expect(await lock.tryLock(0, undefined, { owner: '##1' })).toBeUndefined()
    expect(lock.isHeld({ owner: '1' })).toBe(false)
    expect(await lock.unlock({ owner: '#1' })).toBe(true)
  })

  test('the holder of a fair lock re-enters the plain one of the same name, and leaves it as often', async () => {
    const [here, there] = [open(), open()]
    const name = fresh()
    const [fair, plain] = [here.getFairLock(name), here.getLock(name)]
    const isFree = async () => (await there.getLock(name).tryLock())?.unlock()
    await here.asOwner(async () => {
      const outer = await fair.lock()
      const inner = await plain.lock()
      expect(outer.holdCount).toBe(2)
      await inner.unlock()
      expect(await isFree()).toBeUndefined()
      expect(await outer.unlock()).toBe(true)
    })
    expect(await isFree()).toBe(true)
    await fair.withLock(() => plain.withLock(({ holdCount }) => expect(holdCount).toBe(2), { waitMs: 5000 }))
    expect(here.metrics().lost).toEqual({ expired: 0, taken: 0 })
  })
})
