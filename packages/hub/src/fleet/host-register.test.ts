import { expect, test } from 'vitest'
import { HostRegister, processesIn } from './host-register.ts'

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
  here.setOthers([there.own(0), { 'another total': 7 }])
  expect(here.countOf(new Set(['shop', 'web']))).toBe(3)
  expect(here.services().sort()).toEqual(['shop', 'web'])
  expect(processesIn({ ...there.own(0), 'another total': 7 })).toBe(2)
  here.setOthers([])
  expect(here.services()).toEqual(['shop'])
})

test('a service that only reads its table is there while it goes on asking, at every hub', () => {
  const [here, there] = [new HostRegister(options), new HostRegister(options)]
  here.seeReader('python', 20_000, 0)
  here.seeReader('python', 0, 10)
  expect(here.services()).toEqual(['python'])
  there.setOthers([here.own(0)])
  expect(there.services()).toEqual(['python'])
  // It reports nothing, so that no limit is shared out to it.
  expect([here, there].map((register) => register.countOf(new Set(['python'])))).toEqual([0, 0])
  here.expire(20_900)
  expect(here.services()).toEqual(['python'])
  here.expire(21_001)
  expect(here.services()).toEqual([])
})

test('a process tells what it has lost so far, and when it lost something last', () => {
  const instance = new HostRegister(options).find('shop', 'h1', 'i1', 0)!
  const status = (droppedReports: number, errors: number) =>
    ({ version: 1, isOff: false, counters: { droppedReports, errors, reads: 0, localHits: 0 }, watchers: [] }) as never
  instance.takeStatus(status(0, 0), 1000)
  expect(instance.view(1000)).toMatchObject({ droppedReports: 0, failures: 0, lastLossAt: null })
  instance.takeStatus(status(2, 1), 2000)
  instance.takeStatus(status(0, 0), 3000)
  expect(instance.view(9000)).toMatchObject({ droppedReports: 2, failures: 1, lastLossAt: 2000 })
})

test('a process is behind by a table that it had the time to confirm, not by one of a moment ago', () => {
  const instance = new HostRegister(options).find('shop', 'h1', 'i1', 0)!
  const counters = { droppedReports: 0, reads: 0, localHits: 0 }
  const status = (version: number) => ({ version, isOff: false, counters, watchers: [] }) as never
  const behindAt = (now: number) => instance.view(now).tableBehindMs
  instance.takeStatus(status(4), 1000, 5)
  expect([behindAt(1000), behindAt(1700)]).toEqual([0, 700])
  // Its table changes with every status, and it keeps up.
  instance.takeStatus(status(5), 2000, 6)
  instance.takeStatus(status(6), 3000, 7)
  expect(behindAt(3100)).toBe(100)
  // Now it does not.
  instance.takeStatus(status(6), 4000, 8)
  instance.takeStatus(status(6), 5000, 9)
  expect(behindAt(6000)).toBe(3000)
  instance.takeStatus(status(9), 7000, 9)
  expect(behindAt(8000)).toBe(0)
})

test('who can carry a strategy out is told apart: a sensor, a reader of the table, or nobody', () => {
  const [here, there] = [new HostRegister(options), new HostRegister(options)]
  const carrier = (service: string, isPublished = false) => here.carriers(isPublished)(new Set([service]))
  const reporter = here.find('python', 'h1', 'i1', 0)!
  expect(carrier('python')).toBe('none')
  reporter.newestReport = { by: 'http', lagMs: 0 }
  expect(carrier('python')).toBe('reports')
  expect(carrier('python', true)).toBe('centre')
  here.seeReader('python', 0, 0)
  expect(carrier('python')).toBe('table')
  const linked = here.find('shop', 'h2', 'i2', 0)!
  linked.connections = 1
  expect(carrier('shop')).toBe('sensor')
  // A sensor that lost its link, or was switched off, is not one that never had one.
  linked.newestReport = { by: 'websocket', lagMs: 0 }
  linked.connections = 0
  expect(carrier('shop')).toBe('none')
  expect(here.carriers(false)(new Set(['shop', 'python']))).toBe('table')
  // At another hub.
  there.find('go', 'h3', 'i3', 0)!.newestReport = { by: 'http', lagMs: 0 }
  there.find('web', 'h4', 'i4', 0)!.connections = 1
  here.setOthers([there.own(0)])
  expect([carrier('go'), carrier('web'), carrier('other')]).toEqual(['reports', 'sensor', 'none'])
  // A hub of an earlier version tells only how many processes it has.
  here.setOthers([{ 'processes\u0000old': 1 }])
  expect(carrier('old')).toBe('sensor')
})
