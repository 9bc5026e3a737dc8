import { peek } from '@firebreak/client'
import type { AlarmView, WatcherView } from '@firebreak/core'
import { type Hub, type HubOptions, startHub } from '@firebreak/hub'
import {
  letTimePass,
  type MariadbServer,
  type RedisServer,
  startMariadb,
  startRedis,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { parseRowMapping } from '@firebreak/watch'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'

/** A row changes, Redis is updated, and the client that cached the key is notified: all of it with real servers. */
let database: MariadbServer
let server: RedisServer
let fixture: Fixture
let hub: Hub
let redis: Redis

beforeAll(async () => {
  database = await startMariadb({ args: ['--log-bin=binlog', '--binlog-format=ROW', '--server-id=1'] })
  server = await startRedis()
  await database.sql('CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(40))')
})
afterAll(() => Promise.all([database.stop(), server.stop()]))
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  fixture.plain.on('error', () => {})
})
afterEach(async () => {
  await hub.close()
  await fixture.close()
  await database.sql('DELETE FROM product')
})

async function startWith(options: HubOptions = {}, key = 'product:{id}'): Promise<void> {
  const { host, port, user } = database
  hub = await startHub({
    logLevel: 'silent',
    heartbeatMs: 100,
    initialRules: [{ id: 'hot', key: 'product:1', threshold: 1, strategy: 'LocalCache' }],
    watchers: [
      {
        kind: 'binlog',
        redisClusterId: 'main',
        connection: { host, port, user, database: 'test' },
        mapping: parseRowMapping({ tables: { 'test.product': [{ key, value: { column: 'name' } }] } }),
        redis: server.url,
      },
    ],
    ...options,
  })
  await waitFor(async () => (await view()).state === 'live', { timeoutMs: 30_000, what: 'a live binlog' })
}

async function ask<Answer>(path: string): Promise<Answer> {
  return (await (await fetch(`${hub.url}${path}`)).json()) as Answer
}
const view = async () => (await ask<{ watchers: WatcherView[] }>('/v1/watchers')).watchers[0]!
const alarm = (id: string) =>
  waitFor(async () => (await ask<{ alarms: AlarmView[] }>('/v1/alarms')).alarms.find((found) => found.id === id), {
    what: `the alarm ${id}`,
  })
const noAlarm = (id: string) =>
  waitFor(async () => (await ask<{ alarms: AlarmView[] }>('/v1/alarms')).alarms.every((found) => found.id !== id), {
    what: `the end of the alarm ${id}`,
  })

async function reader(): Promise<void> {
  redis = new Redis(server.port)
  redis.on('error', () => {})
  await fixture.adopt(redis, { hubs: [hub.url] })
}

const serves = (value: string | null) =>
  waitFor(
    async () => (await redis.get('product:1').catch(() => undefined)) === value && peek(redis, 'product:1') === value,
    { timeoutMs: 30_000, what: `product:1 to be served as ${value}` },
  )

test('a changed row reaches Redis and the clients; a deleted hot key gets a tombstone, a cold one is deleted', async () => {
  await startWith()
  await reader()
  await database.sql("INSERT INTO product VALUES (1, 'tea'), (2, 'mug')")
  await serves('tea')
  for (const name of ['green tea', 'black tea']) {
    await database.sql(`UPDATE product SET name = '${name}' WHERE id = 1`)
    await serves(name)
  }
  await database.sql('DELETE FROM product')
  await serves('null')
  await waitFor(async () => (await fixture.plain.exists('product:2')) === 0)
  expect((await view()).counts).toMatchObject({ buried: 1, deleted: 1 })
  // Only keys made from rows of the table are swept.
  await fixture.plain.set('other:1', 'stays')
  await database.sql("INSERT INTO product VALUES (1, 'tea'), (2, 'mug'); TRUNCATE TABLE product")
  await waitFor(async () => (await fixture.plain.exists('product:2')) === 0)
  await serves('null')
  expect(await fixture.plain.get('other:1')).toBe('stays')
})

test('a Redis that does not accept the value raises an alarm; the row is retried until it does', async () => {
  await startWith()
  await reader()
  await database.sql("INSERT INTO product VALUES (1, 'tea')")
  await serves('tea')
  await server.stop()
  await database.sql("UPDATE product SET name = 'cold tea' WHERE id = 1")
  const raised = await alarm('redis:binlog of main')
  expect(raised).toMatchObject({ severity: 'critical', retry: expect.stringContaining('from the checkpoint') })
  server = await server.restart()
  await serves('cold tea')
  await noAlarm('redis:binlog of main')
  expect((await view()).counts['redisFailures']).toBeGreaterThan(0)
})

test('a transaction that Redis does not accept is dropped if so configured: it is reported, and the next one follows', async () => {
  await startWith({ retry: { redis: { tries: 2, firstMs: 10, mostMs: 10, atEnd: 'drop' } } })
  await database.sql("INSERT INTO product VALUES (1, 'tea')")
  await waitFor(async () => (await fixture.plain.get('product:1')) === 'tea')
  // All writes are refused: no connection is lost, so each try fails at once.
  await fixture.plain.config('SET', 'maxmemory', '1')
  await database.sql("UPDATE product SET name = 'lost tea' WHERE id = 1")
  const missed = await alarm('missed:binlog of main')
  expect(missed).toMatchObject({ severity: 'critical', retry: expect.stringContaining('given up') })
  expect(missed.cause).toContain('3 failures in a row')
  await fixture.plain.config('SET', 'maxmemory', '0')
  await database.sql("INSERT INTO product VALUES (2, 'mug')")
  await waitFor(async () => (await fixture.plain.get('product:2')) === 'mug')
  expect(await fixture.plain.get('product:1')).toBe('tea')
  expect((await view()).counts).toMatchObject({ dropped: 1, redisFailures: 3 })
})

test('if so configured, reading stops instead, and nothing later reaches Redis', async () => {
  await startWith({ retry: { redis: { tries: 1, firstMs: 10, atEnd: 'stop' } } })
  await fixture.plain.config('SET', 'maxmemory', '1')
  await database.sql("INSERT INTO product VALUES (1, 'tea')")
  await waitFor(async () => (await view()).state === 'failed')
  expect(await alarm('source:binlog of main')).toMatchObject({
    severity: 'critical',
    cause: expect.stringContaining('given up after 2 failures in a row'),
  })
  await fixture.plain.config('SET', 'maxmemory', '0')
  const position = (await view()).counts
  await database.sql("INSERT INTO product VALUES (2, 'mug')")
  await letTimePass(300)
  expect((await view()).counts).toEqual(position)
  expect(await fixture.plain.exists('product:1', 'product:2')).toBe(0)
})

test('a row that the mapping cannot handle raises an alarm, and the next one is still processed', async () => {
  await startWith({}, 'product:{number}')
  await database.sql("INSERT INTO product VALUES (1, 'tea')")
  expect((await alarm('mapping:binlog of main')).cause).toContain('no column number')
  expect((await view()).counts['mappingErrors']).toBeGreaterThan(0)
})

test('a hub that was down continues from its checkpoint: rows from that time are refreshed', async () => {
  const dataFolder = temporaryFolder('hub')
  await startWith({ dataFolder })
  await database.sql("INSERT INTO product VALUES (1, 'tea')")
  await waitFor(async () => (await fixture.plain.get('product:1')) === 'tea')
  await hub.close()
  await database.sql("UPDATE product SET name = 'meanwhile' WHERE id = 1")
  await startWith({ dataFolder })
  await waitFor(async () => (await fixture.plain.get('product:1')) === 'meanwhile')
  expect((await view()).counts['flushes']).toBe(0)
})

/** A log that a connection still reads is not purged, and the server only notices on a write that the connection is gone. */
async function purge(): Promise<void> {
  const last = (await database.sql('SHOW MASTER STATUS')).split('\t')[0]!
  await waitFor(async () => {
    const dumps = await database.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
    for (const id of dumps.split('\n').filter((line) => line !== '')) await database.sql(`KILL ${id}`).catch(() => {})
    await database.sql(`PURGE BINARY LOGS TO '${last}'`)
    return (await database.sql('SHOW BINARY LOGS')).split('\n').length === 1
  })
}

test('a log that was purged meanwhile: cold keys are deleted, the hot one stays, an alarm is raised, reading continues', async () => {
  const dataFolder = temporaryFolder('hub')
  await startWith({ dataFolder })
  await reader()
  await database.sql("INSERT INTO product VALUES (1, 'tea'), (2, 'mug')")
  await serves('tea')
  await hub.close()
  await database.sql("UPDATE product SET name = 'missed'; FLUSH BINARY LOGS; FLUSH BINARY LOGS")
  await purge()
  await startWith({ dataFolder, restartGraceMs: 60_000 })
  expect((await alarm('missed:binlog of main')).cause).toContain('the binlog was purged before it was read')
  expect(await fixture.plain.mget('product:1', 'product:2')).toEqual(['tea', null])
  await database.sql("UPDATE product SET name = 'seen again'")
  await waitFor(async () => (await fixture.plain.get('product:1')) === 'seen again')
})
