import { expect, test } from 'vitest'
import { keyName } from '../keys/key-text.ts'
import { patternText } from './pattern-text.ts'

test('keys that are not text, or only spaces, are shown as what they are', () => {
  const binary = keyName(Uint8Array.of(0xff, 0, 0x80))
  expect(patternText({ kind: 'exact', keys: [binary, ' ', 'plain:1'] })).toBe('%FF%00%80, “ ”, plain:1')
  expect(patternText({ kind: 'prefix', prefix: 'plain:' })).toBe('plain:*')
})
