import { loadTrace, scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TopK } from './top-k.ts'

const stream = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 50 })), { maxLength: 400 })

test('every true count lies within its bounds, and the error bound within 2 N / capacity', () => {
  fc.assert(
    fc.property(stream, fc.integer({ min: 2, max: 16 }), (accesses, capacity) => {
      const top = new TopK({ capacity })
      const exact = new Map<string, number>()
      let total = 0
      for (const [id, count] of accesses) {
        top.add(`k${id}`, count)
        exact.set(`k${id}`, (exact.get(`k${id}`) ?? 0) + count)
        total += count
      }
      expect(top.totalCount).toBe(total)
      expect(top.size).toBeLessThanOrEqual(capacity)
      expect(top.errorBound).toBeLessThanOrEqual((2 * total) / capacity)
      for (const [key, count] of exact) {
        const item = top.get(key)
        if (item === undefined) {
          expect(count).toBeLessThanOrEqual(top.errorBound)
          continue
        }
        expect(item.count).toBeLessThanOrEqual(count)
        expect(item.count + item.error).toBeGreaterThanOrEqual(count)
        expect(item.error).toBeLessThanOrEqual(top.errorBound)
      }
    }),
    { numRuns: scale(300, 5000) },
  )
})

test('the top 20 of a trace are found with a fraction of its keys as counters', () => {
  const { ids, keys } = loadTrace('web07')
  const top = new TopK({ capacity: 4096 })
  const exact = new Map<string, number>()
  for (const id of ids) {
    top.add(keys[id]!)
    exact.set(keys[id]!, (exact.get(keys[id]!) ?? 0) + 1)
  }
  const wanted = [...exact].sort((a, b) => b[1] - a[1])
  const floor = wanted[19]![1]
  const heaviest = [...top.items()].sort((a, b) => b.count - a.count).slice(0, 20)
  const found = heaviest.filter(({ key }) => exact.get(key)! >= floor - top.errorBound)
  expect(found.length).toBe(20)
})

test('writes and bytes are counted with their key', () => {
  const top = new TopK({ capacity: 2 })
  top.add('a', 3, 1, 100)
  top.add('a', 2, 2, 50)
  expect(top.get('a')).toEqual({ key: 'a', count: 5, writes: 3, bytes: 150, error: 0 })
})
