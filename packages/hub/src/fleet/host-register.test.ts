import { expect, test } from 'vitest'
import { HostRegister } from './host-register.ts'

const options = { hostTimeoutMs: 1000, maxInstances: 4 }

test('processes are counted by service, as long as they are known', () => {
  const register = new HostRegister(options)
  const connected = register.find('shop', 'h1', 'i1', 0)!
  connected.connections = 1
  register.find('shop', 'h1', 'i2', 0)
  register.find('shop', 'h1', 'i2', 10)
  register.find('web', 'h2', 'i1', 0)
  register.find('web', 'h3', 'i1', 900)
  expect(register.find('late', 'h4', 'i1', 900)).toBeUndefined()
  expect(register.countOf(new Set(['shop']))).toBe(2)
  expect(register.countOf(new Set(['shop', 'web', 'late', 'other']))).toBe(4)
  expect(register.counts()).toEqual({ connected: 1, hosts: 3, services: 2 })
  register.expire(1500)
  // A connection keeps a process known, and so does a report.
  expect(register.countOf(new Set(['shop']))).toBe(1)
  expect(register.countOf(new Set(['web']))).toBe(1)
  connected.connections = 0
  register.expire(5000)
  expect(register.countOf(new Set(['shop', 'web']))).toBe(0)
  expect(register.counts()).toEqual({ connected: 0, hosts: 0, services: 0 })
})

test('processes at other hubs count too', () => {
  const [here, there] = [new HostRegister(options), new HostRegister(options)]
  here.find('shop', 'h1', 'i1', 0)
  there.find('shop', 'h2', 'i2', 0)
  there.find('web', 'h2', 'i3', 0)
  here.setOthers([there.own(), { 'another total': 7 }])
  expect(here.countOf(new Set(['shop', 'web']))).toBe(3)
  expect(here.services().sort()).toEqual(['shop', 'web'])
  here.setOthers([])
  expect(here.services()).toEqual(['shop'])
})
