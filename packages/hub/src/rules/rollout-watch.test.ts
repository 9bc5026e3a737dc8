import type { StatusPayload } from '@firebreak/core'
import { isInRollout, parseRule, type Rule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import { RolloutWatch } from './rollout-watch.ts'

const instances = Array.from({ length: 10 }, (_, index) => `i${index}`)

type Said = Partial<StatusPayload['counters']> & { stale?: number; ruleReads?: number }

/** Statuses of a fleet for some seconds; `say` gives what each process tells. Gives why the roll-out was stopped. */
function watchFor(seconds: number, say: (hasRule: boolean) => Said) {
  return rolloutAfter(seconds, 50, instances, say).stopped
}

/** The same; gives how far the roll-out is. */
function rolloutAfter(seconds: number, rollout: unknown, fleet: readonly string[], say: (hasRule: boolean) => Said) {
  let rule: Rule = parseRule({ id: 'r', prefix: 'x', threshold: 10, maxStalenessMs: 500, rollout })
  let now = 1_000_000
  const watch = new RolloutWatch({
    rules: () => [rule],
    alarms: new AlarmBoard({ now: () => now }),
    put: async (changed) => {
      rule = changed
    },
  })
  for (let second = 0; second < seconds; second++) {
    now += 1000
    for (const instanceId of fleet) {
      const hasRule = isInRollout('r', rule.rollout!.percent, instanceId)
      const { stale, ruleReads = 100, ...counters } = say(hasRule)
      const hits = { localHits: ruleReads * 0.9, redisReads: ruleReads * 0.1, bytesSaved: 0, limited: 0, errors: 0 }
      const effect = {
        redisClusterId: 'm',
        key: 'x1',
        ruleId: 'r',
        ...hits,
        ...(stale !== undefined && { staleMs: stale }),
      }
      const none = { reads: 100, writes: 0, localHits: 0, loads: 0, bypasses: 0, invalidations: 0, flushes: 0 }
      const rest = { limited: 0, copyReads: 0, droppedReports: 0, errors: 0 }
      const keys = hasRule ? [effect] : []
      const head = { sentAt: now, epoch: 'e', version: 1, isOff: false, watchers: [] }
      const status = { ...head, counters: { ...none, ...rest, ...counters }, keys } as unknown as StatusPayload
      watch.takeStatus({ serviceId: 's', instanceId }, status, now)
    }
    watch.tick(now)
  }
  return rule.rollout!
}

test('what is well goes on', () => {
  expect(watchFor(30, (hasRule) => ({ localHits: hasRule ? 60 : 20 }))).toBe(undefined)
  // Errors that everybody has are not the rule's.
  expect(watchFor(30, () => ({ errors: 5 }))).toBe(undefined)
  expect(watchFor(30, (hasRule) => ({ localHits: 50, ...(hasRule && { stale: 400 }) }))).toBe(undefined)
})

test('more errors, fewer hits and stale values among those that have it stop a roll-out', () => {
  expect(watchFor(30, (hasRule) => ({ localHits: 50, errors: hasRule ? 5 : 1 }))).toMatch(/5 % read errors/)
  expect(watchFor(30, (hasRule) => ({ localHits: hasRule ? 20 : 60 }))).toMatch(/20 % answered .* 60 %/)
  expect(watchFor(30, (hasRule) => ({ localHits: 50, ...(hasRule && { stale: 900 }) }))).toMatch(/staler/)
})

test('steps are taken once its keys were read by those that have it, and the others read as well', () => {
  const rollout = { percent: 50, steps: [100], stepMs: 5000 }
  const percentAfter = (fleet: readonly string[], say: (hasRule: boolean) => Said) =>
    rolloutAfter(30, rollout, fleet, say).percent
  expect(percentAfter(instances, () => ({ localHits: 50 }))).toBe(100)
  expect(percentAfter(instances, () => ({ localHits: 50, ruleReads: 0 }))).toBe(50)
  expect(percentAfter(instances, (hasRule) => (hasRule ? { localHits: 50 } : { reads: 0 }))).toBe(50)
  expect(percentAfter([], () => ({}))).toBe(50)
  // All processes have it, or none: there is nobody to wait for.
  const chosen = instances.filter((name) => isInRollout('r', 50, name))
  const others = instances.filter((name) => !isInRollout('r', 50, name))
  expect(percentAfter(chosen, () => ({ localHits: 50 }))).toBe(100)
  expect(percentAfter(others, () => ({ localHits: 50 }))).toBe(100)
})
