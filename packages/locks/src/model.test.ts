import { isFullRun, runSeeds, type SeedOutcome, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { lockSchedule, playLocks, quickSeeds } from './testing/lock-model.ts'

test('the laws of locks hold over random histories of faults', async () => {
  const outcomes: SeedOutcome[] = []
  const seeds = isFullRun ? Array.from({ length: 200 }, (_, index) => index + 1) : quickSeeds
  for await (const outcome of runSeeds({
    seeds,
    schedule: lockSchedule,
    play: playLocks,
    shrinks: scale(0, 1) === 1,
  })) {
    if (outcome.failure !== undefined) {
      const { error, schedule, lastEvents } = outcome.failure
      throw new Error(`seed ${outcome.seed}: ${error}\n${JSON.stringify(schedule)}\n${lastEvents.join('\n')}`)
    }
    outcomes.push(outcome)
  }
  const taken = outcomes.reduce((sum, { calls }) => sum + calls, 0)
  expect(taken).toBeGreaterThan(seeds.length * 500)
  console.log(`${taken} locks taken in ${outcomes.length} histories of ${outcomes[0]!.faults} faults`)
  // Ten times the usual duration, for a machine that is busy with other work.
}, 600_000)
