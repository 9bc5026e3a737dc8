import { readFileSync } from 'node:fs'
import { runSeeds, SimulatedWorld, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { outcomeText } from './account.ts'
import { formatFaults, parseFaults, parseOptions } from './command-line.ts'
import { fleetSchedule } from './fleet/fleet-faults.ts'
import { fleetModel, playFleet } from './fleet/fleet-model.ts'
import { laws } from './oracles/laws.ts'

/** How long `npm test` plays seeds. */
const budgetMs = scale(45_000, 600_000)

test.each(Object.entries(laws))('the law %s is in its guide, word for word', (_, { guide, sentence }) => {
  const text = readFileSync(new URL(`../../docs/guides/${guide}`, import.meta.url), 'utf8')
  expect(text.replace(/\s+/g, ' ')).toContain(sentence)
})

test('the same seed gives the same event log to the byte, and another seed another', async () => {
  const digests = []
  for (const seed of [5, 5, 6]) {
    const schedule = fleetSchedule(new SimulatedWorld({ seed }).chance.fork('schedule'))
    const world = new SimulatedWorld({ seed })
    await playFleet(world, schedule)
    digests.push(world.log.digest)
  }
  expect(digests[0]).toBe(digests[1])
  expect(digests[2]).not.toBe(digests[0])
}, 120_000)

/** The same number on every machine, or a fast one would check more than a slow one; `npm run simulate` plays the others. */
const playedSeeds = scale(48, 200)

test(
  'the fleet keeps the promises of the guides, seed after seed',
  async () => {
    const until = performance.now() + budgetMs
    function* seeds(): Generator<number> {
      for (let seed = 1; seed <= playedSeeds && performance.now() < until; seed++) yield seed
    }
    let count = 0
    for await (const outcome of runSeeds({ seeds: seeds(), ...fleetModel, maxShrinkRuns: 30 })) {
      count++
      if (outcome.failure !== undefined) expect.fail(outcomeText('fleet', outcome))
      expect(outcome.faults).toBeGreaterThanOrEqual(10)
      expect(outcome.calls).toBeGreaterThan(5000)
    }
    expect(count).toBeGreaterThan(1)
  },
  budgetMs + 300_000,
)

test('a schedule is unchanged after it is written and read again', () => {
  const schedule = fleetSchedule(new SimulatedWorld({ seed: 3 }).chance.fork('schedule'))
  expect(parseFaults(formatFaults(schedule))).toEqual(schedule)
  expect(parseOptions(['--seed', '7', '--faults', formatFaults(schedule)])).toMatchObject({
    seeds: [7],
    faults: schedule,
  })
  expect(() => parseOptions(['--sed', '7'])).toThrow('usage')
})
