import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BoundedCache } from './bounded-cache.ts'

const policies = ['LRU', 'LFU', 'SIEVE', 'S3-FIFO'] as const

test.each(policies)('%s never holds more entries or bytes than allowed, and counts them right', (policy) => {
  const step = fc.record({
    action: fc.constantFrom('set', 'set', 'get', 'delete', 'clear'),
    key: fc.nat(30),
    bytes: fc.nat(60),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const sizes = new Map<string, number>()
      const cache = new BoundedCache<number>({
        maxEntries: 8,
        maxBytes: 100,
        policy,
        onEvict: (key) => void sizes.delete(key),
      })
      for (const { action, key, bytes } of steps) {
        const name = `k${key}`
        if (action === 'set') {
          if (cache.set(name, bytes, bytes)) sizes.set(name, bytes)
          else sizes.delete(name)
        } else if (action === 'get') expect(cache.get(name)).toBe(sizes.get(name))
        else if (action === 'delete') expect(cache.delete(name)).toBe(sizes.delete(name))
        else {
          cache.clear()
          sizes.clear()
        }
        expect(cache.size).toBe(sizes.size)
        expect(cache.size).toBeLessThanOrEqual(8)
        expect(cache.bytes).toBe([...sizes.values()].reduce((sum, size) => sum + size, 0))
        expect(cache.bytes).toBeLessThanOrEqual(100)
      }
    }),
  )
})

test('a value larger than the whole cache is not kept, and neither is the older value of its key', () => {
  const cache = new BoundedCache<string>({ maxEntries: 4, maxBytes: 10 })
  cache.set('other', 'x', 5)
  cache.set('key', 'small', 3)
  expect(cache.set('key', 'large', 11)).toBe(false)
  expect(cache.has('key')).toBe(false)
  expect(cache.get('other')).toBe('x')
})

test('a missing or invalid limit is refused', () => {
  expect(() => new BoundedCache({ maxEntries: 0, maxBytes: 1 })).toThrow('maxEntries')
  expect(() => new BoundedCache({ maxEntries: 1, maxBytes: Number.NaN })).toThrow('maxBytes')
  expect(() => new BoundedCache({ maxEntries: 1, maxBytes: 1, policy: 'FIFO' as 'LRU' })).toThrow('policy')
})
