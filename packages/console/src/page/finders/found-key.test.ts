import { expect, test } from 'vitest'
import { cliKey, foundKeyText } from './found-key.ts'

test.each([
  ['user:all', 'user%3Aall'],
  ['größe', 'gr%C3%B6%C3%9Fe'],
  [String.raw`a\\b`, String.raw`a\b`],
  [String.raw`a\x0ab`, 'a%0Ab'],
  [String.raw`\xff\x00\x80`, '%FF%00%80'],
])('the found key %s is the key text %s', (found, text) => {
  expect(foundKeyText(found)).toBe(text)
})

test('a command names the key whole, as redis-cli reads it', () => {
  const long = `session:${'x'.repeat(400)}`
  expect(cliKey(long)).toBe(`"${long}"`)
  expect(cliKey(String.raw`say "hi" \xff\\`)).toBe(String.raw`"say \"hi\" \xff\\"`)
})
