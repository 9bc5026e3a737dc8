import { readFileSync } from 'node:fs'
import { isFullRun } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { huntMutants } from './hunt.ts'
import { mutants as fleetMutants } from './mutants.ts'
import { roomMutants } from './room-mutants.ts'

const mutants = [...fleetMutants, ...roomMutants]
const root = new URL('../../../', import.meta.url)

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  '%s: where it is planted stands once',
  (_, mutant) => {
    const text = readFileSync(new URL(mutant.file, root), 'utf8')
    expect(text.split(mutant.find).length - 1).toBe(1)
    expect(mutant.replace).not.toBe(mutant.find)
  },
)

test('there are thirty and more, each with a name of its own', () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30)
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

test('faults that are planted into the fleet are found by its first seed, which keeps all laws without them', async () => {
  const names = ['an own write is not guarded', 'a key never cools']
  const planted = fleetMutants.filter(({ name }) => names.includes(name)).map((mutant) => ({ ...mutant, seeds: 1 }))
  expect(await huntMutants(planted)).toEqual({ mutants: 2, found: 2, worstSeeds: 1 })
}, 600_000)

// Any change of a model gives every seed another story: what one of them found may then be found by none. A quick run hunts
// those that the first seeds find at once, for half a minute of two processors; all of them take an hour.
test('a mend of a room that is taken out is found by the quick run of its model: some of each, in a full run all', async () => {
  const ofRooms = mutants.filter(({ model }) => model !== undefined)
  const byModel = Object.values(Object.groupBy(ofRooms, ({ model }) => model!))
  const planted = byModel.flatMap((list) => (isFullRun ? list! : list!.filter(({ isQuick }) => isQuick)))
  expect(new Set(planted.map(({ model }) => model)).size).toBe(byModel.length)
  expect(await huntMutants(planted)).toMatchObject({ found: planted.length })
}, 1_800_000)
