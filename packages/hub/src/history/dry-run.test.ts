import { systemRuntime } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { dryRun } from './dry-run.ts'
import { dryRunAside } from './dry-run-aside.ts'
import { choosePeriod } from './past.ts'
import { readRecords } from './recorded-seconds.ts'

const rule = (fields: Record<string, unknown>) => parseRule({ id: 'try', prefix: 'p', minHoldMs: 2000, ...fields })

/** What a hub has recorded of the last minutes. */
async function recordsOf({ core, clock }: TestCore, ms: number) {
  const period = choosePeriod(clock.now() - ms, clock.now(), clock.now(), core.history.settings)
  return { ...period, points: await readRecords(core.history, period) }
}

const nodeOfSlot = () => ''

test('a rule is tried on what was: how often, what part of reads, how many bytes', async () => {
  const hub = await TestCore.open([])
  hub.clock.advance(1000 - (hub.clock.now() % 1000))
  // Three bursts of 4 s at 500/s of 1,000/s in all, with quiet of 10 s between.
  for (let burst = 0; burst < 3; burst++) {
    for (let n = 0; n < 40; n++) {
      hub.report({ p1: { count: 50, bytes: 5000 }, other: 50 })
      hub.clock.advance(100)
    }
    for (let n = 0; n < 100; n++) {
      hub.report({ other: 1 })
      hub.clock.advance(100)
    }
  }
  hub.clock.advance(3000)
  const recorded = await recordsOf(hub, 60_000)
  const tried = (fields: Record<string, unknown>) => dryRun(rule(fields), recorded, nodeOfSlot)
  const { text, readShare, bytes, hot, savedReads, ...rest } = tried({ threshold: 400, strategy: 'LocalCache' })
  expect(rest).toMatchObject({ firings: 3, keys: 1, resolutionMs: 1000 })
  // A burst's first part is over before it is hot.
  expect(bytes).toBeGreaterThan(450_000)
  expect(bytes).toBeLessThan(600_000)
  expect(readShare).toBeCloseTo(4800 / 12_300, 1)
  expect(text).toMatch(/^would have fired 3 times in the last \d+ s, [34]\d % of reads, [45]\d\d KB$/)
  expect(hot).toMatchObject([{ redisClusterId: 'main', key: 'p1', firings: 3 }])
  expect(hot![0]!.spans.map(({ strategy }) => strategy)).toEqual(['LocalCache', 'LocalCache', 'LocalCache'])
  expect(savedReads).toBe(hot![0]!.reads)
  // A limit lets its part through, and whoever only watches saves nothing.
  const limited = tried({ threshold: 400, strategy: { strategy: 'RateLimit', limit: 100 } })
  expect(limited.savedReads! / limited.hot![0]!.reads).toBeCloseTo(0.8, 1)
  expect(tried({ threshold: 400, strategy: 'Observe' }).savedReads).toBe(0)
  expect(tried({ threshold: 600 }).text).toMatch(/^would not have fired/)
  // Held over the quiet, it fires once.
  expect(tried({ threshold: 400, minHoldMs: 60_000 }).firings).toBe(1)
  // A share, an exception, and a service that does not touch the key.
  expect(tried({ share: 0.4 }).firings).toBeGreaterThanOrEqual(3)
  expect(tried({ threshold: 400, except: ['p1'] }).firings).toBe(0)
  expect(tried({ threshold: 400, serviceId: 'cart' }).firings).toBe(0)
  expect(tried({ threshold: 400, serviceId: 'shop' }).firings).toBe(3)
  // Nothing of it was done.
  expect(hub.core.delivery.size).toBe(0)
})

test('it says, key by key, what the hub itself decides when the records are replayed to it', async () => {
  const recording = await TestCore.open([])
  recording.clock.advance(10_000 - (recording.clock.now() % 10_000))
  // Keys that rise, fall and stay, each in its own way.
  const rateOf = (key: number, second: number) =>
    Math.round((key + 1) * 20 * (1 + Math.sin((second * (key + 2)) / 7)) * (second % 30 < 20 || key % 3 === 0 ? 1 : 0))
  for (let second = 0; second < 60; second++) {
    for (let part = 0; part < 10; part++) {
      recording.report(Object.fromEntries(Array.from({ length: 12 }, (_, key) => [`p${key}`, rateOf(key, second)])))
      recording.clock.advance(100)
    }
  }
  recording.clock.advance(10_000)
  const records = await recordsOf(recording, 80_000)
  const tried = rule({ threshold: 1990, strategy: 'LocalCache' })
  const { hot } = dryRun(tried, records, nodeOfSlot)

  // The same records, second by second, to a hub that has the rule.
  const replayed = await TestCore.open([
    { id: 'try', prefix: 'p', minHoldMs: 2000, threshold: 1990, strategy: 'LocalCache' },
  ])
  const shift = replayed.clock.now() + 1000 - (replayed.clock.now() % 1000) - records.points[0]!.at
  replayed.clock.advance(shift + records.points[0]!.at - replayed.clock.now())
  for (const { counts } of records.points) {
    for (let part = 0; part < 10; part++) {
      const upTo = (accesses: number, parts: number) => Math.floor((accesses * parts) / 10)
      const ofPart = counts.map(
        ({ of, accesses }) => [of.key, upTo(accesses, part + 1) - upTo(accesses, part)] as const,
      )
      // A report comes at the end of its interval.
      replayed.clock.advance(100)
      replayed.report(Object.fromEntries(ofPart.filter(([, count]) => count > 0)))
    }
  }
  replayed.clock.advance(10_000)
  await replayed.core.stored()
  const events = (await replayed.store.history({ limit: 1000 })).toReversed()
  const decided = new Map<string, { from: number; to: number }[]>()
  for (const { kind, key, at } of events) {
    if (kind === 'hot') decided.set(key, [...(decided.get(key) ?? []), { from: at - shift, to: 0 }])
    if (kind === 'cooled') decided.get(key)!.at(-1)!.to = at - shift
  }
  expect(decided.size).toBeGreaterThan(4)
  expect(hot!.map(({ key }) => key).sort()).toEqual([...decided.keys()].sort())
  for (const { key, spans, firings } of hot!) {
    const expected = decided.get(key)!
    expect([key, firings]).toEqual([key, expected.length])
    for (const [index, { from, to }] of spans.entries()) {
      // The hub decides on a report, and lets go at its next look, each within a tenth of a second.
      expect([key, 'from', Math.abs(from - expected[index]!.from) <= 100]).toEqual([key, 'from', true])
      expect([key, 'to', Math.abs(to - expected[index]!.to) <= 200]).toEqual([key, 'to', true])
    }
  }
})

test('aside, a dry run gives the same, and costs the thread that decides little', async () => {
  // A regular expression as dear as one may be, over an hour of keys of its kind.
  const dear = parseRule({ id: 'r', regex: `^(a|b|ab)*${'(a|b|c)?'.repeat(60)}!$`, threshold: 5 })
  const keys = Array.from({ length: 100 }, (_, nth) => ({
    redisClusterId: nth % 2 === 0 ? 'main' : 'other',
    key: `${nth}${'ab'.repeat(400)}`,
    slot: nth,
    services: ['shop'],
  }))
  const counts = keys.map((of, nth) => ({ of, accesses: nth, writes: 0, bytes: 10 }))
  const points = Array.from({ length: 600 }, (_, second) => ({ at: second * 1000, total: 9999, counts }))
  const hour = { points, from: 0, to: 600_000, resolutionMs: 1000 }
  const nodes = { nodeOfSlot: (_: string, slot: number) => `node ${slot % 3}`, runtime: systemRuntime, maxMs: 150_000 }
  const before = process.threadCpuUsage()
  const running = dryRunAside(dear, hour, nodes)
  await expect(dryRunAside(dear, hour, nodes)).rejects.toMatchObject({ code: 'FB_DRY_RUN_BUSY' })
  const aside = await running
  const ownMs = process.threadCpuUsage(before).user / 1000
  const begun = process.threadCpuUsage()
  expect(dryRun(dear, hour, nodes.nodeOfSlot)).toEqual(aside)
  const hereMs = process.threadCpuUsage(begun).user / 1000
  // The same work in this thread costs it several times as much.
  expect(ownMs).toBeLessThan(hereMs / 2)
}, 180_000)
