import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { keySlot } from '../slots/key-slot.ts'
import { HeatWindow, type HeatWindowOptions } from './heat-window.ts'
import { type WindowRules, windowSlices } from './window-rules.ts'

const startMs = 1_700_000_000_123

/** Windows chosen by the first letters of a key; all other keys have one of a second. */
function rulesOf(windowsMs: Record<string, number> = {}): WindowRules & { matched: string[] } {
  const prefixes = Object.keys(windowsMs)
  const matched: string[] = []
  return {
    matched,
    windowsMs: [1000, ...Object.values(windowsMs)],
    match(bytes, start, end) {
      const key = Buffer.from(bytes.subarray(start, end)).toString()
      matched.push(key)
      return prefixes.findIndex((prefix) => key.startsWith(prefix)) + 1
    },
  }
}

function makeWindow(options: Partial<HeatWindowOptions> = {}) {
  const window = new HeatWindow({ rules: rulesOf(), startMs, ...options })
  const add = (key: string, count = 1) => {
    const buffer = Buffer.from(`[${key}]`)
    return window.add(buffer, 1, buffer.length - 1, count, window.dict.hash(buffer, 1, buffer.length - 1))
  }
  const at = (elapsedMs: number) => window.moveTo(startMs + elapsedMs)
  const heat = (key: string) => {
    const index = window.find(Buffer.from(key))
    return index < 0 ? undefined : window.heatOf(index)
  }
  const mark = (key: string, isMarked = true) => window.setMark(window.find(Buffer.from(key)), isMarked)
  return { window, add, at, heat, mark }
}

test('heat equals an exact count over the last ten slices, at any time, for any keys, with sweeps in between', () => {
  const step = fc.record({
    ms: fc.nat(350),
    key: fc.nat(12),
    count: fc.integer({ min: 1, max: 300 }),
    sweep: fc.nat(3),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
      const { window, add, at, heat } = makeWindow({ rules: rulesOf({ k1: 3000 }) })
      const log: { ms: number; key: string; count: number }[] = []
      let nowMs = 0
      for (const { ms, key, count, sweep } of steps) {
        at((nowMs += ms))
        const isKnown = heat(`k${key}`) !== undefined
        add(`k${key}`, count)
        expect(window.wasNew).toBe(!isKnown)
        expect(window.lastHeat).toBe(heat(`k${key}`))
        log.push({ ms: nowMs, key: `k${key}`, count })
        window.sweep(sweep)
        for (let id = 0; id <= 12; id++) {
          const sliceMs = (`k${id}`.startsWith('k1') ? 3000 : 1000) / windowSlices
          const slice = Math.floor(nowMs / sliceMs)
          const exact = log
            .filter((entry) => entry.key === `k${id}` && Math.floor(entry.ms / sliceMs) > slice - windowSlices)
            .reduce((sum, entry) => sum + entry.count, 0)
          expect(heat(`k${id}`) ?? 0).toBe(exact)
        }
      }
    }),
    { numRuns: scale(60, 600) },
  )
})

test('the slices of a key hold what arrived in each, newest first, with the age of the newest', () => {
  const { window, add, at } = makeWindow()
  let index = -1
  for (const [elapsedMs, count] of [
    [0, 5],
    [150, 7],
    [160, 1],
    [420, 2],
  ] as const) {
    at(elapsedMs)
    index = add('k', count)
  }
  at(530)
  const slices = new Float64Array(windowSlices + 1)
  window.slicesOf(index, slices)
  expect([...slices]).toEqual([0, 2, 0, 0, 8, 5, 0, 0, 0, 0, 30])
  at(1490)
  window.slicesOf(index, slices)
  expect([...slices]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90])
})

test('a key has its slot', () => {
  const { window, add } = makeWindow()
  expect(window.slotOf(add('{a}1'))).toBe(keySlot('a'))
  expect(window.slotOf(add('b'))).toBe(keySlot('b'))
})

describe('rules', () => {
  test('a key is matched once, and once again when the rules change', () => {
    const first = rulesOf()
    const { window, add } = makeWindow({ rules: first })
    for (let round = 0; round < 5; round++) add('a')
    expect(first.matched).toEqual(['a'])
    const second = rulesOf({ a: 1000 })
    window.setRules(second)
    for (let round = 0; round < 5; round++) add('a')
    expect(second.matched).toEqual(['a'])
    expect(window.ruleOf(window.find(Buffer.from('a')))).toBe(1)
  })

  test('counts are carried over: whole into a longer window, in proportion into a shorter one', () => {
    const { window, add, at, heat } = makeWindow({ rules: rulesOf({ k: 1000 }) })
    add('k', 100)
    at(100)
    window.setRules(rulesOf({ k: 10_000 }))
    expect(heat('k')).toBe(100)
    at(5000)
    expect(heat('k')).toBe(100)
    window.setRules(rulesOf({ k: 1000 }))
    expect(heat('k')).toBe(10)
  })

  test('a mark and a slot survive a change of rules', () => {
    const { window, add } = makeWindow()
    const index = add('a')
    window.setMark(index, true)
    window.setRules(rulesOf({ a: 3000 }))
    add('a')
    expect([window.isMarked(index), window.slotOf(index), window.ruleOf(index)]).toEqual([true, keySlot('a'), 1])
  })

  test('a key that was idle during twenty changes of rules is matched by the last', () => {
    const { window, add } = makeWindow({ rules: rulesOf({ s: 3_600_000 }) })
    for (let id = 0; id < 300; id++) add(`s${id}`)
    for (let change = 1; change <= 40; change++) {
      window.setRules(rulesOf({ [change === 40 ? 's' : `x${change}`]: 3_600_000 }))
      if (change % 3 === 0) window.sweep(40)
    }
    for (let id = 0; id < 300; id += 7) {
      const index = window.find(Buffer.from(`s${id}`))
      if (index < 0) continue
      window.heatOf(index)
      expect(window.ruleOf(index)).toBe(1)
    }
    expect(window.ruleOf(add('s0'))).toBe(1)
  })

  test('a missing window, and one too short for its slices, are refused', () => {
    expect(() => makeWindow({ rules: { windowsMs: [], match: () => 0 } })).toThrow(InvalidOptionError)
    expect(() => makeWindow({ rules: rulesOf({ a: 199 }) })).toThrow(InvalidOptionError)
  })
})

describe('memory', () => {
  test('idle keys are forgotten in steps, and marked ones are reported', () => {
    const forgotten: string[] = []
    const { window, add, at, mark } = makeWindow({
      onForgetMarked: (index) => forgotten.push(Buffer.from(window.dict.keyAt(index)).toString()),
    })
    for (let id = 0; id < 1000; id++) add(`k${id}`)
    for (const key of ['k3', 'k4', 'k7']) mark(key)
    mark('k4', false)
    while (window.sweep(10_000));
    at(500)
    add('k7')
    at(1200)
    let steps = 1
    while (window.sweep(100)) steps++
    expect(steps).toBe(11)
    expect(window.size).toBe(1)
    expect(forgotten).toEqual(['k3'])
  })

  test('new keys sweep old ones away without anybody calling sweep', () => {
    const { window, add, at } = makeWindow()
    let most = 0
    for (let id = 0; id < 30_000; id++) {
      at(id)
      add(`k${id}`)
      most = Math.max(most, window.size)
    }
    // A thousand keys arrive within a window.
    expect(most).toBeLessThan(5000)
  })

  test('a flood of cold keys beyond the limit evicts cold keys, and reports marked ones that go', () => {
    let told = 0
    const { window, add, heat, mark } = makeWindow({ maxKeys: 2000, onForgetMarked: () => told++ })
    for (let id = 0; id < 100; id++) {
      add(`marked${id}`, 1)
      mark(`marked${id}`)
    }
    for (let id = 0; id < 400; id++) add(`warm${id}`, 400)
    for (let id = 0; id < 50_000; id++) add(`flood${id}`)
    expect(window.size).toBe(2000)
    // A colder neighbour is dropped first, so keys far above the flood stay.
    const warm = Array.from({ length: 400 }, (_, id) => heat(`warm${id}`)).filter((value) => value === 400)
    expect(warm.length).toBeGreaterThan(380)
    const gone = Array.from({ length: 100 }, (_, id) => heat(`marked${id}`)).filter((value) => value === undefined)
    expect(gone.length).toBeGreaterThan(50)
    expect(told).toBe(gone.length)
    expect(window.refusedCount).toBe(0)
  })

  test('a key that rises amid the flood gets in and is counted', () => {
    const { add, heat } = makeWindow({ maxKeys: 2000 })
    for (let id = 0; id < 20_000; id++) {
      add(`flood${id}`)
      if (id % 20 === 0) add('riser', 1)
    }
    expect(heat('riser')).toBeGreaterThan(100)
  })

  test('the byte limit holds for keys of all lengths, and warm keys survive it', () => {
    const maxBytes = 8 * 2 ** 20
    const { window, add, heat } = makeWindow({ maxBytes })
    for (let id = 0; id < 200; id++) add(`warm${id}`, 600)
    for (let id = 0; id < 100_000; id++) add(`flood${id}:${'f'.repeat((id * 31) % 300)}`)
    expect(window.dict.bytes).toBeLessThanOrEqual(maxBytes)
    expect(window.size).toBeGreaterThan(10_000)
    const warm = Array.from({ length: 200 }, (_, id) => heat(`warm${id}`)).filter((value) => value === 600)
    expect(warm.length).toBeGreaterThan(190)
    expect(window.refusedCount).toBeLessThan(1000)
  })

  test('a key too long to keep is refused and counted', () => {
    const { window, add } = makeWindow()
    expect(add('k'.repeat(65_537))).toBe(-1)
    expect(window.refusedCount).toBe(1)
  })
})

test('a clock that goes back changes nothing', () => {
  const { window, add, at, heat } = makeWindow()
  at(5000)
  add('a', 5)
  at(1000)
  add('a', 5)
  expect(heat('a')).toBe(10)
  expect(window.nowMs).toBe(startMs + 5000)
})
