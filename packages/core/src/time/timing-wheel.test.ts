import { FakeClock, scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { TimingWheel } from './timing-wheel.ts'

function makeWheel(tickMs = 1, maxTimers?: number) {
  const clock = new FakeClock()
  const due: string[] = []
  const limit = maxTimers === undefined ? {} : { maxTimers }
  const wheel = new TimingWheel<string>({ clock, tickMs, ...limit, onDue: (value) => void due.push(value) })
  const advance = (ms: number) => {
    clock.advance(ms)
    wheel.advance()
    return due.splice(0)
  }
  return { clock, wheel, due, advance }
}

test('timers fire at their time, not before, in the order of their times', () => {
  const { wheel, advance } = makeWheel()
  for (const delayMs of [5, 3, 64, 63, 4096, 4095, 300_000, 1]) wheel.set(delayMs, `${delayMs}`)
  expect(advance(0)).toEqual([])
  expect(advance(1)).toEqual(['1'])
  expect(advance(3)).toEqual(['3'])
  expect(advance(58)).toEqual(['5'])
  expect(advance(1)).toEqual(['63'])
  expect(advance(1)).toEqual(['64'])
  expect(advance(4030)).toEqual([])
  expect(advance(2)).toEqual(['4095', '4096'])
  expect(advance(295_903)).toEqual([])
  expect(advance(1)).toEqual(['300000'])
  expect(wheel.size).toBe(0)
})

test('any timers, with any steps of the clock, fire in the order of a sorted list', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('set' as const), ms: fc.oneof(fc.nat(200), fc.nat(20_000), fc.nat(2_000_000)) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.oneof(fc.nat(100), fc.nat(5000), fc.nat(1_000_000)) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), fc.constantFrom(1, 7, 10), (steps, tickMs) => {
      const { clock, wheel, advance } = makeWheel(tickMs)
      const startMs = clock.now()
      /** `tick`: the one at which it fires; for a timer that is set for now, the next one. */
      const set: { value: string; atMs: number; tick: number }[] = []
      const done = new Set<string>()
      for (const [nth, { kind, ms }] of steps.entries()) {
        if (kind === 'set') {
          expect(wheel.set(ms, `${nth}`)).toBe(true)
          const next = Math.floor((clock.now() - startMs) / tickMs) + 1
          const atMs = clock.now() + ms
          set.push({ value: `${nth}`, atMs, tick: Math.max(next, Math.ceil((atMs - startMs) / tickMs)) })
        } else {
          const tick = Math.floor((clock.now() + ms - startMs) / tickMs)
          const isDue = ({ atMs, value }: (typeof set)[0]) =>
            !done.has(value) && Math.ceil((atMs - startMs) / tickMs) <= tick
          const expected = set.filter(isDue).map(({ value }) => value)
          const fired = advance(ms)
          const early = fired.filter((value) => !expected.includes(value))
          expect(early).toEqual([])
          for (const value of fired) done.add(value)
          const left = expected.filter((value) => !fired.includes(value))
          for (const value of left)
            expect(set.find((timer) => timer.value === value)!.atMs).toBeGreaterThan(clock.now() - ms - tickMs)
          const ticks = fired.map((value) => set.find((timer) => timer.value === value)!.tick)
          expect(ticks).toEqual([...ticks].sort((a, b) => a - b))
        }
        expect(wheel.size).toBe(set.length - done.size)
      }
    }),
    { numRuns: scale(150, 2000) },
  )
})

test('a timer that fires may set others', () => {
  const clock = new FakeClock()
  const seen: string[] = []
  const wheel = new TimingWheel<() => void>({ clock, tickMs: 1, onDue: (act) => act() })
  for (const name of ['first', 'second']) {
    wheel.set(4, () => {
      seen.push(name)
      wheel.set(0, () => seen.push(`${name} again`))
      wheel.set(64, () => seen.push(`${name} a turn later`))
    })
  }
  clock.advance(20)
  wheel.advance()
  expect(seen.splice(0)).toEqual(['first', 'second', 'first again', 'second again'])
  clock.advance(80)
  wheel.advance()
  expect(seen).toEqual(['first a turn later', 'second a turn later'])
  expect(wheel.size).toBe(0)
})

test('the number of timers is bounded', () => {
  const { wheel, advance } = makeWheel(1, 100)
  const taken = Array.from({ length: 101 }, (_, nth) => wheel.set(nth, `${nth}`))
  expect(taken.filter((isSet) => !isSet).length).toBe(1)
  expect(advance(1)).toEqual(['0', '1'])
  expect([wheel.set(5, 'more'), wheel.set(5, 'and more'), wheel.set(5, 'too many')]).toEqual([true, true, false])
  expect(() => makeWheel(0)).toThrow(InvalidOptionError)
})

test('a clock that jumps a year does not cost a year of ticks', () => {
  const { wheel, advance } = makeWheel()
  wheel.set(365 * 86_400_000, 'a year')
  const started = performance.now()
  expect(advance(365 * 86_400_000 - 1)).toEqual([])
  expect(advance(1)).toEqual(['a year'])
  expect(performance.now() - started).toBeLessThan(5000)
})
