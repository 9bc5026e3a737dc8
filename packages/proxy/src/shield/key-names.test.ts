import { keyName } from '@firebreak/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyNames } from './key-names.ts'

test('every key has the name that core gives it, however many share a place', () => {
  const names = new KeyNames(4)
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 40 }), (keys) => {
      for (const key of [...keys, ...keys]) {
        const buffer = Buffer.concat([Buffer.from('xx'), key, Buffer.from('y')])
        expect(names.of(buffer, 2, 2 + key.length)).toBe(keyName(key))
      }
    }),
  )
})

test('a key seen before gives the very same string', () => {
  const names = new KeyNames()
  const bytes = Buffer.from('product:100')
  expect(names.of(bytes, 0, bytes.length)).toBe('product:100')
  expect(Object.is(names.of(bytes, 0, 7), names.of(bytes, 0, 7))).toBe(true)
})
