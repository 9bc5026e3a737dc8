import fc from 'fast-check'
import { expect, test } from 'vitest'
import { squarify } from './treemap.tsx'

test('tiles fill the whole area, each by its share, and none lies on another', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(sizes, (bytes) => {
      const parts = bytes
        .sort((a, b) => b - a)
        .map((size, at) => ({ prefix: `p${at}`, keys: 1, bytes: size, children: [] }))
      const total = bytes.reduce((sum, size) => sum + size, 0)
      const tiles = squarify(parts, total)
      expect(tiles).toHaveLength(parts.length)
      for (const { of: part, x, y, width, height } of tiles) {
        expect((width * height) / (1000 * 220)).toBeCloseTo(part.bytes / total, 5)
        expect(x + width).toBeLessThan(1000.01)
        expect(y + height).toBeLessThan(220.01)
      }
    }),
  )
})
