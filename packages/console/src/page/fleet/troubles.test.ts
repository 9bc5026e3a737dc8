import type { HostView } from '@firebreak/core'
import { expect, test } from 'vitest'
import { kindOf, troublesOf, versionOf } from './troubles.ts'

const host: HostView = {
  serviceId: 'shop',
  hostId: 'host-1',
  instanceId: 'i1',
  agent: 'client/0.1.0 ioredis',
  connectedAt: 0,
  lastSeenAt: 99_000,
  clockOffsetMs: 3,
  tableVersion: 7,
  tableBehindMs: 0,
  ratePerSecond: 5,
  droppedReports: 0,
  watchers: [{ redisClusterId: 'main', kind: 'tracking', state: 'live', detail: '' }],
  isOff: false,
  isConnected: true,
  reportsBy: 'websocket',
  reportLagMs: 60,
  tablesBy: 'websocket',
  cachedBytes: 0,
  failures: 0,
}
const troubles = (changes: Partial<HostView>) => troublesOf({ ...host, ...changes }, 100_000, '0.1.0')

test('a sensor that is well has no trouble, also one that reads its table over HTTP or is of an earlier version', () => {
  expect(troubles({})).toEqual([])
  expect(troubles({ agent: 'http', isConnected: false, tablesBy: 'http' })).toEqual([])
  expect(troubles({ agent: 'kafka', reportsBy: 'kafka', isConnected: false, tablesBy: 'centre' })).toEqual([])
  const { reportsBy: _1, reportLagMs: _2, tablesBy: _3, cachedBytes: _4, failures: _5, ...early } = host
  expect(troublesOf(early, 100_000)).toEqual([])
  // What was lost an hour ago is a figure of the table.
  expect(troublesOf({ ...host, droppedReports: 9, lastSeenAt: 4e6, lastLossAt: 1000 }, 4e6, '0.1.0')).toEqual([])
})

test.each<[Partial<HostView>, string]>([
  [{ lastSeenAt: 80_000 }, 'silent for 20 s'],
  [{ isConnected: false, tablesBy: null }, 'reports only, gets no table'],
  [{ tableBehindMs: 8000 }, 'without the newest table for 8 s'],
  [{ isOff: true }, 'switched off'],
  [
    { watchers: [{ redisClusterId: 'main', kind: 'tracking', state: 'refused', detail: 'NOPERM' }] },
    'its watcher (tracking) is refused: NOPERM',
  ],
  [{ reportLagMs: 4200 }, 'its reports come 4.2 s late'],
  [{ clockOffsetMs: -5000 }, 'its clock is off by 5 s'],
  [{ droppedReports: 1, lastLossAt: 90_000 }, 'dropped reports'],
  [{ droppedReports: 1 }, 'dropped reports'],
  [{ failures: 2, lastLossAt: 90_000 }, 'failures of its own; the alarms name them'],
  [{ agent: 'proxy/0.0.9' }, 'of version 0.0.9, the hub is 0.1.0'],
])('%j is told as what it is', (changes, text) => {
  expect(troubles(changes)).toEqual([text])
})

test('an agent is its kind and its version', () => {
  expect([kindOf('client/0.1.0 ioredis'), versionOf('client/0.1.0 ioredis')]).toEqual(['client ioredis', '0.1.0'])
  expect([kindOf('proxy/1.2.3-rc.1'), versionOf('proxy/1.2.3-rc.1')]).toEqual(['proxy', '1.2.3-rc.1'])
  expect([kindOf('http'), versionOf('http')]).toEqual(['http', undefined])
})
