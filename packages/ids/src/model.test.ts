import { isFullRun, runSeeds, type SeedOutcome, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { idsSchedule, playIds, quickSeeds } from './testing/ids-model.ts'

test('the laws of ids hold over random histories of faults', async () => {
  const outcomes: SeedOutcome[] = []
  const seeds = isFullRun ? Array.from({ length: 400 }, (_, index) => index + 1) : quickSeeds
  for await (const outcome of runSeeds({
    seeds,
    schedule: idsSchedule,
    play: playIds,
    shrinks: scale(0, 1) === 1,
  })) {
    if (outcome.failure !== undefined) {
      const { error, schedule, lastEvents } = outcome.failure
      throw new Error(`seed ${outcome.seed}: ${error}\n${JSON.stringify(schedule)}\n${lastEvents.join('\n')}`)
    }
    outcomes.push(outcome)
  }
  const given = outcomes.reduce((sum, { calls }) => sum + calls, 0)
  expect(given).toBeGreaterThan(seeds.length * 10_000)
  const faults = outcomes.reduce((sum, outcome) => sum + outcome.faults, 0)
  const cpuMs = outcomes.reduce((sum, outcome) => sum + outcome.cpuMs, 0)
  console.log(`${given} ids in ${outcomes.length} histories with ${faults} faults, ${Math.round(cpuMs)} ms of CPU`)
  // Ten times the usual duration, for a machine that is busy with other work.
}, 600_000)
