import { waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { oneRedis } from '../testing/one-redis.ts'

const redis = oneRedis()
const { open, freshName } = redis

describe('read-write lock', () => {
  test('many read or one writes, never both at the same time', async () => {
    const clients = [open(), open()]
    const name = freshName()
    let readers = 0
    let mostReaders = 0
    let writers = 0
    const task = async (index: number) => {
      const { read, write } = clients[index % 2]!.getReadWriteLock(name)
      if (index % 5 === 0) {
        await write.withLock(async () => {
          expect(++writers + readers).toBe(1)
          await redis.client.ping()
          writers--
        })
      } else {
        await read.withLock(async () => {
          mostReaders = Math.max(mostReaders, ++readers)
          expect(writers).toBe(0)
          await redis.client.ping()
          readers--
        })
      }
    }
    await Promise.all(Array.from({ length: 60 }, (_, index) => task(index)))
    expect(mostReaders).toBeGreaterThan(1)
  })

  test('each reader has its own lease: renewals of others do not keep a dead one alive', async () => {
    const locks = open({ leaseMs: 2400 })
    const name = freshName()
    const { read, write } = locks.getReadWriteLock(name)
    const renewed = await read.lock()
    const dying = (await read.tryLock(0, 400))!
    const readers = `firebreak_rw_readers:{${name}}`
    expect(await redis.client.zcard(readers)).toBe(2)
    const before = locks.metrics().renewals
    await waitFor(() => locks.metrics().renewals >= before + 4)
    expect(renewed.isHeld).toBe(true)
    expect(dying.isHeld).toBe(false)
    await renewed.unlock()
    expect((await write.tryLock())?.isHeld).toBe(true)
  })

  test('a waiting writer blocks new readers, and lets them in when it gives up', async () => {
    const locks = open()
    const { read, write } = locks.getReadWriteLock(freshName())
    const first = await read.lock()
    const giving = new AbortController()
    const writing = write.lock({ signal: giving.signal })
    const refused = expect(writing).rejects.toThrow('no more')
    await waitFor(() => locks.snapshot().waiting.some(({ kind }) => kind === 'write'))
    await waitFor(async () => (await read.tryLock().then((handle) => handle?.unlock())) === undefined)
    const late = read.lock()
    giving.abort(new Error('no more'))
    await refused
    expect((await late).isHeld).toBe(true)
    await first.unlock()
  })

  test('the last reader wakes the writer, and the writer all readers', async () => {
    const [here, there] = [open(), open()]
    const name = freshName()
    const readers = await Promise.all([
      here.getReadWriteLock(name).read.lock(),
      here.getReadWriteLock(name).read.lock(),
    ])
    const writing = there.getReadWriteLock(name).write.lock()
    await waitFor(() => there.snapshot().waitingCount === 1)
    const startedAt = performance.now()
    for (const reader of readers) await reader.unlock()
    const writer = await writing
    const waiting = Array.from({ length: 5 }, () => here.getReadWriteLock(name).read.lock())
    await waitFor(() => here.snapshot().waitingCount === 5)
    await writer.unlock()
    await Promise.all(waiting)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test('a writer may read and downgrade; a reader cannot become a writer; both re-enter', async () => {
    const locks = open()
    const { read, write } = locks.getReadWriteLock(freshName())
    let stepped: Awaited<ReturnType<typeof read.lock>> | undefined
    await write.withLock(async () => {
      await write.withLock((inner) => expect(inner.holdCount).toBe(2))
      stepped = await read.lock()
    })
    expect(await write.tryLock()).toBe(undefined)
    await stepped!.unlock()
    await read.withLock(async () => {
      await read.withLock((inner) => expect(inner.holdCount).toBe(2))
      await expect(write.lock()).rejects.toMatchObject({ code: 'FB_LOCK_UPGRADE' })
    })
    expect((await write.tryLock())?.isHeld).toBe(true)
  })
})
