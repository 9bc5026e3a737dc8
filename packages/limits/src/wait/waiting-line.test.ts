import { FakeClock, fakeRuntime, seededRandom } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import type { Answer } from '../answer.ts'
import { localLimiter } from '../local/local-limiter.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { fixedWindow, leakyQueue, slidingLog, tokenBucket } from '../spec/specs.ts'
import { WaitingLine } from './waiting-line.ts'

const slow = tokenBucket({ capacity: 1, refill: 1, perMs: 100 })

/** A queue on top of an in-process limiter, with counts of its calls and timers. */
function countedLine(spec: LimitSpec, maxWaiting = 100_000) {
  const clock = new FakeClock()
  const limiter = localLimiter(spec, { clock })
  const work = { takes: 0, timers: 0 }
  const line = new WaitingLine({
    spec,
    take: (key, cost) => {
      work.takes++
      return limiter.take(key, cost)
    },
    peek: (key) => limiter.peek(key),
    refund: (key, cost) => limiter.refund(key, cost),
    isSynchronous: true,
    clock,
    timers: {
      setTimeout: (callback, delayMs) => {
        work.timers++
        return clock.setTimeout(callback, delayMs)
      },
      setInterval: (callback, delayMs) => clock.setInterval(callback, delayMs),
      setImmediate: (callback) => clock.setImmediate(callback),
    },
    maxWaiting,
  })
  return { clock, limiter, line, work }
}

function waiting(line: WaitingLine, count: number): { controllers: AbortController[]; outcomes: Promise<unknown>[] } {
  const controllers = Array.from({ length: count }, () => new AbortController())
  const outcomes = controllers.map(({ signal }) =>
    line.wait('k', 1, { signal, maxWaitMs: 1e9 }).catch((error) => error),
  )
  return { controllers, outcomes }
}

describe('leaving the queue', () => {
  const orders: Record<string, (index: number, count: number) => number> = {
    'from the front': (index) => index,
    'from the back': (index, count) => count - 1 - index,
    'in any order': (index, count) => (index * 7919) % count,
  }
  test.each(Object.entries(orders))(
    '%s: each takes the same time, however many wait, and leaves at once',
    (_, order) => {
      const count = 20_000
      const { line, limiter, work, clock } = countedLine(slow)
      limiter.take('k')
      const { controllers } = waiting(line, count)
      const before = { ...work, pending: clock.pending }
      for (let index = 0; index < count; index++) {
        controllers[order(index, count)]!.abort()
        expect(line.waiting).toBe(count - 1 - index)
      }
      // The limit is not checked for those who left, and nothing is set up for them.
      expect(work.takes - before.takes).toBeLessThanOrEqual(1)
      expect(work.timers - before.timers).toBeLessThanOrEqual(1)
      expect(clock.pending).toBe(0)
    },
  )

  test('the next in line is served when those before it have left, with one more question', async () => {
    const { line, limiter, work, clock } = countedLine(slow)
    limiter.take('k')
    const { controllers, outcomes } = waiting(line, 10_000)
    for (const controller of controllers.slice(0, -1)) controller.abort()
    const { takes } = work
    clock.advance(100)
    expect(await outcomes.at(-1)).toMatchObject({ allowed: true })
    expect(work.takes - takes).toBe(1)
    expect(line.waiting).toBe(0)
  })

  test('one that asks for less than the one before it, which has left, is tried at once', async () => {
    const { line, limiter } = countedLine(tokenBucket({ capacity: 5, refill: 1, perMs: 100 }))
    limiter.take('k', 3)
    const large = new AbortController()
    const gone = line.wait('k', 5, { signal: large.signal }).catch(() => 'gone')
    const small = line.wait('k', 1, {})
    large.abort()
    expect(await gone).toBe('gone')
    expect(await small).toMatchObject({ allowed: true })
  })

  test('maxWaiting counts those who wait, not those who left', async () => {
    const { line, limiter } = countedLine(slow, 2)
    limiter.take('k')
    const { controllers } = waiting(line, 2)
    await expect(line.wait('k', 1, {})).rejects.toMatchObject({ code: 'FB_LIMIT_WAIT_FULL' })
    controllers[0]!.abort()
    const { outcomes } = waiting(line, 1)
    expect(line.waiting).toBe(2)
    controllers[1]!.abort()
    expect(await Promise.race([outcomes[0], 'waits'])).toBe('waits')
  })

  test('one that leaves while the limit is checked gives back the units it was granted', async () => {
    let answer: (value: Answer) => void = () => {}
    let refunded = 0
    const runtime = fakeRuntime()
    const line = new WaitingLine({
      spec: slow,
      take: () => new Promise<Answer>((resolve) => (answer = resolve)),
      peek: () => Promise.reject(new Error('not asked')),
      refund: () => refunded++,
      isSynchronous: false,
      clock: runtime.clock,
      timers: runtime.timers,
      maxWaiting: 10,
    })
    const gone = new AbortController()
    const waits = line.wait('k', 1, { signal: gone.signal }).catch(() => 'gone')
    gone.abort()
    expect(await waits).toBe('gone')
    expect(line.waiting).toBe(0)
    answer({ allowed: true, remaining: 0, retryAfterMs: 0, resetMs: 0, delayMs: 0, source: 'redis' })
    await new Promise(setImmediate)
    expect(refunded).toBe(1)
  })
})

describe('maxWaitMs', () => {
  const specs: Record<string, [LimitSpec, servedWithin450ms: number]> = {
    'a bucket': [tokenBucket({ capacity: 1, refill: 1, perMs: 100 }), 4],
    'a window': [fixedWindow({ limit: 2, windowMs: 200, anchor: 'firstHit' }), 4],
    'a log': [slidingLog({ limit: 2, windowMs: 200 }), 4],
    'a queue': [leakyQueue({ intervalMs: 100, queue: 1 }), 3],
  }
  test.each(Object.entries(specs))(
    'refuses callers at once whose wait behind the others would be too long: %s',
    async (_, [spec, served]) => {
      const { line, limiter, clock } = countedLine(spec)
      for (let used = 0; limiter.take('k').allowed; used++) if (used > 10) throw new Error('no limit')
      const outcomes: string[] = []
      for (let index = 0; index < 50; index++) {
        line.wait('k', 1, { maxWaitMs: 450 }).then(
          () => outcomes.push('served'),
          (error) => outcomes.push(error.code),
        )
      }
      await new Promise(setImmediate)
      // Refused before any time has passed.
      const refusedAtOnce = outcomes.filter((outcome) => outcome === 'FB_LIMIT_WAIT_TOO_LONG').length
      await clock.advanceAsync(1000, 5)
      expect(outcomes).toHaveLength(50)
      expect(outcomes.filter((outcome) => outcome === 'served')).toHaveLength(served)
      expect(refusedAtOnce).toBe(50 - served)
      expect(line.waiting).toBe(0)
    },
  )

  test('no caller is refused at once that would have been served in time', async () => {
    const random = seededRandom(7)
    for (let round = 0; round < 40; round++) {
      const { line, clock } = countedLine(tokenBucket({ capacity: 3, refill: 1, perMs: 50 }))
      const asked = Array.from({ length: 20 }, () => ({
        cost: 1 + Math.floor(random() * 3),
        maxWaitMs: random() * 2000,
      }))
      const start = clock.now()
      let dueMs = 0
      let free = 3
      const waits = asked.map(({ cost, maxWaitMs }) => {
        // What the limit grants, in this order, to those who are admitted.
        const needed = Math.max(0, cost - free)
        const turn = dueMs + needed * 50
        const isServed = turn <= maxWaitMs
        if (isServed) {
          free = Math.max(0, free - cost)
          dueMs = turn
        }
        return line.wait('k', cost, { maxWaitMs }).then(
          () => ({ isServed, at: clock.now() - start, turn }),
          () => ({ isServed: !isServed ? false : ('refused' as const), at: 0, turn }),
        )
      })
      await clock.advanceAsync(4000, 5)
      for (const outcome of await Promise.all(waits)) expect(outcome.isServed).not.toBe('refused')
    }
  })

  test('one in the middle of the queue is refused when its time is over, although others took its units', async () => {
    const { line, limiter, clock } = countedLine(slow)
    limiter.take('k')
    const first = line.wait('k', 1, { maxWaitMs: 10_000 })
    const second = line.wait('k', 1, { maxWaitMs: 250 }).catch((error) => error)
    for (let step = 0; step < 4; step++) {
      clock.advance(99)
      clock.step(1)
      limiter.take('k')
    }
    expect(await second).toMatchObject({ code: 'FB_LIMIT_WAIT_TOO_LONG' })
    clock.advance(200)
    expect(await first).toMatchObject({ allowed: true })
  })
})

describe('a paced wait that is aborted', () => {
  const spec = leakyQueue({ intervalMs: 50, queue: 10 })

  test('gives its slot back: those behind it move up, and the next call gets the last one', async () => {
    const runtime = fakeRuntime()
    const { clock } = runtime
    const limiter = localLimiter(spec, { runtime })
    const start = clock.now()
    const left: string[] = []
    const controllers = ['a', 'b', 'c', 'd'].map((name) => {
      const controller = new AbortController()
      limiter.wait('k', 1, { signal: controller.signal }).then(
        () => left.push(`${name}@${clock.now() - start}`),
        () => {},
      )
      return controller
    })
    await new Promise(setImmediate)
    controllers[1]!.abort()
    expect(limiter.waiting).toBe(2)
    limiter.wait('k').then(() => left.push(`e@${clock.now() - start}`))
    await clock.advanceAsync(300, 10)
    expect(left).toEqual(['a@0', 'c@50', 'd@100', 'e@150'])
  })

  test('very many at once: each takes the same time, and the queue is empty again', async () => {
    const count = 20_000
    const { line, limiter, work, clock } = countedLine(leakyQueue({ intervalMs: 50, queue: count }))
    limiter.take('k')
    const { controllers } = waiting(line, count)
    const { timers } = work
    for (let index = 0; index < count; index++) controllers[(index * 7919) % count]!.abort()
    // The earlier take has one of the places.
    expect(limiter.peek('k').remaining).toBe(count)
    // Only the first has a timer, so another timer is set only if the first has left.
    expect(work.timers - timers).toBeLessThan(count)
    expect(line.waiting).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('a slot that is followed by a plain take is not given to a second call', async () => {
    const runtime = fakeRuntime()
    const { clock } = runtime
    const limiter = localLimiter(spec, { runtime })
    limiter.take('k')
    const gone = new AbortController()
    const waits = limiter.wait('k', 1, { signal: gone.signal }).catch(() => 'gone')
    expect(limiter.take('k').delayMs).toBe(100)
    gone.abort()
    expect(await waits).toBe('gone')
    expect(limiter.take('k').delayMs).toBe(150)
    await clock.advanceAsync(10)
  })
})
