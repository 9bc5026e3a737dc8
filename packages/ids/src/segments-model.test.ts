import { isFullRun, runSeeds, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { playSegments, quickSegmentSeeds, segmentsSchedule } from './testing/segments-model.ts'

test('the laws of segments hold over random histories of faults', async () => {
  const seeds = isFullRun ? Array.from({ length: 400 }, (_, index) => index + 1) : quickSegmentSeeds
  let given = 0
  for await (const { seed, failure, calls } of runSeeds({
    seeds,
    schedule: segmentsSchedule,
    play: playSegments,
    shrinks: scale(0, 1) === 1,
  })) {
    given += calls
    if (failure === undefined) continue
    throw new Error(
      `seed ${seed}: ${failure.error}\n${JSON.stringify(failure.schedule)}\n${failure.lastEvents.join('\n')}`,
    )
  }
  expect(given).toBeGreaterThan(seeds.length * 10_000)
  // Ten times the usual duration, for a machine that is busy with other work.
}, 600_000)
