import { fakeRuntime } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { PasswordGuard } from './password-guard.ts'

const make = (options = {}) => {
  const { clock } = fakeRuntime()
  return { guard: new PasswordGuard({ clock, ...options }), pass: (ms: number) => clock.advance(ms) }
}

describe('somebody who guesses passwords', () => {
  test('may try ten wrong passwords at once, then one every six seconds', () => {
    const { guard, pass } = make()
    for (let nth = 1; nth <= 10; nth++) {
      expect(guard.waitMs('10.0.0.1', 'ann')).toBe(0)
      expect(guard.failed('10.0.0.1', 'ann')).toBe(nth === 10)
    }
    expect(guard.waitMs('10.0.0.1', 'ann')).toBe(6000)
    pass(6000)
    expect(guard.waitMs('10.0.0.1', 'ann')).toBe(0)
    expect(guard.failed('10.0.0.1', 'ann')).toBe(true)
    pass(60_000)
    for (let nth = 0; nth < 10; nth++) {
      expect(guard.waitMs('10.0.0.1', 'ann')).toBe(0)
      guard.failed('10.0.0.1', 'ann')
    }
  })

  test('does not lock out other users of its address, nor the same user elsewhere', () => {
    const { guard } = make({ burst: 1 })
    guard.failed('10.0.0.1', 'ann')
    expect(guard.waitMs('10.0.0.1', 'ann')).toBeGreaterThan(0)
    expect(guard.waitMs('10.0.0.1', 'bob')).toBe(0)
    expect(guard.waitMs('10.0.0.2', 'ann')).toBe(0)
  })

  test.each([
    ['another address of its IPv6 network', '2001:db8::1', '2001:0DB8:0:0:ffff::2', true],
    ['another IPv6 network', '2001:db8::1', '2001:db8:0:1::1', false],
    ['the same IPv4 address, mapped', '10.0.0.1', '::ffff:10.0.0.1', true],
    ['an address with a scope', 'fe80::1%eth0', 'fe80::2%eth0', true],
    ['loopback', '::1', '::1', true],
  ])('is identified as coming from %s', (_, first, second, isSame) => {
    const { guard } = make({ burst: 1 })
    guard.failed(first, 'ann')
    expect(guard.waitMs(second, 'ann') > 0).toBe(isSame)
  })

  test('is forgotten once too many others have followed', () => {
    const { guard } = make({ burst: 1, maxPairs: 3 })
    for (let nth = 0; nth < 4; nth++) guard.failed(`10.0.0.${nth}`, 'ann')
    expect([0, 1, 2, 3].map((nth) => guard.waitMs(`10.0.0.${nth}`, 'ann') > 0)).toEqual([false, true, true, true])
  })
})
