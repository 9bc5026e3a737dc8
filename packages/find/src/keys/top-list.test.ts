import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TopList } from './top-list.ts'

test('keeps the heaviest, ordered by weight and then by name', () => {
  const entry = fc.record({ weight: fc.integer({ min: 0, max: 20 }), name: fc.string({ maxLength: 3 }) })
  fc.assert(
    fc.property(fc.array(entry), fc.integer({ min: 0, max: 12 }), (entries, size) => {
      const top = new TopList<{ weight: number; name: string }>(size, ({ name }) => name)
      for (const one of entries) top.add(one.weight, one)
      const kept = top.sorted()
      const weights = entries.map(({ weight }) => weight).sort((a, b) => b - a)
      expect(kept.map(({ weight }) => weight)).toEqual(weights.slice(0, size))
      expect(new Set(kept).size).toBe(kept.length)
      expect(kept.every((one) => entries.includes(one))).toBe(true)
      for (let index = 1; index < kept.length; index++) {
        const [a, b] = [kept[index - 1]!, kept[index]!]
        expect(a.weight > b.weight || a.name <= b.name).toBe(true)
      }
    }),
  )
})
