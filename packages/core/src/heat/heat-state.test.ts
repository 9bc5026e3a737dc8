import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { checkHeatThresholds, coldState, type HeatState, isHandled, nextHeatState } from './heat-state.ts'

const thresholds = {
  levels: [
    { enter: 100, exit: 70 },
    { enter: 1000, exit: 700 },
  ],
  minHoldMs: 1000,
}

/** Runs a key through heats, one each 100 ms, and names the states. */
function walk(heats: readonly number[], rules = thresholds): string[] {
  let state: HeatState = coldState
  return heats.map((heat, step) => {
    state = nextHeatState(state, heat, rules, step * 100)
    return isHandled(state) ? `${state.phase} ${state.level}` : state.phase
  })
}

test('a key warms, gets hot, cools and gets cold', () => {
  const quiet = Array.from({ length: 12 }, () => 10)
  expect(walk([10, 50, 99, 100, 71, 69, ...quiet])).toEqual([
    ...['cold', 'warming', 'warming', 'hot 0', 'hot 0', 'cooling 0'],
    ...Array.from({ length: 7 }, () => 'cooling 0'),
    ...Array.from({ length: 5 }, () => 'cold'),
  ])
})

test('between exit and enter a hot key stays hot and a cold one cold', () => {
  expect(walk([85, 85])).toEqual(['warming', 'warming'])
  expect(walk([100, ...Array.from({ length: 30 }, () => 85)]).at(-1)).toBe('hot 0')
})

test('reaching the enter level again extends the hold', () => {
  let state: HeatState = nextHeatState(coldState, 120, thresholds, 0)
  state = nextHeatState(state, 120, thresholds, 900)
  expect(nextHeatState(state, 5, thresholds, 1500)).toMatchObject({ phase: 'cooling', sinceMs: 0 })
  expect(nextHeatState(state, 5, thresholds, 1900)).toBe(coldState)
})

test('a cooling key that recovers is hot again, since when it first was', () => {
  let state: HeatState = nextHeatState(coldState, 120, thresholds, 0)
  state = nextHeatState(state, 5, thresholds, 100)
  expect(state.phase).toBe('cooling')
  expect(nextHeatState(state, 75, thresholds, 200)).toMatchObject({ phase: 'hot', sinceMs: 0 })
})

test('a higher level is taken at once, a lower one after the hold', () => {
  const heats = [100, 1000, ...Array.from({ length: 12 }, () => 500)]
  expect(walk(heats)).toEqual([
    'hot 0',
    'hot 1',
    ...Array.from({ length: 9 }, () => 'cooling 1'),
    ...Array.from({ length: 3 }, () => 'hot 0'),
  ])
})

test('a key whose rule lost its levels gets cold once its hold is over', () => {
  const state = nextHeatState(coldState, 1500, thresholds, 0)
  const none = { levels: [], minHoldMs: 1000 }
  expect(nextHeatState(state, 1500, none, 500).phase).toBe('cooling')
  expect(nextHeatState(state, 1500, none, 1000)).toBe(coldState)
})

test('in any course of heat, a key is handled from its crossing to the end of its hold, and never cold at an enter level', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1500), { maxLength: 60 }), (heats) => {
      let state: HeatState = coldState
      let heldUntilMs = 0
      for (const [step, heat] of heats.entries()) {
        const nowMs = step * 100
        const before = state
        state = nextHeatState(state, heat, thresholds, nowMs)
        if (heat >= 100) expect(isHandled(state)).toBe(true)
        const level = isHandled(before) ? before.level : 0
        if (heat >= thresholds.levels[level]!.enter) heldUntilMs = nowMs + 1000
        if (isHandled(before) && nowMs < heldUntilMs) expect(isHandled(state)).toBe(true)
        if (!isHandled(before) && heat < 100) expect(isHandled(state)).toBe(false)
        // The same moment again changes nothing.
        expect(nextHeatState(state, heat, thresholds, nowMs)).toBe(state)
      }
    }),
  )
})

test('thresholds that do not rise are refused', () => {
  expect(() => checkHeatThresholds({ levels: [{ enter: 5, exit: 6 }], minHoldMs: 0 })).toThrow(InvalidOptionError)
  expect(() => checkHeatThresholds({ levels: [thresholds.levels[1]!, thresholds.levels[0]!], minHoldMs: 0 })).toThrow(
    InvalidOptionError,
  )
})
