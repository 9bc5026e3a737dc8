import { runSeeds, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { quickSeeds, saleModel } from './testing/sale-model.ts'

test.each([
  ['whatever fails', false],
  ['and loses writes', true],
])(
  'a shop keeps the laws of the sale %s',
  async (_, isLossy) => {
    const quick = quickSeeds(isLossy)
    const seeds = Array.from({ length: scale(quick.length, 200) }, (_, index) => quick[0]! + index)
    let calls = 0
    for await (const { seed, failure, calls: made } of runSeeds({ seeds, ...saleModel(isLossy), shrinks: false })) {
      calls += made
      if (failure !== undefined)
        expect.fail(`seed ${seed}: ${String(failure.error)}; faults ${JSON.stringify(failure.schedule)}`)
    }
    expect(calls).toBeGreaterThan(seeds.length * 200)
  },
  // Ten times the usual duration, for a machine that is busy with other work.
  scale(300_000, 3_000_000),
)
