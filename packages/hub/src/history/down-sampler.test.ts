import type { HeatLetter } from '@firebreak/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DownSampler, type HeatSample } from './down-sampler.ts'
import { amountFields, blockSteps, decodeBlock, encodeBlock, type HistoryBlock, stepLengths } from './history-block.ts'

const start = 1_700_000_400_000
const seconds = 90
const unlimited = 1 << 30

const sample = (fields: Partial<HeatSample> & Pick<HeatSample, 'name'>): HeatSample => ({
  kind: 'key',
  redisClusterId: 'main',
  accesses: 0,
  writes: 0,
  bytes: 0,
  saved: 0,
  letter: '.',
  services: [],
  ruleId: undefined,
  slot: 7,
  node: '',
  ...fields,
})

const count = fc.nat({ max: 100_000 })
const samples = fc.array(
  fc.record({
    second: fc.nat({ max: seconds - 1 }),
    name: fc.constantFrom(...Array.from({ length: 12 }, (_, n) => `key-${n}`)),
    accesses: fc.integer({ min: 1, max: 100_000 }),
    writes: count,
    bytes: count,
    saved: count,
    letter: fc.constantFrom<HeatLetter>('.', 'w', 'o', 'l', 'c', 'm'),
  }),
  { maxLength: 300 },
)

/** A second is taken down once for a key. */
const once = fc
  .constant(null)
  .chain(() => samples.map((list) => [...new Map(list.map((one) => [`${one.second} ${one.name}`, one])).values()]))

function blocksOf(list: readonly (Partial<HeatSample> & { second: number; name: string })[]): HistoryBlock[] {
  const sampler = new DownSampler()
  for (const { second, ...fields } of list) sampler.add(start + second * 1000, sample(fields))
  return sampler.rest()
}

test('points of 1 s, 10 s and 1 min are what an exact count of the seconds gives, after they were packed too', () => {
  fc.assert(
    fc.property(once, (list) => {
      for (const block of blocksOf(list)) {
        const packed = decodeBlock(block.stepMs, block.at, encodeBlock(block, unlimited)!)
        expect(packed).toEqual({ ...packed, ...pick(block) })
        for (const row of packed.rows) {
          for (let step = 0; step < blockSteps; step++) {
            const from = block.at + step * block.stepMs
            const inside = list.filter(({ second, name }) => {
              const at = start + second * 1000
              return name === row.name && at >= from && at < from + block.stepMs
            })
            const sum = (field: (typeof amountFields)[number]) => inside.reduce((total, one) => total + one[field], 0)
            expect(amountFields.map((field) => row[field][step])).toEqual(amountFields.map(sum))
            expect(row.peak[step]).toBe(Math.max(0, ...inside.map(({ accesses }) => accesses)))
            expect(row.hot[step]).toBe(inside.filter(({ letter }) => 'olcm'.includes(letter)).length)
            const order = (letter: string) => '.wolcm'.indexOf(letter)
            expect(order(row.letters[step]!)).toBe(Math.max(0, ...inside.map(({ letter }) => order(letter))))
          }
        }
      }
      // Nothing is missing: each length of points has everything once.
      for (const stepMs of stepLengths) {
        const rows = blocksOf(list)
          .filter((block) => block.stepMs === stepMs)
          .flatMap((block) => block.rows)
        const accesses = rows.flatMap((row) => row.accesses).reduce((sum, one) => sum + one, 0)
        expect(accesses).toBe(list.reduce((sum, one) => sum + one.accesses, 0))
      }
    }),
    { numRuns: 60 },
  )
})

test('a block never takes more than it may; what does not fit is summed, so that nothing is lost', () => {
  fc.assert(
    fc.property(once, fc.integer({ min: 40, max: 2000 }), (list, maxBytes) => {
      for (const block of blocksOf(list)) {
        const text = encodeBlock(block, maxBytes)
        if (text === undefined) continue
        expect(text.length).toBeLessThanOrEqual(maxBytes)
        const kept = decodeBlock(block.stepMs, block.at, text)
        const whole = new Map(block.rows.map((row) => [row.name, row]))
        for (const row of kept.rows) expect(row).toEqual(whole.get(row.name))
        amountFields.forEach((field, index) => {
          for (let step = 0; step < blockSteps; step++) {
            const of = (rows: HistoryBlock['rows']) => rows.reduce((sum, row) => sum + row[field][step]!, 0)
            expect(of(kept.rows) + kept.rest[index]![step]!).toBe(of(block.rows))
          }
        })
        // The hottest stay.
        const heat = (row: HistoryBlock['rows'][number]) => row.accesses.reduce((sum, one) => sum + one, 0)
        const gone = block.rows.filter(({ name }) => !kept.rows.some((row) => row.name === name))
        const isHot = (row: HistoryBlock['rows'][number]) => row.hot.some((one) => one > 0)
        for (const away of gone) {
          for (const row of kept.rows)
            expect(isHot(row) !== isHot(away) ? isHot(row) : heat(row) >= heat(away)).toBe(true)
        }
      }
    }),
    { numRuns: 60 },
  )
})

function pick({ traffic, rows, rest }: HistoryBlock) {
  return { traffic, rows: rows.map((row) => ({ ...row })), rest }
}

test('a block is given out when it is over, and the coarse ones at the end of every ten seconds too', () => {
  const sampler = new DownSampler()
  const given: string[] = []
  for (let second = 0; second < 130; second++) {
    const at = start + second * 1000
    sampler.add(at - 2000, sample({ name: 'k', accesses: 1 }))
    for (const { stepMs, at: from } of sampler.due(at)) given.push(`${second} ${stepMs} ${(from - start) / 1000}`)
  }
  expect(given.filter((line) => line.includes(' 1000 ')).slice(0, 3)).toEqual(['3 1000 -10', '13 1000 0', '23 1000 10'])
  expect(given.filter((line) => line.includes(' 10000 ')).slice(0, 3)).toEqual([
    '0 10000 -100',
    '3 10000 -100',
    '10 10000 0',
  ])
  expect(given.filter((line) => line.includes(' 60000 ')).length).toBeGreaterThan(10)
})
