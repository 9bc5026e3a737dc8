import type { NodeLoad } from '@firebreak/core'
import { expect, test } from 'vitest'
import { LoadWitnesses } from './load-witnesses.ts'

const [a, b, liar] = [{}, {}, {}]
const load = (use: number, commands = 1000, slots: readonly [number, number] = [0, 16_383]): NodeLoad => ({
  redisClusterId: 'main',
  node: 'redis:1',
  slots: [[...slots]],
  spanMs: 1000,
  commands,
  cpuMs: use * 1000,
  roundTripMs: 0.2,
})

/** What is gone by after each of three has spoken, over some rounds. */
function rounds(witnesses: LoadWitnesses, says: readonly (readonly [object, NodeLoad])[], asked = says.length) {
  const taken: NodeLoad[] = []
  for (let second = 0; second < 5; second++)
    for (const [nth, [who, node]] of says.entries())
      taken.push(...witnesses.take('main', [node], who, asked, second * 1000 + nth * 300))
  return taken
}

test.each([
  ['that it is full', load(1, 10)],
  ['that it is idle', load(0, 1_000_000)],
  ['that it owns less', load(1, 10, [0, 100])],
])('of three one says of a node %s: nothing moves', (_, lie) => {
  const taken = rounds(new LoadWitnesses(), [
    [liar, lie],
    [a, load(0.2)],
    [b, load(0.21)],
  ])
  // Once a second; in the first round only two have spoken.
  expect(taken.length).toBeGreaterThanOrEqual(4)
  for (const { cpuMs, commands, slots } of taken.slice(1)) {
    expect(slots).toEqual([[0, 16_383]])
    expect(cpuMs).toBeGreaterThanOrEqual(200)
    expect(cpuMs).toBeLessThanOrEqual(210)
    expect(commands).toBe(1000)
  }
})

test('of two the one counts under which the node looks calmer', () => {
  const taken = rounds(new LoadWitnesses(), [
    [liar, load(1, 10)],
    [a, load(0.2)],
  ])
  for (const { cpuMs, commands } of taken) expect([cpuMs, commands]).toEqual([200, 1000])
  expect(taken.length).toBeGreaterThan(3)
})

test('who is asked alone, or is the only one that answers, is gone by', () => {
  expect(rounds(new LoadWitnesses(), [[a, load(0.9)]]).length).toBe(5)
  const witnesses = new LoadWitnesses()
  const taken = (second: number) => witnesses.take('main', [load(0.9)], a, 3, second * 1000).length
  expect([0, 1, 2, 3, 4].map(taken)).toEqual([0, 0, 0, 0, 0])
  expect([5, 6].map(taken)).toEqual([1, 1])
})

test('those who may not ask for the CPU do not outvote those who may', () => {
  const { cpuMs, ...blind } = load(0)
  const taken = rounds(new LoadWitnesses(), [
    [a, load(0.4)],
    [b, { ...blind, roundTripMs: 0.5 }],
  ])
  for (const sample of taken) expect(sample).toMatchObject({ cpuMs: 400, roundTripMs: 0.2 })
})
