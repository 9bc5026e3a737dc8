import { isFullRun, runSeeds, type SeedOutcome } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { limitsSchedule, playLimits, quickSeeds } from './testing/limits-model.ts'

test('the laws of limits hold over random histories of faults', async () => {
  const outcomes: SeedOutcome[] = []
  const seeds = isFullRun ? Array.from({ length: 200 }, (_, index) => index + 1) : quickSeeds
  for await (const outcome of runSeeds({ seeds, schedule: limitsSchedule, play: playLimits, shrinks: isFullRun })) {
    if (outcome.failure !== undefined) {
      const { error, schedule, lastEvents } = outcome.failure
      throw new Error(`seed ${outcome.seed}: ${error}\n${JSON.stringify(schedule)}\n${lastEvents.join('\n')}`)
    }
    outcomes.push(outcome)
  }
  const calls = outcomes.reduce((sum, outcome) => sum + outcome.calls, 0)
  expect(calls).toBeGreaterThan(seeds.length * 2000)
  console.log(`${calls} calls in ${outcomes.length} histories of ${outcomes[0]!.faults} faults`)
}, 300_000)
