import { expect, test } from 'vitest'
import { parseRule } from './parse-rule.ts'
import { isInRollout } from './rollout.ts'

const instances = Array.from({ length: 5000 }, (_, index) => `host-${index % 50}-${index}-x`)

test('about the given percentage of processes has a rule, the same ones each time, and others for another rule', () => {
  for (const percent of [1, 10, 50, 90]) {
    const share = instances.filter((id) => isInRollout('product', percent, id)).length / instances.length
    expect(share * 100).toBeGreaterThan(percent * 0.8 - 1)
    expect(share * 100).toBeLessThan(percent * 1.2 + 1)
  }
  expect(instances.some((id) => isInRollout('product', 0, id))).toBe(false)
  expect(instances.every((id) => isInRollout('product', 100, id))).toBe(true)
  const both = instances.filter((id) => isInRollout('a', 50, id) && isInRollout('b', 50, id)).length
  expect(both / instances.length).toBeGreaterThan(0.2)
  expect(both / instances.length).toBeLessThan(0.3)
})

test('a process that has a rule keeps it when the percentage is raised', () => {
  const isLost = (id: string) => {
    const has = Array.from({ length: 21 }, (_, step) => isInRollout('product', step * 5, id))
    return has.slice(has.indexOf(true)).includes(false)
  }
  expect(instances.filter(isLost)).toEqual([])
})

test('the choice is the documented one', () => {
  // Computed by another implementation of the same description.
  const chosen = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].filter((id) => isInRollout('product', 50, id))
  expect(chosen).toEqual(['b', 'd'])
})

test('a rollout is a number, or an object; anything else is refused with its path', () => {
  const rule = { id: 'r', prefix: 'x', threshold: 10 }
  expect(parseRule({ ...rule, rollout: 10 }).rollout).toEqual({ percent: 10 })
  const full = { percent: 10, steps: [25, 50, 100], stepMs: 5000 }
  expect(parseRule(parseRule({ ...rule, rollout: full })).rollout).toEqual(full)
  expect(parseRule(rule).rollout).toBe(undefined)
  for (const rollout of [
    101,
    -1,
    1.5,
    {},
    { percent: 10, steps: [50, 50] },
    { percent: 10, steps: [101] },
    { percnt: 1 },
  ])
    expect(() => parseRule({ ...rule, rollout })).toThrow(/rollout/)
})
