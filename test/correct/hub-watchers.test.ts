import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { peek } from '@firebreak/client'
import type { AlarmView, HostView, WatcherView } from '@firebreak/core'
import { type AlarmNotice, type Hub, type HubOptions, startHub } from '@firebreak/hub'
import { FaultProxy, letTimePass, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'

/** Real hubs with sources of changes, and clients whose user may not use tracking. */
let server: RedisServer
let proxy: FaultProxy
let fixture: Fixture
let hub: Hub
let receiver: Server
let notices: AlarmNotice[]

const rules = [{ id: 'hot', prefix: 'hot', threshold: 1, strategy: 'LocalCache' }]

beforeAll(async () => {
  server = await startRedis({ args: ['--appendonly', 'yes', '--repl-diskless-sync-delay', '0'] })
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  proxy = await FaultProxy.start(server.port)
  await fixture.plain.call('ACL', 'SETUSER', 'limited', 'on', '>pass', '~*', '+@all', '-client|tracking')
  notices = []
  receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      notices.push(JSON.parse(body) as AlarmNotice)
      response.end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await hub.close()
  await fixture.close()
  await proxy.close()
  receiver.closeAllConnections()
  receiver.close()
})

async function startWith(options: HubOptions): Promise<void> {
  const alarmWebhooks = [`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`]
  hub = await startHub({ logLevel: 'silent', heartbeatMs: 100, initialRules: rules, alarmWebhooks, ...options })
  await waitFor(async () => (await watchers()).every(({ state }) => state === 'live'), { what: 'live watchers' })
}

const replica = () =>
  ({
    kind: 'replica',
    redisClusterId: 'main',
    address: { host: '127.0.0.1', port: proxy.port },
    guards: true,
  }) as const

async function ask<Answer>(path: string): Promise<Answer> {
  return (await (await fetch(`${hub.url}${path}`)).json()) as Answer
}
const watchers = async () => (await ask<{ watchers: WatcherView[] }>('/v1/watchers')).watchers
const alarms = async () => (await ask<{ alarms: AlarmView[] }>('/v1/alarms')).alarms
const kinds = async () =>
  (await ask<{ hosts: HostView[] }>('/v1/hosts')).hosts.flatMap((host) => host.watchers.map(({ kind }) => kind))

/** A client that is refused tracking, with a hot key in its memory. */
async function guardedClient(key: string, value: string): Promise<Redis> {
  const redis = new Redis(server.port, { username: 'limited', password: 'pass' })
  await fixture.adopt(redis, { hubs: [hub.url], fallbackTtlMs: 1, leaseMs: 300 })
  await serves(redis, key, value)
  return redis
}

const serves = (redis: Redis, key: string, value: string | null) =>
  waitFor(async () => (await redis.get(key)) === value && peek(redis, key) === value, {
    everyMs: 2,
    what: `${key} to be served as ${value}`,
  })

/** The fallback of 1 ms is over long before this, so whatever is served then is guarded by the lane. */
async function isKept(redis: Redis, key: string): Promise<boolean> {
  if (peek(redis, key) === undefined) await redis.get(key)
  await letTimePass(30)
  return peek(redis, key) !== undefined
}

describe.each([
  ['a replica stream', () => [replica()]],
  ['an AOF tail', () => [{ kind: 'aof', redisClusterId: 'main', folder: server.folder, guards: true } as const]],
])('%s in the hub', (_, settings) => {
  test('guards what clients without tracking cache, and each write reaches them', async () => {
    await startWith({ watchers: settings() })
    await fixture.plain.set('hot', '0')
    const redis = await guardedClient('hot', '0')
    await waitFor(() => isKept(redis, 'hot'), { what: 'the lane to guard' })
    for (let version = 1; version <= 20; version++) {
      await fixture.plain.set('hot', String(version))
      await serves(redis, 'hot', String(version))
    }
    await fixture.plain.flushall()
    await serves(redis, 'hot', null)
    await waitFor(async () => (await kinds()).includes('lane'))
    const [view] = await watchers()
    expect(view).toMatchObject({ redisClusterId: 'main', state: 'live', detail: '' })
    expect(view!.counts['changes']).toBeGreaterThanOrEqual(21)
    const metrics = await (await fetch(`${hub.url}/metrics`)).text()
    expect(metrics).toMatch(/firebreak_source_up\{source="[^"]+"\} 1/)
    expect(metrics).toMatch(/firebreak_source_events_total\{source="[^"]+",event="changes"\} \d+/)
  })
})

test('small values are carried: values that need not be consistent are renewed without a read', async () => {
  const strategy = { strategy: 'LocalCache', consistent: false }
  await startWith({ watchers: [replica()], initialRules: [{ id: 'hot', prefix: 'hot', threshold: 1, strategy }] })
  const redis = new Redis(server.port)
  await fixture.plain.set('hot', 'old')
  await fixture.adopt(redis, { hubs: [hub.url] })
  await serves(redis, 'hot', 'old')
  const reads = await fixture.calls('get')
  await fixture.plain.set('hot', 'new')
  await waitFor(() => peek(redis, 'hot') === 'new')
  expect(await fixture.calls('get')).toBe(reads)
  // One that is too large to carry is dropped and read.
  await fixture.plain.set('hot', 'x'.repeat(5000))
  await waitFor(() => peek(redis, 'hot') !== 'new')
  expect(await redis.get('hot')).toHaveLength(5000)
})

test('a stream that is cut or silent: the lease ends, an alarm names the cause, is posted, and ends', async () => {
  await startWith({ watchers: [replica()] })
  await fixture.plain.set('hot', '0')
  const redis = await guardedClient('hot', '0')
  await waitFor(() => isKept(redis, 'hot'))
  proxy.faults.isBlackHole = true
  await waitFor(async () => (await alarms()).some(({ id }) => id === 'source:replica stream of main'))
  await waitFor(async () => !(await isKept(redis, 'hot')), { what: 'the lease to end' })
  const [alarm] = await alarms()
  expect(alarm).toMatchObject({ severity: 'warning', retry: expect.stringContaining('reconnects by itself') })
  expect(alarm!.cause).toMatch(/^replica stream of main: /)
  await fixture.plain.set('hot', '1')
  expect(await redis.get('hot')).toBe('1')
  proxy.faults.isBlackHole = false
  proxy.cut()
  await waitFor(async () => (await watchers())[0]!.state === 'live')
  await waitFor(() => isKept(redis, 'hot'), { what: 'the lane to guard again' })
  await waitFor(() => notices.some(({ event, alarm: { id } }) => event === 'cleared' && id.startsWith('source:')))
  expect(notices.find(({ alarm: { id } }) => id.startsWith('source:'))).toMatchObject({ event: 'raised' })
  const { events } = await ask<{ events: { kind: string; text: string }[] }>('/v1/history')
  expect(events.some(({ kind, text }) => kind === 'alarm' && text.startsWith('raised: replica stream'))).toBe(true)
})

test('a stream whose tries are used up stops if so configured: nothing that depends on it is served', async () => {
  await startWith({ watchers: [replica()], retry: { replica: { tries: 2, firstMs: 10, mostMs: 10, atEnd: 'stop' } } })
  await fixture.plain.set('hot', '0')
  const redis = await guardedClient('hot', '0')
  await waitFor(() => isKept(redis, 'hot'))
  proxy.faults.refusesConnections = true
  proxy.cut()
  await waitFor(async () => (await watchers())[0]!.state === 'failed')
  expect((await alarms()).find(({ id }) => id.startsWith('source:'))).toMatchObject({
    severity: 'critical',
    cause: expect.stringContaining('given up after 3 failures in a row'),
    retry: expect.stringContaining('will not be retried'),
  })
  await waitFor(async () => !(await isKept(redis, 'hot')), { what: 'the lease to end' })
  proxy.faults.refusesConnections = false
  await letTimePass(300)
  expect((await watchers())[0]!.state).toBe('failed')
  expect(await isKept(redis, 'hot')).toBe(false)
})

test('a stream whose tries are used up raises a critical alarm by default, reports it once more, and recovers', async () => {
  await startWith({ watchers: [replica()], retry: { replica: { tries: 2, firstMs: 10, mostMs: 10 } } })
  proxy.faults.refusesConnections = true
  proxy.cut()
  const told = (event: string, severity: string) =>
    waitFor(() =>
      notices.some(
        (notice) =>
          notice.event === event && notice.alarm.severity === severity && notice.alarm.id.startsWith('source:'),
      ),
    )
  await told('raised', 'warning')
  await told('raised', 'critical')
  proxy.faults.refusesConnections = false
  await waitFor(async () => (await watchers())[0]!.state === 'live')
  await told('cleared', 'critical')
})

test('a watcher whose tries are used up stops if so configured: an alarm says so, and every read goes to Redis', async () => {
  await startWith({})
  await fixture.plain.set('hot', '0')
  const redis = new Redis(proxy.port)
  const retry = { tracking: { tries: 2, firstMs: 10, mostMs: 10, atEnd: 'stop' } } as const
  await fixture.adopt(redis, { hubs: [hub.url], retry, onWarning: () => {} })
  await serves(redis, 'hot', '0')
  proxy.faults.onlyTracking = true
  proxy.faults.refusesConnections = true
  proxy.cut()
  const alarm = await waitFor(async () => (await alarms()).find(({ id }) => id.startsWith('watcher:')))
  expect(alarm.cause).toContain('given up until this process is restarted after 3 failures in a row')
  proxy.faults.refusesConnections = false
  await letTimePass(500)
  for (const value of ['1', '2']) {
    await fixture.plain.set('hot', value)
    expect(await redis.get('hot')).toBe(value)
    expect(peek(redis, 'hot')).toBeUndefined()
  }
})

test('a client without a guard raises an alarm, until it has one', async () => {
  await startWith({})
  await fixture.plain.set('hot', '0')
  const redis = new Redis(server.port, { username: 'limited', password: 'pass' })
  await fixture.adopt(redis, { hubs: [hub.url], fallbackTtlMs: 50 })
  await serves(redis, 'hot', '0')
  const alarm = await waitFor(async () => {
    await redis.get('hot')
    return (await alarms()).find(({ id }) => id.startsWith('watcher:'))
  })
  expect(alarm.cause).toMatch(/^shop on .* keeps values of main for fallbackTtlMs only: .*tracking was refused/)
  expect(await kinds()).toContain('fallback')
})

test('a restarted hub continues at its position in the stream: nothing is missed, nothing flushed', async () => {
  const dataFolder = temporaryFolder('hub')
  await startWith({ watchers: [replica()], dataFolder })
  expect((await watchers())[0]!.counts['flushes']).toBe(1)
  await fixture.plain.set('hot', 'seen')
  await waitFor(async () => (await watchers())[0]!.counts['changes']! >= 1)
  await hub.close()
  await fixture.plain.set('hot', 'while it was away')
  await startWith({ watchers: [replica()], dataFolder })
  await waitFor(async () => (await watchers())[0]!.counts['changes']! >= 1)
  expect((await watchers())[0]!.counts['flushes']).toBe(0)
})
