import fc from 'fast-check'
import { expect, test } from 'vitest'
import { escapeKey, unescapeKey } from './escape-key.ts'

test('text stays readable, binary is escaped, and nothing can move the terminal’s cursor', () => {
  expect(escapeKey(Buffer.from('user:1'))).toBe('user:1')
  expect(escapeKey(Buffer.from('kunde:Zürich:鍵'))).toBe('kunde:Zürich:鍵')
  expect(escapeKey(Uint8Array.from([0, 255, 10]))).toBe('\\x00\\xff\\x0a')
  expect(escapeKey(Buffer.from('a\\b'))).toBe('a\\\\b')
  expect(escapeKey(Buffer.from('red\u001b[31m'))).toBe('red\\x1b[31m')
  expect(escapeKey(Buffer.from('a\u202eb'))).not.toContain('\u202e')
})

test('every key can be restored byte for byte', () => {
  const check = (bytes: Uint8Array) => {
    expect(Buffer.from(unescapeKey(escapeKey(bytes))).equals(bytes)).toBe(true)
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), check), { numRuns: 500 })
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => check(Buffer.from(text, 'utf8'))))
  fc.assert(fc.property(fc.string(), (text) => check(Buffer.from(`\\x${text}\\`, 'utf8'))))
})
