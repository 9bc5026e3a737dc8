import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Fault, FaultSchedule } from './fault-schedule.ts'
import { shrinkSchedule } from './shrink-schedule.ts'

const schedule: Fault[] = Array.from({ length: 20 }, (_, index) => ({
  atMs: index * 100,
  kind: 'cut',
  target: `app-${index}`,
  forMs: 1000,
}))

function has(candidate: FaultSchedule, targets: readonly string[]): boolean {
  return targets.every((target) => candidate.some((fault) => fault.target === target))
}

test('the smallest schedule is exactly the necessary faults, in their order and as short as possible', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.nat(19), { maxLength: 4 }),
      fc.integer({ min: 1, max: 1000 }),
      async (which, ms) => {
        const targets = which.sort((a, b) => a - b).map((index) => `app-${index}`)
        const fails = (candidate: FaultSchedule): boolean =>
          has(candidate, targets) && candidate.every(({ target, forMs }) => !targets.includes(target) || forMs! >= ms)
        const shrunk = await shrinkSchedule(schedule, fails, { maxRuns: 1000 })
        expect(shrunk.schedule.map(({ target }) => target)).toEqual(targets)
        for (const { forMs } of shrunk.schedule) {
          expect(forMs).toBeGreaterThanOrEqual(ms)
          expect(Math.floor(forMs! / 2)).toBeLessThan(Math.max(ms, 1))
        }
        expect(await shrinkSchedule(schedule, fails, { maxRuns: 1000 })).toEqual(shrunk)
      },
    ),
    { numRuns: 60 },
  )
})

test('it ends after a given number of runs, with a schedule that fails', async () => {
  let runs = 0
  const fails = (candidate: FaultSchedule): boolean => {
    runs++
    return has(candidate, ['app-1', 'app-7', 'app-13'])
  }
  const shrunk = await shrinkSchedule(schedule, fails, { maxRuns: 9 })
  expect([runs, shrunk.runs]).toEqual([9, 9])
  expect(fails(shrunk.schedule)).toBe(true)
})
