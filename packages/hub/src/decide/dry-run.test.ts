import { parseRule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { dryRun } from './dry-run.ts'

const rule = (fields: Record<string, unknown>) => parseRule({ id: 'try', prefix: 'p', minHoldMs: 2000, ...fields })

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
  const recorded = hub.core.keys.recorder.seconds
  const { text, readShare, bytes, ...rest } = dryRun(rule({ threshold: 400 }), recorded, () => '')
  expect(rest).toMatchObject({ firings: 3, keys: 1 })
  // A burst's edges may lie in seconds of which only a part belongs to it.
  expect(bytes).toBeGreaterThan(550_000)
  expect(bytes).toBeLessThanOrEqual(600_000)
  expect(readShare).toBeCloseTo(6000 / 12_300, 1)
  expect(text).toMatch(/^would have fired 3 times in the last \d+ s, 4\d % of reads, 5\d\d KB$/)
  expect(dryRun(rule({ threshold: 600 }), recorded, () => '').text).toMatch(/^would not have fired/)
  // Held over the quiet, it fires once.
  expect(dryRun(rule({ threshold: 400, minHoldMs: 60_000 }), recorded, () => '').firings).toBe(1)
  // A share, and an exception.
  expect(dryRun(rule({ share: 0.4 }), recorded, () => '').firings).toBeGreaterThanOrEqual(3)
  expect(dryRun(rule({ threshold: 400, except: ['p1'] }), recorded, () => '').firings).toBe(0)
  // Nothing of it was done.
  expect(hub.core.delivery.size).toBe(0)
})
