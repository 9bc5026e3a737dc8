import { join } from 'node:path'
import { type AuditEntry, defaultLocalCache, type TableEntry } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { toRedis } from '@firebreak/redis'
import { type RedisCluster, type RedisServer, startCluster, startRedis, temporaryFolder } from '@firebreak/testkit'
import { Cluster, Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PrewarmJob } from '../prewarm/prewarm-job.ts'
import { AuditCheck } from './audit-chain.ts'
import { type AuditEnd, type HubStore, maxTrimmedEvents, type StoreLimits } from './hub-store.ts'
import { MemoryStore } from './memory-store.ts'
import { RedisStore } from './redis-store.ts'
import { SqliteStore } from './sqlite-store.ts'

const folder = temporaryFolder('store')
let files = 0
let server: RedisServer
let cluster: RedisCluster
let client: Ioredis
let clusterClient: Cluster

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
  client = new Ioredis(server.port)
  clusterClient = new Cluster([...cluster.addresses])
}, 60_000)

afterAll(async () => {
  client.disconnect()
  clusterClient.disconnect()
  await Promise.all([server.stop(), cluster.stop()])
})

/** Every store passes this; a new one adds a line. */
const stores: readonly [string, (limits?: StoreLimits) => HubStore][] = [
  ['memory', (limits) => new MemoryStore(limits)],
  ['sqlite', (limits) => new SqliteStore(join(folder, `${files++}`, 'hub.sqlite'), limits)],
  ['redis', (limits) => new RedisStore(toRedis(client), { ...limits, prefix: `test-${files++}` })],
  ['redis cluster', (limits) => new RedisStore(toRedis(clusterClient), { ...limits, prefix: `test-${files++}` })],
]

const rule = (id: string, threshold = 1) => parseRule({ id, key: 'k', threshold })
const event = (at: number, key = 'k') =>
  ({ at, kind: 'hot', redisClusterId: 'main', key, ruleId: 'r', text: `t${at}` }) as const
const entry = (key: string, changes: Partial<TableEntry> = {}): TableEntry => ({
  redisClusterId: 'main',
  key,
  strategy: defaultLocalCache,
  ruleId: 'r',
  reason: 'hot',
  since: 1,
  until: 2,
  ...changes,
})

function verdictOf(entries: readonly AuditEntry[], end: AuditEnd) {
  const check = new AuditCheck(end)
  for (const one of entries) check.add(one)
  return check.end()
}

describe.each(stores)('the %s store', (_name, make) => {
  test('adds a policy after the one before it, with its audit entry, and keeps the last 50', async () => {
    const store = make()
    const audit = (at: number) => ({ at, who: 'ann', what: 'policy', before: null, after: null })
    const policy = (version: number) => ({ version, loadedAtMs: 1, origin: 'api', document: `{"v":${version}}` })
    expect(await store.policiesAfter(0)).toEqual([])
    expect(await store.addPolicy(policy(2), audit(1))).toBe(false)
    expect(await Promise.all([store.addPolicy(policy(1), audit(2)), store.addPolicy(policy(1), audit(3))])).toEqual([
      true,
      false,
    ])
    expect(await store.audit(10)).toMatchObject([audit(2)])
    for (let version = 2; version <= 52; version++) await store.addPolicy(policy(version), audit(version))
    const kept = await store.policiesAfter(0)
    expect(kept.map(({ version }) => version)).toEqual(Array.from({ length: 50 }, (_, index) => index + 3))
    expect(await store.policiesAfter(51)).toEqual([policy(52)])
    expect(await store.policiesAfter(52)).toEqual([])
    await store.close()
  })

  test('keeps blocks of heat by length, start and writer, replaces one that is written again, and trims the oldest', async () => {
    const store = make()
    const block = (stepMs: number, at: number, writer: string, data: string) => ({ stepMs, at, writer, data })
    expect([await store.blocks(1000, 0, 1e15), await store.keptBlocks()]).toEqual([[], []])
    await Promise.all([
      store.saveBlock(block(1000, 20_000, 'b', 'b20')),
      store.saveBlock(block(1000, 10_000, 'a', 'a10')),
      store.saveBlock(block(1000, 20_000, 'a', 'to be replaced')),
      store.saveBlock(block(60_000, 0, 'a', 'a0')),
    ])
    await store.saveBlock(block(1000, 20_000, 'a', 'a20'))
    await store.saveBlock(block(1000, 20_000, 'a', 'a20'))
    expect(await store.blocks(1000, 10_000, 30_000)).toEqual([
      block(1000, 10_000, 'a', 'a10'),
      block(1000, 20_000, 'a', 'a20'),
      block(1000, 20_000, 'b', 'b20'),
    ])
    expect(await store.blocks(1000, 10_001, 20_000)).toEqual([])
    expect(await store.keptBlocks()).toEqual([
      { stepMs: 1000, bytes: 9, from: 10_000 },
      { stepMs: 60_000, bytes: 2, from: 0 },
    ])
    await Promise.all([store.trimBlocks(1000, 20_000), store.trimBlocks(1000, 20_000)])
    expect(await store.blocks(1000, 0, 1e15)).toEqual([
      block(1000, 20_000, 'a', 'a20'),
      block(1000, 20_000, 'b', 'b20'),
    ])
    expect((await store.keptBlocks())[0]).toEqual({ stepMs: 1000, bytes: 6, from: 20_000 })
    await store.trimBlocks(1000, 30_000)
    await store.trimBlocks(60_000, 30_000)
    expect([await store.blocks(1000, 0, 1e15), await store.keptBlocks()]).toEqual([[], []])
    await store.close()
  })

  test('keeps the position of each source', async () => {
    const store = make()
    expect(await store.position('binlog of shop')).toBeUndefined()
    await store.savePosition('binlog of shop', '0-1-5')
    await store.savePosition('replica stream of main', '{"offset":7}')
    await store.savePosition('binlog of shop', '0-1-6')
    expect(await store.position('binlog of shop')).toBe('0-1-6')
    expect(await store.position('replica stream of main')).toBe('{"offset":7}')
    await store.close()
  })

  test('begins empty, with an epoch of its own', async () => {
    const [one, other] = [make(), make()]
    const state = await one.load()
    expect(state).toMatchObject({ versionFloor: 0, isOff: false, rules: [], rulesVersion: 0, entries: [] })
    expect(state.epoch).not.toBe('')
    expect((await other.load()).epoch).not.toBe(state.epoch)
    expect((await one.load()).epoch).toBe(state.epoch)
    await one.close()
    await other.close()
  })

  test('keeps rules by id and counts their changes', async () => {
    const store = make()
    expect(await store.saveRule(rule('b'))).toBe(1)
    expect(await store.saveRule(rule('a'))).toBe(2)
    expect(await store.saveRule(rule('b', 9))).toBe(3)
    expect(await store.deleteRule('none')).toBe(3)
    const state = await store.load()
    expect(state.rules).toEqual([rule('a'), rule('b', 9)])
    expect(state.rulesVersion).toBe(3)
    expect(await store.deleteRule('a')).toBe(4)
    expect((await store.load()).rules).toEqual([rule('b', 9)])
    await store.close()
  })

  test('is filled by a file only where it never had a rule or a thrown switch', async () => {
    const [fresh, used, thrown] = [make(), make(), make()]
    expect(await fresh.seed([rule('a')])).toBe(true)
    expect(await fresh.seed([rule('b')])).toBe(false)
    expect((await fresh.load()).rules).toEqual([rule('a')])
    await used.saveRule(rule('c'))
    await used.deleteRule('c')
    await thrown.saveSwitch(true)
    expect([await used.seed([rule('a')]), await thrown.seed([rule('a')])]).toEqual([false, false])
    await Promise.all([fresh.close(), used.close(), thrown.close()])
  })

  test('writes a change and its audit entry in one step', async () => {
    const store = make()
    const change = (name: string) => ({ name, audit: { at: 1, who: 'ann', what: name, before: null, after: null } })
    await store.saveRule(rule('a'), change('one'))
    await store.saveSwitch(true, change('two'))
    await store.deleteRule('a', change('three'))
    await store.deleteRule('a', change('four'))
    expect((await store.audit(9)).map(({ what }) => what)).toEqual(['three', 'two', 'one'])
    await store.close()
  })

  test('makes a change that is sent twice under one name once, whatever was changed meanwhile', async () => {
    const store = make()
    const change = (name: string) => ({ name, audit: { at: 1, who: 'ann', what: name, before: null, after: null } })
    expect(await store.saveRule(rule('a', 1), change('put'))).toBe(1)
    expect(await store.saveRule(rule('a', 2), change('later'))).toBe(2)
    expect(await store.saveRule(rule('a', 1), change('put'))).toBe(2)
    expect(await store.deleteRule('a', change('delete'))).toBe(3)
    await store.saveRule(rule('a', 3), change('again'))
    expect(await store.deleteRule('a', change('delete'))).toBe(4)
    await store.saveSwitch(true, change('off'))
    await store.saveSwitch(false, change('on'))
    await store.saveSwitch(true, change('off'))
    const { rules, isOff, line } = await store.load()
    expect([rules, isOff]).toEqual([[rule('a', 3)], false])
    expect(line.map((id) => id.replace(/^\d+-/, ''))).toEqual(['put', 'later', 'delete', 'again', 'off', 'on'])
    expect(await store.audit(9)).toHaveLength(6)
    await store.close()
  })

  test('tells changes apart by their whole names', async () => {
    const store = make()
    const change = (name: string) => ({ name, audit: { at: 1, who: 'ann', what: name, before: null, after: null } })
    await store.saveRule(rule('a', 1), change('call-1'))
    await store.saveRule(rule('a', 2), change('1'))
    await store.saveRule(rule('a', 3), change('ll-1'))
    expect((await store.load()).rules).toEqual([rule('a', 3)])
    expect(await store.audit(9)).toHaveLength(3)
    await store.close()
  })

  test('keeps pre-warm jobs, gives each to one that asks when it is due, and again where that one is not done in time', async () => {
    const store = make({ maxJobs: 3 })
    const job = (id: string, at: number): PrewarmJob => ({
      ...{ id, at, redisClusterId: 'main', keys: ['k'], services: [], forMs: 1000, values: { k: 'v' }, who: 'ann' },
    })
    for (const [id, at] of [
      ['b', 200.5],
      ['a', 100],
      ['c', 300],
    ] as const) {
      expect(await store.saveJob(job(id, at))).toBe(true)
    }
    expect(await store.saveJob(job('d', 1))).toBe(false)
    expect(await store.jobs()).toEqual([job('a', 100), job('b', 200.5), job('c', 300)])
    expect(await store.takeJobs(99, 50)).toEqual([])
    expect(await store.takeJobs(250, 50)).toHaveLength(2)
    expect(await store.takeJobs(250, 50)).toEqual([])
    expect(await store.deleteJob('a')).toBe(true)
    expect(await store.takeJobs(301, 50)).toEqual(expect.arrayContaining([job('b', 200.5), job('c', 300)]))
    expect([await store.deleteJob('a'), await store.deleteJob('b')]).toEqual([false, true])
    expect((await store.jobs()).map(({ id }) => id)).toEqual(['c'])
    // A turn ends in one step: the job comes again, is gone, or was cancelled meanwhile and stays so.
    expect(await store.finishJob('c', job('c', 900))).toBe(true)
    expect(await store.jobs()).toEqual([job('c', 900)])
    expect([await store.takeJobs(899, 50), await store.takeJobs(900, 50)]).toEqual([[], [job('c', 900)]])
    expect(await store.finishJob('b', job('b', 900))).toBe(false)
    expect([await store.finishJob('c'), await store.finishJob('c')]).toEqual([true, false])
    expect(await store.jobs()).toEqual([])
    await store.close()
  })

  test('keeps the switch and never lowers the reserved version', async () => {
    const store = make()
    await store.saveSwitch(true)
    await store.reserveVersions(2000)
    await store.reserveVersions(900)
    expect(await store.load()).toMatchObject({ isOff: true, versionFloor: 2000 })
    await store.saveSwitch(false)
    expect((await store.load()).isOff).toBe(false)
    await store.close()
  })

  test('keeps entries by cluster, key and rule, keys of any bytes included', async () => {
    const store = make()
    const binary = '\u0000b\u00ff\u0000x'
    await store.saveEntries(
      [entry('a'), entry('a', { ruleId: 'other' }), entry('a', { redisClusterId: 'two' }), entry(binary)].map(
        (item) => ({
          entry: item,
          services: ['shop'],
        }),
      ),
      [],
    )
    await store.saveEntries([{ entry: entry('a', { until: 99 }), services: ['shop', 'web'] }], [entry(binary)])
    const { entries } = await store.load()
    expect(entries).toHaveLength(3)
    expect(entries).toContainEqual({ entry: entry('a', { until: 99 }), services: ['shop', 'web'] })
    await store.saveEntries([{ entry: entry(binary), services: [] }], [])
    expect((await store.load()).entries.map((stored) => stored.entry.key)).toContain(binary)
    await store.close()
  })

  test('gives history newest first, by time, key and limit, and forgets the oldest', async () => {
    const store = make({ maxHistory: 10 })
    await store.appendHistory([event(1), event(2, 'x'), event(3)])
    expect(await store.history({ limit: 10 })).toEqual([event(3), event(2, 'x'), event(1)])
    expect(await store.history({ limit: 1 })).toEqual([event(3)])
    expect(await store.history({ since: 2, limit: 10 })).toEqual([event(3), event(2, 'x')])
    expect(await store.history({ redisClusterId: 'main', key: 'x', limit: 10 })).toEqual([event(2, 'x')])
    expect(await store.history({ key: 'x', since: 3, limit: 10 })).toEqual([])
    expect(await store.history({ redisClusterId: 'other', limit: 10 })).toEqual([])
    expect(await store.history({ ruleId: 'r', kinds: ['hot'], limit: 1 })).toEqual([event(3)])
    expect(await store.history({ ruleId: 'other', limit: 10 })).toEqual([])
    // Of kinds, before the limit: what comes most often does not hide the others.
    const alarm = { ...event(3, 'y'), kind: 'alarm' } as const
    await store.appendHistory([alarm, event(3, 'z')])
    expect(await store.history({ kinds: ['alarm', 'rollback'], limit: 1 })).toEqual([alarm])
    for (let at = 4; at < 40; at++) await store.appendHistory([event(at)])
    expect((await store.history({ limit: 100 })).map(({ at }) => at)).toEqual([39, 38, 37, 36, 35, 34, 33, 32, 31, 30])
    await store.close()
  })

  test('forgets what happened before a moment, a bounded part at a time, and says what it keeps', async () => {
    const store = make()
    expect(await store.keptHistory()).toEqual({ events: 0, from: null })
    await store.trimHistory(100)
    const events = Array.from({ length: maxTrimmedEvents + 10 }, (_, index) => event(index))
    await store.appendHistory(events)
    expect(await store.keptHistory()).toEqual({ events: events.length, from: 0 })
    await store.trimHistory(5)
    expect(await store.keptHistory()).toEqual({ events: events.length - 5, from: 5 })
    await store.trimHistory(events.length)
    expect(await store.keptHistory()).toEqual({ events: 5, from: events.length - 5 })
    expect((await store.history({ limit: 10 })).map(({ at }) => at)).toEqual([2009, 2008, 2007, 2006, 2005])
    await store.close()
  })

  test('gives the audit newest first with before and after', async () => {
    const store = make({ maxAudit: 3 })
    const one = { at: 1, who: 'ann', what: 'add rule a', before: null, after: { id: 'a' } }
    await store.appendAudit(one)
    await store.appendAudit({ ...one, at: 2, before: { isOff: true }, after: [1] })
    expect(await store.audit(10)).toMatchObject([{ ...one, at: 2, before: { isOff: true }, after: [1] }, one])
    expect(await store.audit(10, 1)).toMatchObject([one])
    expect(await store.audit(1)).toHaveLength(1)
    for (let at = 3; at < 9; at++) await store.appendAudit({ ...one, at })
    expect((await store.audit(10)).map(({ at }) => at)).toEqual([8, 7, 6])
    await store.close()
  })

  test('chains every entry of the audit, however it is written, and says where the chain ends', async () => {
    const store = make({ maxAudit: 20 })
    expect(await store.auditEnd()).toEqual({ head: undefined, kept: 20 })
    const audit = (what: string) => ({
      at: 1.5,
      who: 'ann\u0000\ud800',
      what,
      before: undefined,
      after: { '2': 1, '1': [-0] },
    })
    const policy = (version: number) => ({ version, loadedAtMs: 1, origin: 'api', document: '{}' })
    await Promise.all([
      store.appendAudit(audit('one')),
      store.saveRule(rule('a'), { name: 'two', audit: audit('two') }),
      store.addPolicy(policy(1), audit('three')),
      store.saveSwitch(true, { name: 'four', audit: audit('four') }),
      store.deleteRule('a', { name: 'five', audit: audit('five') }),
    ])
    expect(verdictOf(await store.audit(99), await store.auditEnd())).toMatchObject({ count: 5, trimmed: 0, faults: [] })
    for (let index = 0; index < 30; index++) await store.appendAudit(audit(`more ${index}`))
    const entries = await store.audit(99)
    expect(verdictOf(entries, await store.auditEnd())).toMatchObject({ count: 20, trimmed: 15, faults: [] })
    expect(entries[0]).toMatchObject({ seq: 35 })
    await store.close()
  })
})

test('a sqlite store survives a restart whole', async () => {
  const file = join(folder, 'again', 'hub.sqlite')
  const first = new SqliteStore(file)
  const { epoch } = await first.load()
  await first.saveRule(rule('a'))
  await first.saveSwitch(true)
  await first.reserveVersions(50)
  await first.saveEntries([{ entry: entry('k'), services: ['shop'] }], [])
  await first.appendHistory([event(1)])
  await first.appendAudit({ at: 1, who: 'a', what: 'b', before: 1, after: 2 })
  await first.close()
  const second = new SqliteStore(file)
  expect(await second.load()).toEqual({
    epoch,
    versionFloor: 50,
    isOff: true,
    rules: [rule('a')],
    rulesVersion: 1,
    line: [expect.stringMatching(/^1-/), expect.stringMatching(/^2-/)],
    entries: [{ entry: entry('k'), services: ['shop'] }],
  })
  expect([(await second.history({ limit: 9 })).length, (await second.audit(9)).length]).toEqual([1, 1])
  await second.close()
})

test('a store that cannot be opened says which and why', () => {
  expect(() => new SqliteStore('/dev/null/x/hub.sqlite')).toThrow(
    /the store \/dev\/null\/x\/hub.sqlite cannot be opened/,
  )
})
