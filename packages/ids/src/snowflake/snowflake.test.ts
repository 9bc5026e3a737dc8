import { systemRuntime } from '@firebreak/core'
import { FakeClock } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { IdsError } from '../errors.ts'
import { DecimalCounter } from './decimal-counter.ts'
import { decodeSnowflake, defaultEpochMs, maxElapsedMs } from './layout.ts'
import { Snowflake } from './snowflake.ts'

function codeOf(action: () => unknown): string | undefined {
  try {
    action()
  } catch (error) {
    return (error as IdsError).code
  }
  return undefined
}

test('an id is 1 + 41 + 10 + 12 bits of time, worker and sequence', () => {
  const clock = new FakeClock(defaultEpochMs + 5)
  const snowflake = new Snowflake({ workerId: 3, clock, runtime: { ...systemRuntime, random: () => 0.07 } })
  expect(snowflake.nextBigInt()).toBe((5n << 22n) | (3n << 12n) | 7n)
  expect(snowflake.next()).toBe(String((5n << 22n) | (3n << 12n) | 8n))
})

test('decode returns time, worker and sequence for any of them, as text and as BigInt', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: maxElapsedMs }),
      fc.integer({ min: 0, max: 1023 }),
      fc.integer({ min: 0, max: 99 }),
      fc.integer({ min: 0, max: 1_600_000_000_000 }),
      (elapsedMs, workerId, sequence, epochMs) => {
        const clock = new FakeClock(epochMs + elapsedMs)
        const runtime = { ...systemRuntime, random: () => (sequence + 0.5) / 100 }
        const snowflake = new Snowflake({ workerId, epochMs, clock, runtime })
        const id = snowflake.next()
        const expected = { id, timestampMs: epochMs + elapsedMs, workerId, sequence }
        expect(decodeSnowflake(id, epochMs)).toMatchObject(expected)
        expect(decodeSnowflake(BigInt(id), epochMs)).toMatchObject(expected)
        expect(BigInt(id)).toBeLessThan(1n << 63n)
        expect(JSON.parse(JSON.stringify({ id })).id).toBe(id)
      },
    ),
  )
})

test('decode refuses anything but an id', () => {
  for (const id of ['', 'x', '-1', '1.5', '9223372036854775808', '99999999999999999999', -1n]) {
    expect(codeOf(() => decodeSnowflake(id))).toBe('FB_IDS_ID_INVALID')
  }
})

test('each millisecond starts its sequence at random from 0 to 99', () => {
  const clock = new FakeClock()
  const snowflake = new Snowflake({ workerId: 1, clock })
  const starts = new Set<number>()
  for (let index = 0; index < 3000; index++) {
    clock.step(1)
    starts.add(decodeSnowflake(snowflake.next()).sequence)
  }
  expect(Math.min(...starts)).toBe(0)
  expect(Math.max(...starts)).toBe(99)
  expect(starts.size).toBe(100)
})

test('text and BigInt ids of one generator form one increasing sequence over milliseconds and carries', () => {
  const clock = new FakeClock()
  const snowflake = new Snowflake({ workerId: 1023, clock })
  let last = 0n
  for (let index = 0; index < 50_000; index++) {
    if (index % 3000 === 2999) clock.step(1)
    const id = index % 7 === 0 ? snowflake.nextBigInt() : BigInt(snowflake.next())
    expect(id > last).toBe(true)
    last = id
  }
})

test('a used-up millisecond is waited out, and a clock that stands still is an error, not an endless loop', () => {
  const clock = new FakeClock()
  const snowflake = new Snowflake({ workerId: 1, clock, runtime: { ...systemRuntime, random: () => 0 } })
  const ids = new Set(snowflake.nextMany(4096))
  expect(ids.size).toBe(4096)
  expect(codeOf(() => snowflake.next())).toBe('FB_IDS_CLOCK_STALLED')
  clock.step(1)
  expect(ids.has(snowflake.next())).toBe(false)
})

test('a process that was descheduled in the middle of a wait does not blame the clock', () => {
  const clock = new FakeClock()
  // Each reading of the monotonic clock finds that a second has passed, on the wall clock too.
  let steadyMs = 0
  const steady = {
    now() {
      if (steadyMs > 0) clock.step(1000)
      return (steadyMs += 1000)
    },
  }
  const runtime = { ...systemRuntime, clock: steady, random: () => 0 }
  const snowflake = new Snowflake({ workerId: 1, clock, runtime })
  const ids = new Set(snowflake.nextMany(4097))
  expect(ids.size).toBe(4097)
})

test('on the real clock 200,000 ids in a tight loop are unique, increasing, and at most 4,096 a millisecond', () => {
  const snowflake = new Snowflake({ workerId: 5 })
  const perMillisecond = new Map<bigint, number>()
  let last = 0n
  for (let index = 0; index < 200_000; index++) {
    const id = snowflake.nextBigInt()
    if (id <= last) expect.fail(`${id} after ${last}`)
    last = id
    const time = id >> 22n
    perMillisecond.set(time, (perMillisecond.get(time) ?? 0) + 1)
  }
  expect(Math.max(...perMillisecond.values())).toBeLessThanOrEqual(4096)
})

describe('a clock that steps back', () => {
  test('by up to 5 ms makes callers wait', () => {
    const times = [1000, 995, 996, 997, 998, 999, 1000, 1000]
    const clock = { now: () => defaultEpochMs + (times.length > 1 ? times.shift()! : times[0]!) }
    // The constructor reads the clock once.
    times.unshift(1000)
    const snowflake = new Snowflake({ workerId: 1, clock })
    const first = snowflake.nextBigInt()
    const second = snowflake.nextBigInt()
    expect(second).toBe(first + 1n)
  })

  test('by 6 ms is an error at once, on every call, until the clock has caught up', () => {
    const clock = new FakeClock()
    const snowflake = new Snowflake({ workerId: 1, clock })
    const first = snowflake.nextBigInt()
    clock.step(-6)
    for (let call = 0; call < 3; call++) {
      expect(codeOf(() => snowflake.next())).toBe('FB_IDS_CLOCK_BACKWARD')
      expect(codeOf(() => snowflake.check())).toBe('FB_IDS_CLOCK_BACKWARD')
    }
    clock.step(7)
    snowflake.check()
    expect(snowflake.nextBigInt() > first).toBe(true)
  })

  test('never repeats or lowers an id, whatever the steps', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -40, max: 40 }), { maxLength: 200 }), (steps) => {
        const clock = new FakeClock()
        let runaway = 0
        // The monotonic clock runs ahead, so that waiting for a stopped fake clock ends at once.
        const snowflake = new Snowflake({
          workerId: 1,
          clock,
          runtime: { ...systemRuntime, clock: { now: () => (runaway += 100) } },
        })
        let last = 0n
        for (const step of steps) {
          clock.step(step)
          try {
            const id = snowflake.nextBigInt()
            expect(id > last).toBe(true)
            last = id
          } catch (error) {
            expect(error).toBeInstanceOf(IdsError)
          }
        }
      }),
    )
  })
})

describe('the mark', () => {
  test('is extended before the first id beyond it, and no id is issued if it cannot be', () => {
    const clock = new FakeClock()
    let isBroken = false
    const mark = {
      untilMs: clock.now(),
      extend(nowMs: number) {
        if (isBroken) throw new Error('disk full')
        this.untilMs = nowMs + 10
      },
    }
    const snowflake = new Snowflake({ workerId: 1, clock, mark })
    snowflake.next()
    clock.step(1)
    snowflake.next()
    expect(mark.untilMs).toBe(clock.now() + 10)
    clock.step(11)
    isBroken = true
    expect(() => snowflake.next()).toThrow('disk full')
    expect(() => snowflake.next()).toThrow('disk full')
    isBroken = false
    expect(decodeSnowflake(snowflake.next()).timestampMs).toBe(clock.now())
  })

  test('of an earlier run is respected: ids have later times', () => {
    const clock = new FakeClock()
    const snowflake = new Snowflake({ workerId: 1, clock, afterMs: clock.now() + 2 })
    clock.step(3)
    expect(decodeSnowflake(snowflake.next()).timestampMs).toBe(clock.now())
    expect(codeOf(() => new Snowflake({ workerId: 1, clock, afterMs: clock.now() + 50 }).next())).toBe(
      'FB_IDS_CLOCK_BACKWARD',
    )
  })
})

test('options out of range are refused by the constructor', () => {
  for (const workerId of [-1, 1024, 1.5, Number.NaN]) {
    expect(codeOf(() => new Snowflake({ workerId }))).toBe('FB_OPTION_INVALID')
  }
  expect(codeOf(() => new Snowflake({ workerId: 1, epochMs: Date.now() + 60_000 }))).toBe('FB_OPTION_INVALID')
  expect(codeOf(() => new Snowflake({ workerId: 1, maxBackwardMs: -1 }))).toBe('FB_OPTION_INVALID')
})

test('time past 41 bits is an error, not an id with another sign', () => {
  const clock = new FakeClock(maxElapsedMs + 1)
  expect(codeOf(() => new Snowflake({ workerId: 1, epochMs: 0, clock }).next())).toBe('FB_IDS_CLOCK_REFUSED')
})

test('the decimal counter counts as BigInt does, from any start', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: (1n << 63n) - 1n }), (start) => {
      const counter = new DecimalCounter()
      for (const from of [start, start % 10_050n]) {
        counter.reset(from)
        for (let index = 0n; index < 60n; index++) expect(counter.next()).toBe(String(from + index))
      }
    }),
  )
})
