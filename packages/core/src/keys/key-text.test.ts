import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keyBytes, keyName, keyText, parseKeyText, readableKey } from './key-text.ts'

test('a plain key is its own name and text', () => {
  expect(keyName('product_100')).toBe('product_100')
  expect(keyText('product_100')).toBe('product_100')
  expect(keyText('user:1')).toBe('user%3A1')
  expect(keyText('a b,c#d%e')).toBe('a%20b%2Cc%23d%25e')
  expect(keyText('höhle')).toBe('h%C3%B6hle')
  expect(parseKeyText('100%')).toBe(undefined)
  expect(parseKeyText('%zz')).toBe(undefined)
})

test('a string and its UTF-8 bytes have one name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (key) => {
      expect(keyName(new TextEncoder().encode(key))).toBe(keyName(key))
    }),
  )
})

test('any bytes can be restored from their name and from their text, and different bytes have different names', () => {
  const seen = new Map<string, string>()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      const name = keyName(bytes)
      expect([...keyBytes(name)]).toEqual([...bytes])
      expect(parseKeyText(keyText(name))).toBe(name)
      expect(keyText(name)).toMatch(/^[\x21-\x7e]*$/)
      const hex = Buffer.from(bytes).toString('hex')
      expect(seen.get(name) ?? hex).toBe(hex)
      seen.set(name, hex)
    }),
  )
})

test('bytes that look like the binary mark are kept distinct from it', () => {
  const imitation = new TextEncoder().encode('\u0000b\u00ff')
  const binary = Uint8Array.from([0xff])
  expect(keyName(imitation)).not.toBe(keyName(binary))
  expect([...keyBytes(keyName('\u0000bx'))]).toEqual([0, 98, 120])
})

test('in text for people, only unprintable characters are escaped', () => {
  expect(readableKey('user%3A1')).toBe('user:1')
  expect(readableKey(keyText('höhle 7'))).toBe('höhle 7')
  expect(readableKey(keyText('a\nb'))).toBe('a%0Ab')
  expect(readableKey('%FF%00')).toBe('%FF%00')
})
