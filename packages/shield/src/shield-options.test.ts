import { afterEach, expect, test } from 'vitest'
import { resolveShieldOptions } from './shield-options.ts'

const names = ['FIREBREAK_HUB', 'FIREBREAK_SERVICE', 'FIREBREAK_HOST', 'FIREBREAK_TOKEN'] as const
afterEach(() => {
  for (const name of names) delete process.env[name]
})

test('the environment provides what the options leave out', () => {
  process.env['FIREBREAK_HUB'] = 'http://a:1, https://b:2'
  process.env['FIREBREAK_SERVICE'] = 'shop'
  process.env['FIREBREAK_HOST'] = 'web-1'
  process.env['FIREBREAK_TOKEN'] = 't'
  const options = resolveShieldOptions({})
  expect(options).toMatchObject({ hubs: ['http://a:1', 'https://b:2'], serviceId: 'shop', hostId: 'web-1', token: 't' })
  expect(options.instanceId).toContain('web-1')
  expect(options.tableFile).toContain('shop')
  expect(resolveShieldOptions({ serviceId: 'own', tableFile: false })).toMatchObject({
    serviceId: 'own',
    tableFile: undefined,
  })
})

test('two processes of one host have different instance ids', () => {
  expect(resolveShieldOptions({}).instanceId).not.toBe(resolveShieldOptions({}).instanceId)
})

test.each([
  ['leaseMs', { leaseMs: 0 }],
  ['limitDeadlineMs', { limitDeadlineMs: 0 }],
  ['fallbackTtlMs', { fallbackTtlMs: -1 }],
  ['maxKeys', { maxKeys: Number.NaN }],
  ['serviceId', { serviceId: '' }],
  ['hubs', { hubs: ['localhost:7070'] }],
  ['hubs', { hubs: ['not a url'] }],
])('a wrong %s is refused by name', (name, options) => {
  expect(() => resolveShieldOptions(options)).toThrow(name)
})
