import { expect, test } from 'vitest'
import { localLimiter } from '../local/local-limiter.ts'
import { fixedWindow } from '../spec/specs.ts'
import { limitRequests } from './express.ts'
import { ipKey } from './ip-key.ts'
import { limitHeader, policyHeader } from './rate-limit-headers.ts'

test('addresses are keys: IPv4 in full, IPv6 by network', () => {
  expect(ipKey('192.0.2.7')).toBe('192.0.2.7')
  expect(ipKey('::ffff:192.0.2.7')).toBe('192.0.2.7')
  expect(ipKey('2001:db8:1:2:3:4:5:6')).toBe(ipKey('2001:db8:1:2:ffff::1'))
  expect(ipKey('2001:db8:1:2::')).not.toBe(ipKey('2001:db8:1:3::'))
  expect(ipKey('2001:db8:1:2::', 48)).toBe(ipKey('2001:db8:1:3::', 48))
  expect(ipKey('unknown')).toBe('unknown')
  expect(() => limitRequests({ limiter: [], ipv6Prefix: 0 })).toThrow(/ipv6Prefix/)
})

test('names in headers are strings of structured fields', () => {
  const spec = fixedWindow({ limit: 2, windowMs: 1500 })
  expect(policyHeader([{ name: 'a "b"', spec }])).toBe('"a \\"b\\"";q=2;w=2')
  expect(limitHeader({ é: localLimiter(spec).peek('x') })).toBe('"?";r=2;t=0')
})
