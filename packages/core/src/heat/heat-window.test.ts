import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { keySlot } from '../slots/key-slot.ts'
import type { HeatThresholds } from './heat-state.ts'
import { type HeatChange, HeatWindow, type HeatWindowOptions } from './heat-window.ts'
import { measureWeights, type WindowRule, type WindowRules } from './window-rules.ts'

const startMs = 1_700_000_000_123

const levels = (...enters: number[]): HeatThresholds => ({
  levels: enters.map((enter) => ({ enter, exit: enter * 0.7 })),
  minHoldMs: 0,
})

/** Rules by the letters that a key begins with; all other keys have a window of one second and 100 as threshold. */
function rulesOf(byPrefix: Record<string, WindowRule> = {}, other = levels(100)): WindowRules & { matched: string[] } {
  const prefixes = Object.keys(byPrefix)
  const matched: string[] = []
  return {
    matched,
    rules: [{ windowMs: 1000, thresholds: other }, ...Object.values(byPrefix)],
    match(bytes, start, end) {
      const key = Buffer.from(bytes.subarray(start, end)).toString()
      matched.push(key)
      return prefixes.findIndex((prefix) => key.startsWith(prefix)) + 1
    },
  }
}

function makeWindow(options: Partial<HeatWindowOptions> = {}) {
  const changes: (HeatChange & { key: string })[] = []
  const onChange = (change: HeatChange) => changes.push({ ...change, key: window.keyOf(change.index) })
  const window = new HeatWindow({ rules: rulesOf(), startMs, onChange, ...options })
  const add = (key: string, count = 1, { writes = 0, bytes = 0, host = 0 } = {}) => {
    const buffer = Buffer.from(`[${key}]`)
    return window.add(buffer, 1, buffer.length - 1, count, writes, bytes, host)
  }
  const at = (elapsedMs: number) => window.moveTo(startMs + elapsedMs)
  const heat = (key: string) => {
    const index = window.find(Buffer.from(key))
    return index < 0 ? undefined : window.heatOf(index)
  }
  const phases = () => changes.splice(0).map(({ key, after }) => `${key} ${after.phase}`)
  return { window, add, at, heat, changes, phases }
}

test('heat is what an exact count over the last ten slices gives, at any time, for any keys, with sweeps between', () => {
  const step = fc.record({
    ms: fc.nat(350),
    key: fc.nat(12),
    count: fc.integer({ min: 1, max: 300 }),
    sweep: fc.nat(3),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150 }), fc.integer({ min: 10, max: 16 }), (steps, slices) => {
      const rules = rulesOf({ k1: { windowMs: 3000, thresholds: levels(500) } })
      const { window, add, at, heat } = makeWindow({ rules, slices })
      const log: { ms: number; key: string; count: number }[] = []
      let nowMs = 0
      for (const { ms, key, count, sweep } of steps) {
        at((nowMs += ms))
        add(`k${key}`, count)
        log.push({ ms: nowMs, key: `k${key}`, count })
        window.sweep(sweep)
        for (let id = 0; id <= 12; id++) {
          const sliceMs = (`k${id}`.startsWith('k1') ? 3000 : 1000) / slices
          const slice = Math.floor(nowMs / sliceMs)
          const exact = log
            .filter((entry) => entry.key === `k${id}` && Math.floor(entry.ms / sliceMs) > slice - slices)
            .reduce((sum, entry) => sum + entry.count, 0)
          expect(heat(`k${id}`) ?? 0).toBe(exact)
        }
      }
    }),
    { numRuns: scale(60, 600) },
  )
})

test('the slices of a key are what came in each, newest first, with the age of the newest', () => {
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
  const slices = new Float64Array(window.slices + 1)
  window.slicesOf(index, slices)
  expect([...slices]).toEqual([0, 2, 0, 0, 8, 5, 0, 0, 0, 0, 30])
  at(1490)
  window.slicesOf(index, slices)
  expect([...slices]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 90])
})

test('a key that crosses its threshold is told as the report arrives, each level once', () => {
  const { add, at, phases, changes } = makeWindow({ rules: rulesOf({}, levels(100, 1000)) })
  add('a', 60)
  add('b', 99)
  at(300)
  expect(phases()).toEqual([])
  add('a', 39)
  expect(phases()).toEqual([])
  add('a', 1)
  expect(changes.map(({ heat, after }) => [heat, after])).toEqual([
    [100, { phase: 'hot', level: 0, sinceMs: startMs + 300, heldUntilMs: startMs + 300 }],
  ])
  expect(phases()).toEqual(['a hot'])
  add('a', 500)
  expect(phases()).toEqual([])
  add('a', 400)
  expect(changes.at(-1)).toMatchObject({ heat: 1000, after: { level: 1 } })
})

test('a key cools and gets cold as time passes, without a report', () => {
  const { window, add, at, phases } = makeWindow({ rules: rulesOf({}, { ...levels(100), minHoldMs: 3000 }) })
  add('a', 150)
  at(999)
  window.evaluate()
  expect(phases()).toEqual(['a hot'])
  at(1100)
  window.evaluate()
  expect(phases()).toEqual(['a cooling'])
  at(3998)
  window.evaluate()
  expect(phases()).toEqual([])
  at(4200)
  window.evaluate()
  expect(phases()).toEqual(['a cold'])
  expect(window.candidateCount).toBe(0)
})

test('evaluation goes on in steps where it ended', () => {
  const { window, add, at, phases } = makeWindow()
  for (let id = 0; id < 10; id++) add(`k${id}`, 60)
  let calls = 1
  while (window.evaluate(3)) calls++
  expect(calls).toBe(4)
  expect(phases().length).toBe(10)
  at(5000)
  while (window.evaluate(4));
  expect(phases().length).toBe(10)
})

test('a rule may count reads, writes or bytes', () => {
  const rule = (measure: keyof typeof measureWeights, enter: number): WindowRule => ({
    windowMs: 1000,
    weights: measureWeights[measure],
    thresholds: levels(enter),
  })
  const rules = rulesOf({ r: rule('reads', 50), w: rule('writes', 10), b: rule('bytes', 1_000_000) })
  const { add, heat, phases } = makeWindow({ rules })
  add('r', 60, { writes: 20 })
  add('w', 60, { writes: 9 })
  add('b', 60, { bytes: 999_999 })
  expect([heat('r'), heat('w'), heat('b')]).toEqual([40, 9, 999_999])
  expect(phases()).toEqual([])
  add('r', 10)
  add('w', 1, { writes: 1 })
  add('b', 1, { bytes: 1 })
  expect(phases()).toEqual(['r hot', 'w hot', 'b hot'])
})

test('a warm key has its accesses, writes, bytes and top hosts; a cold one has none', () => {
  const { window, add, at } = makeWindow()
  add('cold', 3, { writes: 1 })
  for (let host = 0; host < 30; host++) add('warm', host === 7 ? 500 : 10, { writes: 2, bytes: 100, host })
  const index = window.find(Buffer.from('warm'))
  const details = window.details(index)!
  expect(details).toMatchObject({ key: 'warm', heat: 790, rule: 0 })
  // Details begin when the key is warm, at its sixth report.
  expect([details.count, details.writes, details.bytes]).toEqual([750, 52, 2600])
  expect(details.hosts[0]!.host).toBe(7)
  expect(details.hosts[0]!.count - details.hosts[0]!.error).toBeGreaterThan(450)
  expect(window.details(window.find(Buffer.from('cold')))).toBe(undefined)
  at(950)
  add('warm', 60, { writes: 1, host: 3 })
  at(1050)
  expect(window.details(index)).toMatchObject({ heat: 60, count: 60, writes: 1, bytes: 0 })
})

test('the heat that is shown carries its error: none where all was sent, three deviations where it was sampled', () => {
  const { window, add } = makeWindow()
  const index = add('a', 400)
  expect(window.details(index)!.error).toBe(0)
  window.samplingFactor = 2
  expect(window.details(index)!.error).toBe(60)
})

test('the top is in order of heat, ties by key', () => {
  const { window, add } = makeWindow()
  for (const [key, count] of Object.entries({ pear: 80, fig: 90, apple: 80, cold: 2, zoo: 200 })) add(key, count)
  expect(window.top(3).map(({ key, heat }) => [key, heat])).toEqual([
    ['zoo', 200],
    ['fig', 90],
    ['apple', 80],
  ])
})

test('heat per slot and node is there at all times, also for cold keys, and passes with the window', () => {
  const { window, add, at } = makeWindow({ slotWindowMs: 2000 })
  add('{a}1', 3)
  add('{a}2', 4)
  add('b', 5)
  at(1500)
  add('b', 2, { writes: 1 })
  expect(window.slots.of(keySlot('a'))).toBe(7)
  expect(window.slots.of(keySlot('b'))).toBe(7)
  const owners = new Int16Array(16_384).fill(-1)
  owners[keySlot('a')] = 0
  owners[keySlot('b')] = 2
  expect([...window.slots.byNode(owners, 3)]).toEqual([7, 0, 7])
  at(2100)
  expect([window.slots.of(keySlot('a')), window.slots.of(keySlot('b')), window.slots.total]).toEqual([0, 2, 2])
  at(60_000)
  expect(window.slots.total).toBe(0)
})

describe('rules', () => {
  test('a key is matched once, and once again when the rules change', () => {
    const first = rulesOf()
    const { window, add } = makeWindow({ rules: first })
    for (let round = 0; round < 5; round++) add('a')
    expect(first.matched).toEqual(['a'])
    const second = rulesOf({ a: { windowMs: 1000, thresholds: levels(8) } })
    window.setRules(second)
    for (let round = 0; round < 5; round++) add('a')
    expect(second.matched).toEqual(['a'])
    expect(window.ruleOf(window.find(Buffer.from('a')))).toBe(1)
  })

  test('what was counted is carried over: whole into a longer window, a share into a shorter one, not into another measure', () => {
    const thresholds = levels(1000)
    const { window, add, at, heat } = makeWindow({ rules: rulesOf({ k: { windowMs: 1000, thresholds } }) })
    add('k', 100, { writes: 10 })
    at(100)
    window.setRules(rulesOf({ k: { windowMs: 10_000, thresholds } }))
    expect(heat('k')).toBe(100)
    at(5000)
    expect(heat('k')).toBe(100)
    window.setRules(rulesOf({ k: { windowMs: 1000, thresholds } }))
    expect(heat('k')).toBe(10)
    at(5500)
    window.setRules(rulesOf({ k: { windowMs: 1000, thresholds, weights: measureWeights.writes } }))
    expect(heat('k')).toBe(0)
  })

  test('a key that slept through twenty changes of rules is matched by the last', () => {
    const { window, add } = makeWindow({ rules: rulesOf({ s: { windowMs: 3_600_000, thresholds: levels(100) } }) })
    for (let id = 0; id < 300; id++) add(`s${id}`)
    for (let change = 1; change <= 40; change++) {
      window.setRules(rulesOf({ [change === 40 ? 's' : `x${change}`]: { windowMs: 3_600_000, thresholds: levels(5) } }))
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

  test('a hot key stays hot under a rule with the same threshold, and its state follows a changed one', () => {
    const { window, add, phases } = makeWindow()
    add('a', 150)
    window.setRules(rulesOf({ a: { windowMs: 1000, thresholds: levels(120) } }))
    window.evaluate()
    expect(phases()).toEqual(['a hot'])
    window.setRules(rulesOf({ a: { windowMs: 1000, thresholds: levels(1000) } }))
    window.evaluate()
    window.evaluate()
    expect(phases()).toEqual(['a cold'])
  })

  test('thresholds may depend on the key, as shares of a node do', () => {
    const { add, phases } = makeWindow({
      thresholdsOf: (_, __, slot) => levels(slot === keySlot('a') ? 60 : 90),
    })
    add('a', 70)
    add('b', 70)
    expect(phases()).toEqual(['a hot'])
  })

  test('windows, levels and slices out of range are refused', () => {
    expect(() => makeWindow({ slices: 9 })).toThrow(InvalidOptionError)
    expect(() => makeWindow({ rules: { rules: [], match: () => 0 } })).toThrow(InvalidOptionError)
    expect(() => makeWindow({ rules: rulesOf({ a: { windowMs: 1, thresholds: levels(1) } }) })).toThrow(
      InvalidOptionError,
    )
    expect(() => makeWindow({ rules: rulesOf({}, levels(5, 5)) })).toThrow(InvalidOptionError)
  })
})

describe('memory', () => {
  test('idle keys are forgotten in steps, and told; hot ones are told to be cold first', () => {
    const forgotten: string[] = []
    const { window, add, at, phases } = makeWindow({
      onForget: (index) => forgotten.push(window.keyOf(index)),
    })
    for (let id = 0; id < 1000; id++) add(`k${id}`)
    add('hot', 200)
    phases()
    while (window.sweep(10_000));
    at(500)
    add('k7')
    at(1200)
    let steps = 1
    while (window.sweep(100)) steps++
    expect(steps).toBe(11)
    expect(window.size).toBe(1)
    expect(forgotten.length).toBe(1000)
    expect(phases()).toEqual(['hot cold'])
    expect(window.counters.forgotten).toBe(1000)
  })

  test('new keys sweep old ones away without anybody calling sweep', () => {
    const { window, add, at } = makeWindow()
    let most = 0
    for (let id = 0; id < 30_000; id++) {
      at(id)
      add(`k${id}`)
      most = Math.max(most, window.size)
    }
    // A thousand keys come in a window's time.
    expect(most).toBeLessThan(5000)
  })

  test('a flood of cold keys past the bound forgets cold keys and never a warm one', () => {
    const { window, add, heat } = makeWindow({ maxKeys: 2000, rules: rulesOf({}, levels(1000)) })
    for (let id = 0; id < 300; id++) add(`warm${id}`, 600)
    for (let id = 0; id < 100; id++) add(`tepid${id}`, 400)
    for (let id = 0; id < 50_000; id++) add(`flood${id}`)
    expect(window.size).toBeLessThanOrEqual(2001)
    for (let id = 0; id < 300; id++) expect(heat(`warm${id}`)).toBe(600)
    // A colder neighbour is dropped first, so keys far above the flood stay too.
    const tepid = Array.from({ length: 100 }, (_, id) => heat(`tepid${id}`)).filter((value) => value === 400)
    expect(tepid.length).toBeGreaterThan(95)
    expect(window.counters.evicted).toBeGreaterThan(40_000)
  })

  test('a key that becomes hot amid the flood gets in and is found', () => {
    const { add, phases } = makeWindow({ maxKeys: 2000 })
    for (let id = 0; id < 20_000; id++) {
      add(`flood${id}`)
      if (id % 20 === 0) add('riser', 1)
    }
    expect(phases()).toContain('riser hot')
  })

  test('where every entry is warm, new keys are refused and counted', () => {
    const { window, add } = makeWindow({ maxKeys: 100 })
    for (let id = 0; id < 101; id++) add(`warm${id}`, 60)
    expect(add('one more')).toBe(-1)
    expect(window.counters.refused).toBeGreaterThan(0)
  })

  test('the byte bound holds, with keys of all lengths, and hot keys outlive it', () => {
    const maxBytes = 8 * 2 ** 20
    const { window, add, heat } = makeWindow({ maxBytes, rules: rulesOf({}, levels(1000)) })
    for (let id = 0; id < 200; id++) add(`warm${id}`, 600)
    for (let id = 0; id < 100_000; id++) add(`flood${id}:${'f'.repeat((id * 31) % 300)}`)
    expect(window.dict.bytes).toBeLessThanOrEqual(maxBytes)
    expect(window.size).toBeGreaterThan(10_000)
    for (let id = 0; id < 200; id++) expect(heat(`warm${id}`)).toBe(600)
    expect(window.counters.refused).toBeLessThan(1000)
  })

  test('details are bounded: the coldest candidates make room, hot ones stay', () => {
    const { window, add, phases } = makeWindow({ maxCandidates: 80 })
    for (let id = 0; id < 40; id++) add(`hot${id}`, 150)
    phases()
    for (let id = 0; id < 200; id++) add(`warm${id}`, 51 + (id % 40))
    expect(window.candidateCount).toBeLessThanOrEqual(80)
    for (let id = 0; id < 40; id++) expect(window.stateOf(window.find(Buffer.from(`hot${id}`))).phase).toBe('hot')
    add('late', 100)
    expect(phases()).toContain('late hot')
  })
})

test('a clock that goes back moves nothing', () => {
  const { window, add, at, heat } = makeWindow()
  at(5000)
  add('a', 5)
  at(1000)
  add('a', 5)
  expect(heat('a')).toBe(10)
  expect(window.nowMs).toBe(startMs + 5000)
})
