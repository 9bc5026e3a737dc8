import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cutMiddle } from './cut-middle.ts'

test('a short text stays, a long one keeps both ends', () => {
  expect(cutMiddle('product:100', 11)).toBe('product:100')
  expect(cutMiddle('product:1000', 11)).toBe('produ…:1000')
  expect(cutMiddle('abc', 1)).toBe('…')
})

test('whatever the text, it fits, and no character is cut in two', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 60 }), (text, length) => {
      const cut = cutMiddle(text, length)
      expect([...cut].length).toBe(Math.min(length, [...text].length))
      expect(cut.isWellFormed()).toBe(text.isWellFormed())
    }),
  )
})
