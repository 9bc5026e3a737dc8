import { expect, test } from 'vitest'
import { verdictOf } from './verdict.ts'

const facts = {
  isOff: false,
  hasReporters: true,
  hot: { handled: 2, observed: 0, unhandled: 0 },
  critical: undefined,
  hotBy: { sensor: 2, table: 0, centre: 0, reports: 0, none: 0 },
  rules: { total: 1, handling: 1 },
}
const quiet = { at: 0, redis: 0, local: 0, copies: 0, limited: 0, writes: 0 }
const nothing = { handled: 0, observed: 0, unhandled: 0 }

test('reads from memory and refused ones never reach Redis; those of copies do, on another node', () => {
  const rate = { at: 0, redis: 100, local: 700, copies: 100, limited: 100, writes: 5 }
  expect(verdictOf({ ...facts, rate }).verdict).toBe(
    'Safe: 2 keys are hot and handled; 80 % of all reads never reach Redis.',
  )
  const copied = { ...rate, local: 0, limited: 0 }
  expect(verdictOf({ ...facts, rate: copied }).verdict).toBe('Safe: 2 keys are hot and handled.')
})

test('without a rule that handles anything the fleet is not safe, whatever is hot', () => {
  const calm = { ...facts, hot: nothing, hotBy: { ...facts.hotBy, sensor: 0 }, rate: quiet }
  expect(verdictOf(calm)).toEqual({ safety: 'safe', verdict: 'Safe: nothing is hot.' })
  const none = verdictOf({ ...calm, rules: { total: 0, handling: 0 } })
  expect(none.safety).toBe('unknown')
  expect(none.verdict).toMatch(/^Not protected: there are no rules.* Add a rule\.$/)
  const watching = verdictOf({ ...calm, rules: { total: 2, handling: 0 } })
  expect(watching.safety).toBe('observed')
  expect(watching.verdict).toMatch(/^Only watching: .*Give a rule a strategy, or set its mode to on\.$/)
})

test('keys of services that only report are told from those handled by who reads the table', () => {
  const byReports = { ...facts.hotBy, sensor: 0, reports: 1 }
  const reported = verdictOf({ ...facts, hot: { ...nothing, observed: 1 }, hotBy: byReports, rate: quiet })
  expect(reported.safety).toBe('observed')
  expect(reported.verdict).toContain('1 key is hot, but the services that use it only send reports')
  expect(reported.verdict).toContain('/v1/table')
  const mixed = verdictOf({
    ...facts,
    hot: { ...nothing, handled: 2, observed: 1 },
    hotBy: { ...byReports, sensor: 2 },
    rate: quiet,
  })
  expect(mixed.verdict).toBe(
    '3 keys are hot: 2 handled, 1 only observed (1 because the services that use it only send reports).',
  )
  const polled = verdictOf({ ...facts, hotBy: { ...facts.hotBy, sensor: 1, table: 1 }, rate: quiet })
  expect(polled.verdict).toBe('Safe: 2 keys are hot and handled, 1 by programs that read /v1/table.')
})
