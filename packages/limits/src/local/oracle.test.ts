import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Answer } from '../answer.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { spanMs } from '../spec/specs.ts'
import { history, specs } from '../testing/histories.ts'
import { admits, free, isUnused, type Oracle, oracleOf } from '../testing/oracle.ts'
import { localLimiter } from './local-limiter.ts'

const startMs = Date.UTC(2026, 2, 28, 21, 30)

function reachOf(spec: LimitSpec): number {
  return spec.kind === 'calendarWindow' ? 7_200_000 : spanMs(spec)
}

function check(spec: LimitSpec, oracle: Oracle, nowMs: number, cost: number, answer: Answer): void {
  const isAdmitted = admits(oracle, nowMs, cost)
  expect(answer.allowed).toBe(isAdmitted)
  if (isAdmitted) {
    expect(answer.retryAfterMs).toBe(0)
    if (spec.kind === 'leakyQueue' && cost > 0) {
      // The call leaves when all units before its last one have left.
      const delay = answer.delayMs
      if (cost > 0) oracle.charge(nowMs, cost)
      const from = Math.max(nowMs, oracle.standsUntil!())
      expect(admits(oracle, from + delay, spec.queue)).toBe(true)
      if (delay > 0) expect(admits(oracle, from + delay - 1, spec.queue)).toBe(false)
    } else {
      expect(answer.delayMs).toBe(0)
      if (cost > 0) oracle.charge(nowMs, cost)
    }
  } else if (cost > oracle.limit) expect(answer.retryAfterMs).toBe(null)
  else {
    expect(admits(oracle, nowMs + answer.retryAfterMs! - 1, cost)).toBe(false)
    expect(admits(oracle, nowMs + answer.retryAfterMs!, cost)).toBe(true)
  }
  expect(answer.remaining).toBe(free(oracle, nowMs))
  expect(isUnused(oracle, nowMs + answer.resetMs)).toBe(true)
  if (answer.resetMs > 0) expect(isUnused(oracle, nowMs + answer.resetMs - 1)).toBe(false)
}

test.each(Object.entries(specs))(
  '%s answers exactly like the rational oracle, to the millisecond, whatever the clock does',
  (_, spec) => {
    const cases = spec.chain((made) =>
      fc.tuple(fc.constant(made), history(reachOf(made), { stepsBack: true, refunds: true })),
    )
    fc.assert(
      fc.property(cases, ([made, steps]) => {
        let now = startMs
        const limiter = localLimiter(made, { clock: { now: () => now } })
        const oracle = oracleOf(made)
        for (const { moveMs, call, cost } of steps) {
          now = Math.max(0, now + moveMs)
          // A refund of nothing does not even check.
          if (call !== 'refund' || cost > 0) oracle.look(now)
          if (call === 'refund') {
            limiter.refund('k', cost)
            if (cost > 0) oracle.refund(now, cost)
          } else check(made, oracle, now, call === 'peek' ? 0 : cost, limiter.take('k', call === 'peek' ? 0 : cost))
        }
      }),
      { numRuns: scale(300, 3000) },
    )
  },
)

test('1/3 a second does not drift over a million refills', () => {
  let now = startMs
  const limiter = localLimiter(
    { kind: 'tokenBucket', capacity: 1, refill: 1, perMs: 3000 },
    { clock: { now: () => now } },
  )
  expect(limiter.take('k').allowed).toBe(true)
  for (let index = 0; index < 1_000_000; index++) {
    now += 2999
    if (limiter.take('k').allowed) throw new Error(`admitted 1 ms early at refill ${index}`)
    now += 1
    if (!limiter.take('k').allowed) throw new Error(`denied at refill ${index}`)
  }
})
