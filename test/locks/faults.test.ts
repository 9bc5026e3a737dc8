import { type RedisServer, scale, startRedis, waitFor } from '@firebreak/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import { Guard, overlaps, startWorker, steadyNow, type Worker } from './fleet.ts'

const repeats = scale(2, 20)
/** Twenty repeats of a fault take minutes on a busy machine. */
const timeout = scale(60_000, 600_000)
let server: RedisServer
const workers: Worker[] = []

async function start(count: number, leaseMs: number): Promise<Worker[]> {
  server = await startRedis()
  workers.push(...(await Promise.all(Array.from({ length: count }, () => startWorker(server.port, leaseMs)))))
  return workers
}

afterEach(async () => {
  await Promise.all(workers.splice(0).map(({ child }) => child.stop(500)))
  await server.stop()
})

/** A holder and a waiter that gets the lock after it. */
async function holderAndWaiter(name: string): Promise<{ holder: Worker; waiter: Worker; token: number; from: number }> {
  const [holder, waiter] = workers as [Worker, Worker]
  const from = holder.events.length
  const waiterFrom = waiter.events.length
  holder.tell({ do: 'hold', name })
  const { token } = await holder.heard('held', from)
  waiter.tell({ do: 'hold', name })
  await waitFor(async () => (await server.cli('PUBSUB', 'NUMSUB', `redisson_lock__channel:{${name}}`)).endsWith('1'))
  return { holder, waiter: { ...waiter, heard: (event) => waiter.heard(event, waiterFrom) }, token: token!, from }
}

describe('never two holders at the same time', { timeout }, () => {
  test('in 4 processes with 5 waiters each', async () => {
    await start(4, 5000)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `contended ${repeat}`
      const from = workers.map(({ events }) => events.length)
      for (const worker of workers) worker.tell({ do: 'contend', name, tasks: 5, rounds: 10 })
      await Promise.all(workers.map((worker, index) => worker.heard('contended', from[index])))
      const events = workers.flatMap(({ events }, index) => events.slice(from[index]))
      expect(overlaps(events)).toEqual({ count: 0, entries: 200, isTokenOrder: true })
      expect(events.some(({ event }) => event === 'lost')).toBe(false)
    }
  })

  test('when command and message connections are killed all the time', async () => {
    await start(4, 2000)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `killed ${repeat}`
      const from = workers.map(({ events }) => events.length)
      for (const worker of workers) worker.tell({ do: 'contend', name, tasks: 5, rounds: 10 })
      const done = Promise.all(workers.map((worker, index) => worker.heard('contended', from[index])))
      let isDone = false
      done.then(
        () => (isDone = true),
        () => (isDone = true),
      )
      let kills = 0
      await waitFor(
        async () => {
          await server.cli('CLIENT', 'KILL', 'TYPE', kills++ % 2 === 0 ? 'normal' : 'pubsub')
          return isDone
        },
        { everyMs: 30, timeoutMs: 50_000 },
      )
      await done
      const events = workers.flatMap(({ events }, index) => events.slice(from[index]))
      expect(overlaps(events)).toEqual({ count: 0, entries: 200, isTokenOrder: true })
      expect(kills).toBeGreaterThan(1)
    }
  })

  test('when the holder is killed: the next gets it at the end of the lease, not earlier, with a higher token', async () => {
    const leaseMs = 600
    await start(2, leaseMs)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const { holder, waiter, token } = await holderAndWaiter(`orphan ${repeat}`)
      const leftMs = Number(await server.cli('PTTL', `orphan ${repeat}`))
      const killedAt = steadyNow()
      holder.child.signal('SIGKILL')
      const next = await waiter.heard('held')
      expect(next.token).toBeGreaterThan(token)
      // The lease was renewed at most once after the check; it expired on Redis' clock, within a millisecond.
      expect(next.at - killedAt).toBeGreaterThan(Math.min(leftMs, (leaseMs * 2) / 3) - 50)
      expect(next.at - killedAt).toBeLessThan(leaseMs + 5000)
      workers[1]!.tell({ do: 'unlock', name: '' })
      await waiter.heard('unlocked')
      workers[0] = await startWorker(server.port, leaseMs)
    }
  })

  test('when Redis is paused under a lease', async () => {
    await start(3, 4000)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `paused ${repeat}`
      const from = workers.map(({ events }) => events.length)
      for (const worker of workers) worker.tell({ do: 'contend', name, tasks: 3, rounds: 20 })
      await workers[0]!.heard('enter', from[0])
      server.child.signal('SIGSTOP')
      const resumeAt = steadyNow() + 250
      await waitFor(() => steadyNow() > resumeAt)
      server.child.signal('SIGCONT')
      await Promise.all(workers.map((worker, index) => worker.heard('contended', from[index])))
      const events = workers.flatMap(({ events }, index) => events.slice(from[index]))
      expect(overlaps(events)).toEqual({ count: 0, entries: 180, isTokenOrder: true })
      expect(events.some(({ event }) => event === 'lost')).toBe(false)
    }
  })
})

describe('if two processes inevitably believe they hold it, the stale one is notified at once and refused', {
  timeout,
}, () => {
  const leaseMs = 500

  test('a holder that was paused for two leases', async () => {
    await start(2, leaseMs)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `stopped ${repeat}`
      const guard = new Guard()
      const { holder, waiter, token, from } = await holderAndWaiter(name)
      expect(guard.accepts(token)).toBe(true)
      holder.child.signal('SIGSTOP')
      const stoppedAt = steadyNow()
      const next = await waiter.heard('held')
      expect(guard.accepts(next.token!)).toBe(true)
      await waitFor(() => steadyNow() - stoppedAt > 2 * leaseMs)
      const resumedAt = steadyNow()
      holder.child.signal('SIGCONT')
      const lost = await holder.heard('lost', from)
      expect(lost.at - resumedAt).toBeLessThan(500)
      expect(guard.accepts(token)).toBe(false)
      await expectHarmlessUnlock(holder, name, from)
      workers[1]!.tell({ do: 'unlock', name })
      expect((await waiter.heard('unlocked')).result).toBe(true)
    }
  })

  test('a holder whose event loop was blocked for two leases', async () => {
    await start(2, leaseMs)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `blocked ${repeat}`
      const guard = new Guard()
      const { holder, waiter, token, from } = await holderAndWaiter(name)
      expect(guard.accepts(token)).toBe(true)
      holder.tell({ do: 'block', name, ms: 2 * leaseMs })
      const next = await waiter.heard('held')
      expect(guard.accepts(next.token!)).toBe(true)
      const resumed = await holder.heard('resumed', from)
      // True even before any timer or message could run.
      expect(resumed.isHeld).toBe(false)
      const lost = await holder.heard('lost', from)
      expect(lost.at - resumed.at).toBeLessThan(500)
      expect(guard.accepts(token)).toBe(false)
      await expectHarmlessUnlock(holder, name, from)
      workers[1]!.tell({ do: 'unlock', name })
      expect((await waiter.heard('unlocked')).result).toBe(true)
    }
  })

  test('Redis restarted empty under the holder: tokens continue above the old ones', async () => {
    await start(2, 5000)
    for (let repeat = 0; repeat < repeats; repeat++) {
      const name = `emptied ${repeat}`
      const guard = new Guard()
      const { holder, waiter, token, from } = await holderAndWaiter(name)
      expect(guard.accepts(token)).toBe(true)
      server.child.signal('SIGKILL')
      await server.child.exited
      server = await server.restart()
      const resumedAt = steadyNow()
      const next = await waiter.heard('held')
      expect(next.token).toBeGreaterThan(token)
      expect(guard.accepts(next.token!)).toBe(true)
      const lost = await holder.heard('lost', from)
      expect(lost.reason).toBe('taken')
      // The clients of the workers wait up to 200 ms before they connect again.
      expect(lost.at - resumedAt).toBeLessThan(500)
      expect(guard.accepts(token)).toBe(false)
      await expectHarmlessUnlock(holder, name, from)
      workers[1]!.tell({ do: 'unlock', name })
      expect((await waiter.heard('unlocked')).result).toBe(true)
    }
  })

  /** The stale holder's unlock says that the lock had been lost, and the new holder keeps it. */
  async function expectHarmlessUnlock(holder: Worker, name: string, from: number): Promise<void> {
    const before = await server.cli('HGETALL', name)
    holder.tell({ do: 'unlock', name })
    expect(await holder.heard('unlocked', from)).toMatchObject({ result: false, isHeld: false })
    expect(await server.cli('HGETALL', name)).toBe(before)
    expect(before).not.toBe('')
  }
})

test('no wait is longer than a second in alternating lock/unlock pairs of two processes', { timeout }, async () => {
  await start(2, 10_000)
  for (const worker of workers) worker.tell({ do: 'alternate', name: 'pairs', rounds: scale(1500, 10_000) })
  const results = await Promise.all(workers.map((worker) => worker.heard('alternated')))
  for (const { longestMs } of results) expect(longestMs).toBeLessThan(1000)
})
