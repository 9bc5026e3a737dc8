import { type RedisServer, scale, startRedis } from '@firebreak/testkit'
import fc from 'fast-check'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { localLimiter } from '../local/local-limiter.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { concurrency, spanMs } from '../spec/specs.ts'
import { history, specs } from '../testing/histories.ts'
import { redisLimiter } from './redis-limiter.ts'

let server: RedisServer
let client: Ioredis
let keys = 0
beforeAll(async () => {
  server = await startRedis()
  client = new Ioredis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const startMs = Date.UTC(2026, 2, 28, 21, 30)

function casesOf(spec: fc.Arbitrary<LimitSpec>) {
  return spec.chain((made) => {
    const reachMs = made.kind === 'calendarWindow' ? 7_200_000 : spanMs(made)
    return fc.tuple(fc.constant(made), history(reachMs, { stepsBack: true, refunds: true }))
  })
}

test.each(Object.entries(specs))(
  '%s on Redis answers every history like the one in process, whatever the clock does',
  async (_, spec) => {
    await fc.assert(
      fc.asyncProperty(casesOf(spec), async ([made, steps]) => {
        const clock = { at: startMs, now: () => clock.at }
        const local = localLimiter(made, { clock })
        const shared = redisLimiter(made, client, { testClock: clock, deadlineMs: 20_000 })
        const key = `k${keys++}`
        for (const { moveMs, call, cost } of steps) {
          clock.at += moveMs
          if (call === 'refund') {
            local.refund(key, cost)
            await shared.refund(key, cost)
          } else {
            const wanted = call === 'peek' ? local.peek(key) : local.take(key, cost)
            const given = await (call === 'peek' ? shared.peek(key) : shared.take(key, cost))
            expect(given).toEqual({ ...wanted, source: 'redis' })
          }
        }
      }),
      { numRuns: scale(40, 1000) },
    )
  },
)

test.each(Object.entries(specs))(
  '%s: calls of one turn become one script call and are answered as if they had come one by one',
  async (_, spec) => {
    await fc.assert(
      fc.asyncProperty(casesOf(spec), async ([made, steps]) => {
        const clock = { now: () => startMs }
        const local = localLimiter(made, { clock })
        const shared = redisLimiter(made, client, { testClock: clock, deadlineMs: 20_000 })
        const names = [`a${keys}`, `b${keys++}`]
        const takes = steps.map(({ cost, moveMs }) => ({ key: names[moveMs & 1]!, cost }))
        const wanted = takes.map(({ key, cost }) => ({ ...local.take(key, cost), source: 'redis' }))
        const given = await Promise.all(takes.map(({ key, cost }) => shared.take(key, cost)))
        expect(given).toEqual(wanted)
      }),
      { numRuns: scale(40, 1000) },
    )
  },
)

test('concurrency: holds taken and returned in parts under request ids are the same on Redis as in process', async () => {
  const leaseMs = 1000
  const step = fc.record({
    moveMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: -leaseMs, max: leaseMs })),
    call: fc.constantFrom('take', 'take', 'refund'),
    units: fc.integer({ min: 1, max: 4 }),
    id: fc.constantFrom('a', 'b', 'a:1'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 30 }), async (steps) => {
      const clock = { at: startMs, now: () => clock.at }
      const spec = concurrency({ limit: 6, leaseMs })
      const local = localLimiter(spec, { clock })
      const shared = redisLimiter(spec, client, { testClock: clock, deadlineMs: 20_000 })
      const key = `k${keys++}`
      for (const { moveMs, call, units, id } of steps) {
        clock.at += moveMs
        if (call === 'refund') {
          local.refund(key, units, id)
          await shared.refund(key, units, id)
        } else {
          const wanted = { ...local.take(key, units, id), source: 'redis' }
          expect(await shared.take(key, units, id)).toEqual(wanted)
        }
        expect(await shared.peek(key)).toEqual({ ...local.peek(key), source: 'redis' })
      }
    }),
    { numRuns: scale(100, 2000) },
  )
})

/** Turns of the event loop: time passes, a key may be blocked or get units back, then come calls of one cost. */
function turnsOf(spec: fc.Arbitrary<LimitSpec>) {
  return spec.chain((made) => {
    const reachMs = made.kind === 'calendarWindow' ? 7_200_000 : spanMs(made)
    const turn = fc.record({
      moveMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: reachMs })),
      cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 14 })),
      callsOfKeys: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 3 }),
      blockMs: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.integer({ min: 0, max: reachMs })),
      refund: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 5 })),
    })
    return fc.tuple(fc.constant(made), fc.array(turn, { minLength: 1, maxLength: 12 }))
  })
}

test.each(Object.entries(specs))(
  '%s: equal calls of one turn, over several keys and with blocks, are answered as if they had come one by one',
  async (_, spec) => {
    await fc.assert(
      fc.asyncProperty(turnsOf(spec), async ([made, turns]) => {
        const clock = { at: startMs, now: () => clock.at }
        const local = localLimiter(made, { clock })
        const shared = redisLimiter(made, client, { testClock: clock, deadlineMs: 20_000 })
        const names = ['a', 'b', 'c'].map((name) => `${name}${keys}`)
        keys++
        for (const { moveMs, cost, callsOfKeys, blockMs, refund } of turns) {
          clock.at += moveMs
          if (blockMs !== undefined) {
            local.block(names[0]!, blockMs)
            await shared.block(names[0]!, blockMs)
          }
          local.refund(names[0]!, refund)
          await shared.refund(names[0]!, refund)
          const takes = callsOfKeys.flatMap((calls, key) => Array.from({ length: calls }, () => names[key]!))
          const wanted = takes.map((key) => ({ ...local.take(key, cost), source: 'redis' }))
          expect(await Promise.all(takes.map((key) => shared.take(key, cost)))).toEqual(wanted)
        }
      }),
      { numRuns: scale(25, 1000) },
    )
  },
)
