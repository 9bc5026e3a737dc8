import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { keyRedaction } from './key-redaction.ts'

const redactSecret = 'correct horse battery'
const hex = (text: string, length: number) =>
  createHmac('sha256', redactSecret).update(text).digest('hex').slice(0, length)

describe('key redaction', () => {
  test('is off by default, and refuses a setting without the secret with the reason', () => {
    expect(keyRedaction({})).toBeUndefined()
    expect(keyRedaction({ redactKeys: ['off'] })).toBeUndefined()
    expect(() => keyRedaction({ redactKeys: ['hash'] })).toThrow(/redactSecret/)
    expect(() => keyRedaction({ redactKeys: ['hash'], redactSecret: 'hunter2' })).toThrow(/^(?!.*hunter2)/)
    expect(() => keyRedaction({ redactKeys: ['hash', 'a*'], redactSecret })).toThrow(/redactKeys/)
    expect(() => keyRedaction({ redactKeys: ['user:4711'], redactSecret })).toThrow(/redactKeys/)
  })

  test('by hash, gives every key a name that any language can compute', () => {
    const redact = keyRedaction({ redactKeys: ['hash'], redactSecret })!
    expect(redact('user:4711')).toBe(`~${hex('user:4711', 32)}`)
  })

  test('by pattern, replaces what matches a star, and leaves the rest for rules to match', () => {
    const redact = keyRedaction({ redactKeys: ['user:*:cart', 'session:*', '*@*'], redactSecret })!
    expect(redact('user:4711:cart')).toBe(`user:~${hex('4711', 16)}~:cart`)
    expect(redact('user:4711:orders')).toBe('user:4711:orders')
    expect(redact('session:')).toBe('session:')
    expect(redact('ann@example.org')).toBe(`~${hex('ann', 16)}~@~${hex('example.org', 16)}~`)
    expect(redact('product_100')).toBe('product_100')
  })

  test.each([['hash'], ['user:*'], ['*:*:*', 'a*'], ['*'], ['*1*', '*a:*', 'b*']])(
    'by %s, gives the same name twice, and leaves its own result unchanged',
    (...redactKeys) => {
      const redact = keyRedaction({ redactKeys, redactSecret })!
      fc.assert(
        fc.property(
          fc.oneof(
            fc.string({ unit: 'binary' }),
            fc.stringMatching(/^(user|a|b)(:(~[0-9a-f]{16}~)?[a-z0-9]{0,5}){0,4}$/),
          ),
          (name) => {
            const outside = redact(name)
            expect(redact(name)).toBe(outside)
            expect(redact(outside)).toBe(outside)
          },
        ),
      )
    },
  )

  test('a mark in a key does not hide other parts from the patterns', () => {
    const redact = keyRedaction({ redactKeys: ['msg:*:*'], redactSecret })!
    const mark = '~0123456789abcdef~'
    expect(redact(`msg:ann:${mark}`)).toBe(`msg:~${hex('ann', 16)}~:${mark}`)
    expect(redact(`msg:ann${mark}:x`)).toBe(`msg:~${hex(`ann${mark}`, 16)}~:~${hex('x', 16)}~`)
  })

  test('a key that would be slow for a regular expression is not slow here', () => {
    const redact = keyRedaction({ redactKeys: [`${'*a'.repeat(50)}*!`], redactSecret })!
    const name = 'a'.repeat(1_000_000)
    expect(redact(name)).toBe(name)
  })
})
