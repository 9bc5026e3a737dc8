import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  fakeRuntime,
  type MariadbServer,
  type PostgresServer,
  startMariadb,
  startPostgres,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { createPool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mariadbSegmentStore } from './mariadb-store.ts'
import { openSegmentStore } from './open-store.ts'
import { SegmentIds } from './segment-ids.ts'
import type { SegmentStore } from './segment-store.ts'
import { sqliteSegmentStore } from './sqlite-store.ts'

let mariadb: MariadbServer
let postgres: PostgresServer
beforeAll(async () => {
  ;[mariadb, postgres] = await Promise.all([startMariadb(), startPostgres()])
})
afterAll(() => Promise.all([mariadb.stop(), postgres.stop()]))

const addresses: Record<string, () => string> = {
  mariadb: () => mariadb.url,
  postgres: () => postgres.url,
  sqlite: () => `sqlite:${join(temporaryFolder('segments'), 'ids.db')}`,
}

describe.each(Object.keys(addresses))('%s', (kind) => {
  let store: SegmentStore
  let second: SegmentStore
  let address: string
  beforeAll(async () => {
    address = addresses[kind]!()
    store = await openSegmentStore(address)
    await store.prepare()
    await store.prepare()
    second = await openSegmentStore(address)
  })
  afterAll(() => Promise.all([store.close(), second.close()]))

  test('the table is leaf_alloc(biz_tag, max_id, step, description, update_time)', async () => {
    await store.add('order', 1000, 1n, 'orders of the shop')
    const row = (await store.rows()).find(({ tag }) => tag === 'order')
    expect(row).toMatchObject({ tag: 'order', maxId: 1n, step: 1000, description: 'orders of the shop' })
    expect(row!.updatedAt).toMatch(/^20\d\d-\d\d-\d\d/)
    await expect(store.add('order', 5, 1n, '')).rejects.toMatchObject({ code: 'FB_IDS_TAG_EXISTS' })
  })

  test('an allocation moves max_id by the table’s step or the requested size and returns it', async () => {
    await store.add('moves', 10, 1n, '')
    expect(await store.allocate('moves', undefined)).toEqual({ maxId: 11n, size: 10, tableStep: 10 })
    expect(await store.allocate('moves', 25)).toEqual({ maxId: 36n, size: 25, tableStep: 10 })
    expect((await store.rows()).find(({ tag }) => tag === 'moves')?.maxId).toBe(36n)
    await expect(store.allocate('nothing', 5)).rejects.toMatchObject({ code: 'FB_IDS_TAG_UNKNOWN' })
  })

  test('BIGINT is never rounded', async () => {
    await store.add('huge', 3, 9_007_199_254_740_993n, '')
    expect((await store.allocate('huge', undefined)).maxId).toBe(9_007_199_254_740_996n)
    await store.add('end', 3, 9_223_372_036_854_775_801n, '')
    expect((await store.allocate('end', 5)).maxId).toBe(9_223_372_036_854_775_806n)
    expect((await store.rows()).find(({ tag }) => tag === 'end')?.maxId).toBe(9_223_372_036_854_775_806n)
    // A used-up tag is not an outage, and every database says so.
    await expect(store.allocate('end', 5)).rejects.toMatchObject({ code: 'FB_IDS_TAG_EXHAUSTED' })
    expect((await store.allocate('end', 1)).maxId).toBe(9_223_372_036_854_775_807n)
  })

  test('allocations of two connections at once never overlap', async () => {
    await store.add('shared', 7, 1n, '')
    // One after the other on each store, so that none waits for a connection of its own pool.
    const thirty = async (connection: SegmentStore) => {
      const segments = []
      for (let index = 0; index < 30; index++) segments.push(await connection.allocate('shared', undefined))
      return segments
    }
    const segments = (await Promise.all([thirty(store), thirty(second)])).flat()
    const ends = segments.map(({ maxId }) => Number(maxId)).sort((a, b) => a - b)
    expect(ends).toEqual(Array.from({ length: 60 }, (_, index) => 1 + 7 * (index + 1)))
  })

  test('many processes that create the table and the same tag at once all serve it', async () => {
    const address = addresses[kind]!()
    // For SQLite, each address is a new file.
    if (kind !== 'sqlite') await (kind === 'mariadb' ? mariadb : postgres).sql('DROP TABLE leaf_alloc')
    const all = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const ids = await SegmentIds.start({
          stores: [await openSegmentStore(address)],
          waitTimeoutMs: 60_000,
          onAlarm: () => {},
        })
        await ids.addTag('race', { step: 10 }).catch((error: { code: string }) => {
          expect(error.code).toBe('FB_IDS_TAG_EXISTS')
        })
        return ids
      }),
    )
    const given = (await Promise.all(all.map((ids) => ids.nextMany('race', 30)))).flat()
    expect(new Set(given).size).toBe(8 * 30)
    await Promise.all(all.map((ids) => ids.close()))
  })

  test('a table that was emptied or restored from a backup repeats no id of a running process', async () => {
    await store.add('restored', 10, 1n, '')
    const setBack = async () => {
      const sql = "UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = 'restored'"
      if (kind === 'mariadb') await mariadb.sql(sql)
      else if (kind === 'postgres') await postgres.sql(sql)
      else {
        const file = new DatabaseSync(address.slice('sqlite:'.length))
        file.exec(sql)
        file.close()
      }
    }
    const alarms: string[] = []
    const runtime = fakeRuntime()
    const start = async () =>
      SegmentIds.start({
        stores: [await openSegmentStore(address)],
        onAlarm: ({ code }) => alarms.push(code),
        runtime,
      })
    const [behind, ahead] = [await start(), await start()]
    const given: string[] = []
    /** Takes ids until none are left in memory and the process notices that the table went back. */
    const takeAll = async (ids: SegmentIds) => {
      for (;;) given.push(await ids.next('restored'))
    }
    given.push(...(await behind.nextMany('restored', 500)), ...(await ahead.nextMany('restored', 700)))
    await setBack()
    await expect(takeAll(behind)).rejects.toMatchObject({ code: 'FB_IDS_SEGMENT_BACKWARD' })
    await expect(behind.next('restored')).rejects.toMatchObject({ code: 'FB_IDS_SEGMENT_BACKWARD' })
    // The other process' ids are above any that this one knows of. The other reads the table within this time, and raises it.
    runtime.clock.advance(60_000)
    await ahead.refresh()
    await expect(behind.next('restored')).rejects.toMatchObject({ code: 'FB_IDS_SEGMENT_BACKWARD' })
    for (const ids of [behind, ahead]) {
      runtime.clock.advance(90_001)
      await waitFor(() =>
        ids.next('restored').then(
          (id) => given.push(id) > 0,
          () => {
            runtime.clock.advance(200)
            return false
          },
        ),
      )
      given.push(...(await ids.nextMany('restored', 5000)))
    }
    expect(new Set(given).size).toBe(given.length)
    expect(alarms).toContain('FB_IDS_SEGMENT_BACKWARD')
    expect((await store.rows()).find(({ tag }) => tag === 'restored')!.maxId > 5500n).toBe(true)
    await Promise.all([behind, ahead].map((ids) => ids.close()))
  }, 300_000)

  test('tags are case-sensitive and may contain any letters', async () => {
    await store.add('Fall', 1, 1n, 'großer Fall')
    await store.add('fall', 1, 100n, '')
    expect((await store.allocate('Fall', undefined)).maxId).toBe(2n)
    expect((await store.allocate('fall', undefined)).maxId).toBe(101n)
  })
})

test('a mysql2 pool with default settings does not round either', async () => {
  const pool = createPool({ uri: mariadb.url })
  const store = mariadbSegmentStore(pool)
  await store.prepare()
  await store.add('pool', 2, 9_007_199_254_740_993n, '')
  expect((await store.allocate('pool', undefined)).maxId).toBe(9_007_199_254_740_995n)
  await store.close()
})

test('an address of an unknown kind is refused', async () => {
  for (const address of ['oracle://x', 'nothing', 'mysql:']) {
    await expect(openSegmentStore(address)).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  }
})

test('the name of a store has no password', async () => {
  const store = await openSegmentStore('mysql://user:secret@127.0.0.1:3/db')
  expect(store.name).toBe('mysql://127.0.0.1:3/db')
  await store.close()
})

test('while another program has the SQLite file locked, the process goes on and the segment waits', async () => {
  const path = join(temporaryFolder('ids'), 'ids.db')
  const store = sqliteSegmentStore(path)
  await store.prepare()
  await store.add('t', 10, 1n, '')
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const rows = store.rows()
  // If the thread waited for the lock, it would never come to release it.
  await new Promise((resolve) => setImmediate(resolve))
  other.exec('COMMIT')
  expect(await rows).toMatchObject([{ tag: 't', step: 10 }])
  other.close()
  await store.close()
})
