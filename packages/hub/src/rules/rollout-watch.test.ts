import type { StatusPayload } from '@firebreak/core'
import { isInRollout, parseRule, type Rule } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import { RolloutWatch } from './rollout-watch.ts'

const instances = Array.from({ length: 10 }, (_, index) => `i${index}`)

/** Statuses of a fleet for some seconds; `say` gives what each process tells. */
function watchFor(seconds: number, say: (hasRule: boolean) => Partial<StatusPayload['counters']> & { stale?: number }) {
  let rule: Rule = parseRule({ id: 'r', prefix: 'x', threshold: 10, maxStalenessMs: 500, rollout: 50 })
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
    for (const instanceId of instances) {
      const hasRule = isInRollout('r', 50, instanceId)
      const { stale, ...counters } = say(hasRule)
      const hits = { localHits: 90, redisReads: 10, bytesSaved: 0, limited: 0, errors: 0 }
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
  return rule.rollout?.stopped
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
