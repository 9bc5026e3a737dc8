import { keySlotOfBytes } from '@firebreak/core/commands'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isReservedName, markerOf, newestOf, ownershipOf, refresherOf, versionOf } from './own-names.ts'

const bytesOf = (text: string) => Buffer.from(text)

test('the companion keys of a copy or a key are on its node', () => {
  // Braces in a copy's name become parentheses.
  const copy = bytesOf('cart:(7)_1')
  for (const name of [markerOf(copy), ownershipOf(copy), newestOf(copy)])
    expect(keySlotOfBytes(name)).toBe(keySlotOfBytes(copy))
  for (const key of ['plain', 'a{b}c', '{x}', 'a{b'].map(bytesOf))
    for (const name of [versionOf(key), refresherOf(key)]) expect(keySlotOfBytes(name)).toBe(keySlotOfBytes(key))
})

test('the names for keys of any bytes contain those bytes, and are recognised as ours', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (key) => {
      for (const name of [markerOf, ownershipOf, newestOf, versionOf, refresherOf].map((nameOf) => nameOf(key))) {
        expect(Buffer.from(name).includes(Buffer.from(key))).toBe(true)
        expect(isReservedName(name)).toBe(true)
      }
      expect(isReservedName(key)).toBe(false)
    }),
  )
})

test.each([
  'product_100_1',
  '{user:1}:fb',
  '{user:1}:fb-version',
  'docs:firebreak-version',
  '{a}:firebreak-versions',
  '',
])('a key called %j is not ours', (name) => expect(isReservedName(bytesOf(name))).toBe(false))
