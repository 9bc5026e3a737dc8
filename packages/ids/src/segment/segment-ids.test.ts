import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemRuntime } from '@firebreak/core'
import { FakeClock, fakeRuntime, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import type { IdsAlarm } from '../node/node-options.ts'
import { SegmentIds, type SegmentIdsOptions } from './segment-ids.ts'
import type { AllocatedSegment, SegmentStore } from './segment-store.ts'
import { sqliteSegmentStore } from './sqlite-store.ts'

/** A real SQLite table whose answers can be delayed, refused and counted. */
class Gate implements SegmentStore {
  readonly name: string
  readonly sizes: number[] = []
  isDown = false
  held: (() => void)[] | undefined
  readonly #inner = sqliteSegmentStore(':memory:')

  constructor(name = 'gate') {
    this.name = name
  }

  async #pass(): Promise<void> {
    if (this.isDown) throw new Error('connection refused')
    if (this.held !== undefined) await new Promise<void>((resolve) => this.held!.push(resolve))
    if (this.isDown) throw new Error('connection lost')
  }

  release(): void {
    const held = this.held ?? []
    this.held = undefined
    for (const go of held) go()
  }

  async prepare() {
    await this.#pass()
    await this.#inner.prepare()
  }

  async rows() {
    await this.#pass()
    return this.#inner.rows()
  }

  async allocate(tag: string, size: number | undefined): Promise<AllocatedSegment> {
    await this.#pass()
    const segment = await this.#inner.allocate(tag, size)
    this.sizes.push(segment.size)
    return segment
  }

  raise(tag: string, maxId: bigint) {
    return this.#inner.raise!(tag, maxId)
  }

  add(tag: string, step: number, maxId: bigint, description: string) {
    return this.#inner.add(tag, step, maxId, description)
  }

  close() {
    return this.#inner.close()
  }
}

const opened: SegmentIds[] = []
afterEach(async () => {
  for (const ids of opened.splice(0)) await ids.close()
})

async function open(stores: Gate[], options: Partial<SegmentIdsOptions> = {}) {
  const alarms: IdsAlarm[] = []
  const ids = await SegmentIds.start({ stores, retryMs: 10, onAlarm: (alarm) => alarms.push(alarm), ...options })
  opened.push(ids)
  return { ids, alarms }
}

async function withTag(step: number, options: Partial<SegmentIdsOptions> = {}) {
  const store = new Gate()
  const { ids, alarms } = await open([store], options)
  await ids.addTag('t', { step })
  return { ids, alarms, store }
}

test('ids of a tag count up from max_id without a gap', async () => {
  const { ids } = await withTag(10)
  for (let id = 1; id <= 500; id++) expect(await ids.next('t')).toBe(String(id))
  expect(await ids.nextMany('t', 1000)).toEqual(Array.from({ length: 1000 }, (_, index) => String(501 + index)))
})

test('the next segment is loaded when a tenth of the current one is used, not before', async () => {
  const { ids, store } = await withTag(100)
  for (let id = 1; id <= 10; id++) await ids.next('t')
  expect(store.sizes).toEqual([100])
  await ids.next('t')
  await waitFor(() => store.sizes.length === 2)
  expect(store.sizes).toEqual([100, 200])
  expect(ids.buffers()[0]).toMatchObject({ tag: 't', left: 89, ready: 200, step: 200, tableStep: 100 })
})

test('the step follows how long segments last', async () => {
  const clock = new FakeClock()
  const { ids, store } = await withTag(10, { runtime: { ...systemRuntime, clock } })
  const minute = 60_000
  const used = async (afterMs: number) => {
    clock.step(afterMs)
    const before = store.sizes.length
    while (store.sizes.length === before) await ids.next('t')
    return store.sizes.at(-1)!
  }
  expect(await used(0)).toBe(10)
  expect(await used(14 * minute)).toBe(20)
  expect(await used(1)).toBe(40)
  expect(await used(20 * minute)).toBe(40)
  expect(await used(31 * minute)).toBe(20)
  expect(await used(31 * minute)).toBe(10)
  expect(await used(31 * minute)).toBe(10)
})

test('a burst on a small step waits for the running load: no error, no gap, first come first served', async () => {
  const { ids, store } = await withTag(2)
  const all = await Promise.all(Array.from({ length: 50_000 }, () => ids.next('t')))
  expect(all).toEqual(Array.from({ length: 50_000 }, (_, index) => String(index + 1)))
  expect(store.sizes.length).toBeLessThan(25)
})

test('no more callers than maxWaiters wait', async () => {
  const { ids, store } = await withTag(10, { maxWaiters: 3 })
  store.held = []
  const outcomes = Promise.allSettled(Array.from({ length: 5 }, () => ids.next('t')))
  await waitFor(() => store.held!.length === 1)
  store.release()
  const settled = await outcomes
  expect(settled.map((outcome) => outcome.status)).toEqual([
    'fulfilled',
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
  ])
  expect(settled[4]).toMatchObject({ reason: { code: 'FB_IDS_OVERLOADED' } })
})

test('a slow load is not noticed while the current segment lasts', async () => {
  const { ids, store } = await withTag(100)
  await ids.next('t')
  store.held = []
  // None of these needs a promise: all are in memory while the load hangs.
  for (let id = 2; id <= 100; id++) expect(ids.take('t')).toBe(String(id))
  await waitFor(() => store.held!.length === 1)
  const late = ids.next('t')
  store.release()
  expect(await late).toBe('101')
})

describe('a database that is down', () => {
  test('still issues exactly the buffered ids, then fails at once, and resumes on its own when it is back', async () => {
    const { ids, store, alarms } = await withTag(100)
    await ids.nextMany('t', 11)
    await waitFor(() => ids.buffers()[0]!.ready === 200)
    store.isDown = true
    const left = 89 + 200
    expect(await ids.nextMany('t', left)).toHaveLength(left)
    expect(ids.take('t')).toBe(undefined)
    await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_DATABASE_DOWN' })
    expect(alarms).toMatchObject([{ code: 'FB_IDS_DATABASE_DOWN' }])
    store.isDown = false
    const next = await waitFor(() => ids.next('t').catch(() => undefined))
    expect(Number(next)).toBeGreaterThan(left + 11)
    expect(ids.buffers()[0]!.error).toBe(undefined)
  })

  test('and is only slow: callers wait up to waitTimeoutMs, the load continues and helps the next ones', async () => {
    const clock = new FakeClock()
    const { ids, store } = await withTag(10, { runtime: fakeRuntime(1, clock) })
    store.held = []
    const waiting = ids.next('t')
    await waitFor(() => store.held!.length === 1)
    clock.advance(999)
    clock.advance(1)
    await expect(waiting).rejects.toMatchObject({ code: 'FB_IDS_SEGMENTS_EMPTY' })
    await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_SEGMENTS_EMPTY' })
    store.release()
    await waitFor(() => ids.take('t') === '1')
  })

  test('at the start: its tags give an error that says so, and are served once it answers', async () => {
    const store = new Gate()
    store.isDown = true
    const clock = new FakeClock()
    const { ids, alarms } = await open([store], { runtime: { ...systemRuntime, clock } })
    await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_DATABASE_DOWN' })
    expect(alarms).toMatchObject([{ code: 'FB_IDS_DATABASE_DOWN' }])
    expect(ids.databases()).toMatchObject([{ name: 'gate', isUp: false }])
    store.isDown = false
    await store.prepare()
    await store.add('t', 10, 1n, '')
    clock.step(1000)
    expect(await ids.next('t')).toBe('1')
    expect(ids.databases()).toMatchObject([{ isUp: true, rows: [{ tag: 't', step: 10 }] }])
  })
})

describe('tags', () => {
  test('are read again every 60 s: new ones appear, changed steps apply, removed ones disappear', async () => {
    const clock = new FakeClock()
    const path = join(temporaryFolder('tags'), 'ids.db')
    const store = sqliteSegmentStore(path)
    const ids = await SegmentIds.start({ stores: [store], runtime: { ...systemRuntime, timers: clock } })
    opened.push(ids)
    const editor = new DatabaseSync(path)
    const minute = async (isSeen: () => boolean) => {
      clock.advance(59_999)
      expect(isSeen()).toBe(false)
      clock.advance(1)
      await waitFor(isSeen)
    }
    editor.exec("INSERT INTO leaf_alloc (biz_tag, step) VALUES ('late', 5)")
    await minute(() => ids.buffers().length === 1)
    expect(ids.buffers()[0]).toMatchObject({ tag: 'late', tableStep: 5 })
    editor.exec("UPDATE leaf_alloc SET step = 50 WHERE biz_tag = 'late'")
    await minute(() => ids.buffers()[0]?.tableStep === 50)
    editor.exec("DELETE FROM leaf_alloc WHERE biz_tag = 'late'")
    await minute(() => ids.buffers().length === 0)
    editor.close()
  })

  test('that nobody knows are an error, after a query of the databases', async () => {
    const { ids, store } = await withTag(10)
    await expect(ids.next('nobody')).rejects.toMatchObject({ code: 'FB_IDS_TAG_UNKNOWN' })
    await store.add('fresh', 10, 1n, '')
    expect(await waitFor(() => ids.next('fresh').catch(() => undefined))).toBe('1')
  })

  test('that were removed from the table stop at the next reading', async () => {
    const { ids, store } = await withTag(10)
    await ids.next('t')
    const rows = store.rows.bind(store)
    store.rows = async () => (await rows()).filter(({ tag }) => tag !== 't')
    await ids.refresh()
    await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_TAG_UNKNOWN' })
  })

  test('whose row is restored, or moves to another database, continue above the ids that this process issued', async () => {
    const path = join(temporaryFolder('back'), 'ids.db')
    const [first, second] = [sqliteSegmentStore(path), new Gate('second')]
    const alarms: IdsAlarm[] = []
    const onAlarm = (alarm: IdsAlarm) => alarms.push(alarm)
    const runtime = fakeRuntime()
    const ids = await SegmentIds.start({ stores: [first, second], retryMs: 10, onAlarm, runtime })
    opened.push(ids)
    const editor = new DatabaseSync(path)
    const given = new Set<string>()
    const give = async () => {
      const fresh = await ids.nextMany('t', 300)
      for (const id of fresh) given.add(id)
      return fresh.length
    }
    await first.add('t', 10, 1n, '')
    await ids.refresh()
    let count = await give()
    // As when a dump is restored: for a moment there is no row, and then last night's.
    editor.exec("DELETE FROM leaf_alloc WHERE biz_tag = 't'")
    await ids.refresh()
    expect(ids.buffers()).toEqual([])
    await first.add('t', 10, 1n, '')
    await ids.refresh()
    await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_SEGMENT_BACKWARD' })
    runtime.clock.advance(90_000)
    count += await give()
    editor.exec("DELETE FROM leaf_alloc WHERE biz_tag = 't'")
    await second.add('t', 10, 1n, '')
    await ids.refresh()
    runtime.clock.advance(90_000)
    count += await give()
    expect(given.size).toBe(count)
    expect(new Set(alarms.map(({ code }) => code))).toEqual(new Set(['FB_IDS_SEGMENT_BACKWARD']))
    editor.close()
  })

  test('can be spread over several databases; one that is down leaves the others alone', async () => {
    const [first, second] = [new Gate('first'), new Gate('second')]
    const { ids } = await open([first, second])
    for (const tag of ['a', 'b', 'c', 'd']) await ids.addTag(tag, { step: 3 })
    const counts = ids.databases().map(({ rows }) => rows.length)
    expect(counts).toEqual([2, 2])
    second.isDown = true
    const [up, down] = [ids.databases()[0]!.rows[0]!.tag, ids.databases()[1]!.rows[0]!.tag]
    expect(await ids.nextMany(up, 100)).toHaveLength(100)
    await expect(ids.next(down)).rejects.toMatchObject({ code: 'FB_IDS_DATABASE_DOWN' })
    await ids.refresh()
    expect(ids.databases().map(({ isUp }) => isUp)).toEqual([true, false])
    expect(ids.buffers()).toHaveLength(4)
  })

  test('that two databases have raise an alarm, and are served from one of them', async () => {
    const [first, second] = [new Gate('first'), new Gate('second')]
    for (const store of [first, second]) {
      await store.prepare()
      await store.add('t', 2, 1n, '')
    }
    const { ids, alarms } = await open([first, second])
    await ids.nextMany('t', 50)
    await ids.refresh()
    expect(alarms).toMatchObject([{ code: 'FB_IDS_TAG_EXISTS' }])
    expect([first.sizes.length > 0, second.sizes.length > 0]).toEqual([true, false])
  })

  test('are added once, with a valid name and step', async () => {
    const { ids } = await withTag(10)
    await expect(ids.addTag('t', { step: 5 })).rejects.toMatchObject({ code: 'FB_IDS_TAG_EXISTS' })
    await expect(ids.addTag('x y', { step: 5 })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(ids.addTag('x', { step: 0 })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(ids.addTag('x', { step: 1, store: 'nowhere' })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })
})

test('after close every caller gets an error, even those who wait', async () => {
  const { ids, store } = await withTag(10)
  store.held = []
  const waiting = ids.next('t')
  await waitFor(() => store.held!.length === 1)
  const closing = ids.close()
  await expect(waiting).rejects.toMatchObject({ code: 'FB_IDS_CLOSED' })
  store.release()
  await closing
  await expect(ids.next('t')).rejects.toMatchObject({ code: 'FB_IDS_CLOSED' })
  await expect(ids.next('other')).rejects.toMatchObject({ code: 'FB_IDS_CLOSED' })
})
