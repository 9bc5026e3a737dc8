import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'

const watched = { id: 'watch', prefix: 'product:', threshold: 50, strategy: 'Observe' }

test('a hot key that is only observed and takes much of the load is an alarm, until something is done about it', async () => {
  const hub = await TestCore.open([watched])
  const isAlarm = () => hub.core.alarms.list().map(({ id }) => id)
  hub.keepReporting(3000, { 'product:1': 40, 'product:2': 6, other: 40 })
  // product:2 is hot too, with 7 % of all accesses.
  expect(hub.phase('product:2')).toBe('hot')
  expect(isAlarm()).toEqual(['hot-key:main/product%3A1'])
  expect(hub.core.alarms.list()[0]).toMatchObject({
    severity: 'warning',
    cause: expect.stringMatching(/^product:1 takes 4\d % of all accesses .*rule watch only observes$/),
    subject: { redisClusterId: 'main', key: 'product%3A1' },
  })
  await hub.core.deleteRule('watch', 'ann')
  hub.keepReporting(2000, { 'product:1': 40, other: 40 })
  expect(isAlarm()).toEqual([])
  await hub.core.close()
})

test('a share of 0 raises none, and a switch that is off tells for itself', async () => {
  const never = await TestCore.open([watched], { hotKeyAlarmPercent: 0 })
  never.keepReporting(3000, { 'product:1': 40 })
  expect(never.phase('product:1')).toBe('hot')
  expect(never.core.alarms.list()).toEqual([])
  await never.core.close()
  const off = await TestCore.open([watched])
  off.keepReporting(3000, { 'product:1': 40 })
  expect(off.core.alarms.list()).toHaveLength(1)
  await off.core.setOff(true, 'ann')
  off.keepReporting(1500, { 'product:1': 40 })
  expect(off.core.alarms.list()).toEqual([])
  await off.core.close()
})

test('a strategy that nobody can carry out is an alarm that says so', async () => {
  const hub = await TestCore.open([{ id: 'cache', prefix: 'product:', threshold: 50, strategy: 'LocalCache' }])
  hub.keepReporting(3000, { 'product:1': 40 })
  expect(hub.core.alarms.list()[0]?.cause).toContain('no process that uses it is connected to this hub')
  await hub.core.close()
})

test('a service that only sends reports is told what to do', async () => {
  const hub = await TestCore.open([{ id: 'cache', prefix: 'product:', threshold: 50, strategy: 'LocalCache' }])
  for (let passed = 0; passed < 3000; passed += 100) {
    const now = hub.clock.now()
    hub.core.collector.collectText(`# ${now},${now},python,host-1\n# main\nproduct%3A1:40\n`, 1)
    hub.clock.advance(100)
  }
  expect(hub.core.alarms.list()[0]?.cause).toContain('only send reports; let them read /v1/table')
  const [key] = hub.core.views().keys({ limit: 1 })
  expect(key).toMatchObject({ handling: 'observed', carrier: 'reports', effect: null })
  // Somebody polls the table.
  hub.core.fleet.hosts.seeReader('python', 0, hub.clock.now())
  expect(hub.core.views().keys({ limit: 1 })[0]).toMatchObject({ handling: 'handled', carrier: 'table' })
  expect(hub.core.views().overview()).toMatchObject({ safety: 'safe', hotBy: { table: 1 } })
  await hub.core.close()
})
