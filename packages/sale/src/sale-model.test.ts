import { runSeeds, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { saleModel } from './testing/sale-model.ts'

test.each([
  ['whatever fails', false, 1],
  ['and loses writes', true, 101],
])(
  'a shop keeps its laws %s',
  async (_, isLossy, firstSeed) => {
    const seeds = Array.from({ length: scale(8, 200) }, (_, index) => firstSeed + index)
    let calls = 0
    for await (const { seed, failure, calls: made } of runSeeds({ seeds, ...saleModel(isLossy), shrinks: false })) {
      calls += made
      if (failure !== undefined)
        expect.fail(`seed ${seed}: ${String(failure.error)}; faults ${JSON.stringify(failure.schedule)}`)
    }
    expect(calls).toBeGreaterThan(seeds.length * 200)
  },
  scale(60_000, 900_000),
)
