import { expect, test } from 'vitest'
import { compilePattern } from './key-matcher.ts'

test.each([
  ['h?llo', ['hello', 'hallo', 'hxllo'], ['hllo', 'heello']],
  ['h*llo', ['hllo', 'heeeello'], ['hell']],
  ['h[ae]llo', ['hello', 'hallo'], ['hillo']],
  ['h[^e]llo', ['hallo', 'hbllo'], ['hello']],
  ['h[a-b]llo', ['hallo', 'hbllo'], ['hcllo']],
  ['a\\*b', ['a*b'], ['axb']],
  ['*:stock', ['1:stock', ':stock'], ['1:stocks']],
  ['*a*b*c', ['abc', 'xxaxxbxxc'], ['acb']],
])('the glob %s means what it means in Redis', (glob, yes, no) => {
  const matches = compilePattern({ kind: 'glob', glob })
  expect(yes.filter((name) => !matches(name))).toEqual([])
  expect(no.filter((name) => matches(name))).toEqual([])
})

test('exact, prefix and suffix', () => {
  expect(['a', 'b', 'c'].map(compilePattern({ kind: 'exact', keys: ['a', 'c'] }))).toEqual([true, false, true])
  expect(['product_1', 'x_product_'].map(compilePattern({ kind: 'prefix', prefix: 'product_' }))).toEqual([true, false])
  expect(['x:stock', 'stock:x'].map(compilePattern({ kind: 'suffix', suffix: ':stock' }))).toEqual([true, false])
})

test('a glob with many stars is fast on a long name', () => {
  const matches = compilePattern({ kind: 'glob', glob: `${'*a'.repeat(50)}b` })
  expect(matches('a'.repeat(20_000))).toBe(false)
})
