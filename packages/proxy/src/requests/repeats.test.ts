import fc from 'fast-check'
import { expect, test } from 'vitest'
import { repeatsEnd } from './repeats.ts'

test('whole copies are found, and nothing else', () => {
  const piece = fc.uint8Array({ minLength: 1, maxLength: 6, max: 2 })
  fc.assert(
    fc.property(piece, fc.nat(80), fc.uint8Array({ maxLength: 8, max: 2 }), (piece, count, tail) => {
      const stream = Buffer.concat([Buffer.from('x'), ...Array.from({ length: count + 1 }, () => piece), tail])
      const end = repeatsEnd(stream, 1, 1 + piece.length, stream.length)
      const copies = (end - 1) / piece.length - 1
      expect(copies).toBeGreaterThanOrEqual(count)
      expect(Number.isInteger(copies)).toBe(true)
      for (let nth = 1; nth <= copies; nth++) {
        const from = 1 + nth * piece.length
        expect(stream.subarray(from, from + piece.length)).toEqual(Buffer.from(piece))
      }
      const next = stream.subarray(end, end + piece.length)
      expect(next.equals(piece)).toBe(false)
    }),
  )
})
