import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { SharedHubs } from '../testing/shared-hubs.ts'
import type { AlarmNotice } from './alarm-webhooks.ts'
import { alertRequest } from './alert-shapes.ts'
import { FleetNotices, type NoticeClaims } from './fleet-notices.ts'

let server: RedisServer
const opened: SharedHubs[] = []
const notices: AlarmNotice[] = []
const receiver = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => (body += chunk))
  request.on('end', () => {
    notices.push(JSON.parse(body) as AlarmNotice)
    response.end()
  })
})

beforeAll(async () => {
  server = await startRedis()
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
}, 60_000)

afterEach(async () => {
  await Promise.all(opened.splice(0).map((hubs) => hubs.close()))
  notices.length = 0
})

afterAll(async () => {
  receiver.close()
  await server.stop()
})

const rule = { id: 'watch', prefix: 'k', threshold: 150, minHoldMs: 1000, strategy: 'Observe' }

async function open(): Promise<SharedHubs> {
  const alarmWebhooks = [`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`]
  const hubs = await SharedHubs.open(server.url, 2, [rule], { alarmWebhooks })
  opened.push(hubs)
  return hubs
}

/** Each tenth of a second each hub gets its counts. */
async function report(hubs: SharedHubs, seconds: number, counts: readonly Record<string, number>[]): Promise<void> {
  for (let tenth = 0; tenth < seconds * 10; tenth++) {
    for (const [hub, ofHub] of counts.entries()) hubs.report(hub, ofHub)
    await hubs.advance(100)
  }
}

const hotKeyAlarms = (hubs: SharedHubs) =>
  hubs.cores.map((core) => core.alarms.list().filter(({ id }) => id.startsWith('hot-key:')))
const told = () => notices.filter(({ alarm }) => alarm.id.startsWith('hot-key:')).map(({ event }) => event)

test('the share of a hot key is one of the accesses at all hubs, in the alarm and in the list', async () => {
  const hubs = await open()
  // Everything at its own hub, and a tenth of all.
  await report(hubs, 3, [{ k1: 20 }, { other: 180 }])
  expect(hotKeyAlarms(hubs)).toEqual([[], []])
  const [shown] = hubs.cores[0]!.views().keys({ limit: 10, match: 'k1' })
  expect(shown!.share).toBeCloseTo(0.1, 1)
})

test('hubs that share a store tell of a hot key once, and of its end once', async () => {
  const hubs = await open()
  await report(hubs, 3, [{ k1: 20 }, { k1: 20, other: 20 }])
  expect(hotKeyAlarms(hubs)).toMatchObject([[{ id: 'hot-key:main/k1' }], [{ id: 'hot-key:main/k1' }]])
  await hubs.events('')
  await waitFor(() => told().length > 0)
  await report(hubs, 5, [{ other: 20 }, { other: 20 }])
  expect(hotKeyAlarms(hubs)).toEqual([[], []])
  await waitFor(() => told().includes('cleared'))
  expect(told()).toEqual(['raised', 'cleared'])
  const timeline = (await hubs.events('')).filter(({ kind, text }) => kind === 'alarm' && text.includes('k1'))
  expect(timeline.map(({ text }) => text.split(':')[0])).toEqual(['raised', 'cleared'])
})

test('a hub that vanishes raises an alarm at the others; one that is closed does not', async () => {
  const hubs = await SharedHubs.open(server.url, 3, [])
  opened.push(hubs)
  const [first, closed, frozen] = hubs.cores
  const lost = () => first!.alarms.list().map(({ id }) => id)
  await closed!.close()
  hubs.forget(closed!)
  await hubs.advance(12_000)
  expect(lost()).toEqual([])
  // Its turns on the board end, and nothing else of it does.
  hubs.forget(frozen!)
  await frozen!.keys.close()
  await frozen!.store.board!.sync('hub-2.crashed', {})
  await hubs.advance(2000)
  await hubs.advance(10_000)
  expect(lost()).toEqual(['hub-lost:hub-2'])
})

test('without a store that answers every hub tells, and alarms of a hub are its own', async () => {
  const failing: NoticeClaims = {
    take: () => Promise.reject(new Error('away')),
    extend: () => Promise.reject(new Error('away')),
    end: () => Promise.reject(new Error('away')),
  }
  const sent: string[] = []
  const fleet = new FleetNotices(failing)
  fleet.tell('route', 'raised', 'hot-key:main/a', () => sent.push('raised'))
  fleet.tell('route', 'cleared', 'hot-key:main/a', () => sent.push('cleared'))
  fleet.tell('route', 'raised', 'store', () => sent.push('store'))
  expect(sent).toEqual(['store'])
  await fleet.settled()
  expect(sent).toEqual(['store', 'raised', 'cleared'])
})

test('a claim that is not answered delays no other alarm', async () => {
  const silent: NoticeClaims = {
    take: (name) => (name.includes('slow') ? new Promise(() => {}) : Promise.resolve(true)),
    extend: async () => {},
    end: async () => true,
  }
  const fleet = new FleetNotices(silent)
  fleet.tell('route', 'raised', 'hot-key:main/slow', () => {})
  await new Promise<void>((resolve) => fleet.tell('route', 'raised', 'hot-key:main/a', resolve))
})

test('claims are extended while the alarm lasts here, and no longer', async () => {
  const extended: string[] = []
  const claims: NoticeClaims = {
    take: async () => true,
    extend: async (name) => void extended.push(name),
    end: async () => true,
  }
  const fleet = new FleetNotices(claims)
  fleet.tell('route', 'raised', 'hub-lost:b', () => {})
  fleet.watch(0, () => true)
  fleet.watch(5000, () => true)
  fleet.watch(10_000, () => true)
  expect(extended).toEqual(['route:hub-lost:b', 'route:hub-lost:b'])
  fleet.watch(20_000, () => false)
  fleet.watch(30_000, () => true)
  expect(extended).toHaveLength(2)
})

test('an incident of the fleet has one name, whichever hub begins and ends it', () => {
  const target = { shape: 'pagerduty', url: 'https://events.example/', secret: 'key' } as const
  const keyOf = (hubId: string, id: string) => {
    const alarm = { id, severity: 'warning', cause: '', retry: '', since: 0, count: 1 } as const
    return JSON.parse(alertRequest(target, { event: 'raised', hubId, at: 0, alarm }).body).dedup_key
  }
  expect(keyOf('hub-1', 'hot-key:main/k')).toBe(keyOf('hub-2', 'hot-key:main/k'))
  expect(keyOf('hub-1', 'store')).not.toBe(keyOf('hub-2', 'store'))
})
