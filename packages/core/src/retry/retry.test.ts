import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { Retry } from './retry.ts'
import { describePolicy, parseRetryLines, type RetryPolicy, type RetrySteps, resolveRetry } from './retry-policy.ts'

const steps = {
  replica: {
    what: 'the replica stream',
    policy: {
      tries: Number.POSITIVE_INFINITY,
      firstMs: 50,
      mostMs: 2000,
      deadlineMs: Number.POSITIVE_INFINITY,
      atEnd: 'alarm',
    },
    ends: ['alarm', 'stop'],
  },
  webhook: {
    what: 'a webhook',
    policy: { tries: 5, firstMs: 1000, mostMs: 16_000, deadlineMs: Number.POSITIVE_INFINITY, atEnd: 'drop' },
    ends: ['alarm', 'drop'],
  },
} as const satisfies RetrySteps
const failure = (field: string, message: string) => new Error(`${field} | ${message}`)
const resolve = (choices: object) => resolveRetry(steps, choices, failure)

test('what nobody configured keeps its default, step by step and field by field', () => {
  expect(resolve({})).toEqual({ replica: steps.replica.policy, webhook: steps.webhook.policy })
  expect(resolve({ webhook: { tries: 'endless', deadlineMs: 5000 } }).webhook).toEqual({
    ...steps.webhook.policy,
    tries: Number.POSITIVE_INFINITY,
    deadlineMs: 5000,
  })
  // If the first pause is longer than the longest, the longest is raised to it.
  expect(resolve({ replica: { firstMs: 9000 } }).replica).toMatchObject({ firstMs: 9000, mostMs: 9000 })
})

test.each([
  [{ replcia: {} }, 'retry.replcia | unknown field retry.replcia; did you mean replica?'],
  [{ replica: 5 }, 'retry.replica | retry.replica is 5; it must be an object with tries'],
  [{ replica: { trie: 5 } }, 'unknown field retry.replica.trie; did you mean tries?'],
  [{ replica: { tries: -1 } }, 'retry.replica.tries is -1; it must be a whole number from 0'],
  [{ replica: { tries: 1.5 } }, 'it must be a whole number'],
  [{ replica: { tries: 'forever' } }, 'retry.replica.tries is "forever"'],
  [{ replica: { firstMs: 0 } }, 'retry.replica.firstMs is 0; it must be a whole number from 1'],
  [{ replica: { firstMs: 200, mostMs: 100 } }, 'retry.replica.mostMs is 100; it must be firstMs (200) or more'],
  [{ replica: { deadlineMs: Number.NaN } }, 'retry.replica.deadlineMs is NaN'],
  [{ replica: { atEnd: 'drop' } }, 'retry.replica.atEnd is "drop"; it must be one of alarm, stop'],
])('refuses %j', (choices, sentence) => {
  expect(() => resolve(choices)).toThrow(sentence)
})

test('a single line can express the same', () => {
  const lines = ['webhook tries=2 mostMs=1000 atEnd=alarm', ' replica  deadlineMs=none tries=endless ']
  expect(parseRetryLines(steps, lines, failure)).toEqual({
    webhook: { tries: 2, mostMs: 1000, atEnd: 'alarm' },
    replica: { deadlineMs: 'none', tries: 'endless' },
  })
  const parse =
    (...given: string[]) =>
    () =>
      parseRetryLines(steps, given, failure)
  expect(parse('webhok tries=2')).toThrow(
    'retry has no step "webhok"; there are replica, webhook; did you mean webhook?',
  )
  expect(parse('webhook tries')).toThrow('"tries" of the step webhook must be name=value')
  expect(parse('webhook tries=1', 'webhook tries=2')).toThrow('retry names the step webhook twice')
  expect(parse('toString tries=1')).toThrow('retry has no step "toString"')
})

function retryOf(policy: Partial<RetryPolicy>) {
  const clock = new FakeClock()
  // No pause is shortened at random.
  return { clock, retry: new Retry({ ...steps.replica.policy, ...policy }, { clock, random: () => 1 }) }
}

test('pauses double up to the longest, and start over after a success', () => {
  const { retry } = retryOf({ firstMs: 50, mostMs: 300 })
  expect([1, 2, 3, 4, 5].map(() => retry.failed())).toEqual([50, 100, 200, 300, 300])
  for (let nth = 0; nth < 5000; nth++) retry.failed()
  expect(retry.failed()).toBe(300)
  retry.succeeded()
  expect(retry.failed()).toBe(50)
  expect(retry.failed({ leastMs: 1000 })).toBe(1000)
})

test('ends after its tries or its time, whichever is first; with an alarm it keeps trying', () => {
  const stops = retryOf({ tries: 2, atEnd: 'stop' }).retry
  expect([stops.failed(), stops.failed(), stops.isOver, stops.failed(), stops.isOver]).toEqual([
    50,
    100,
    false,
    undefined,
    true,
  ])
  expect(stops.summary).toBe('3 failures in a row within 0.0 s')
  const none = retryOf({ tries: 0, atEnd: 'drop' }).retry
  expect(none.failed()).toBeUndefined()
  const late = retryOf({ deadlineMs: 1000, atEnd: 'stop' })
  expect(late.retry.failed()).toBe(50)
  late.clock.advance(999)
  expect(late.retry.failed()).toBe(100)
  late.clock.advance(1)
  expect(late.retry.failed()).toBeUndefined()
  const alarms = retryOf({ tries: 1, mostMs: 400 }).retry
  expect([alarms.failed(), alarms.failed(), alarms.isOver, alarms.failed()]).toEqual([50, 400, true, 400])
})

test('policies are described for people', () => {
  expect(describePolicy(steps.replica.policy)).toBe('endless, 50 to 2000 ms, then alarm')
  expect(describePolicy({ tries: 3, firstMs: 100, mostMs: 100, deadlineMs: 5000, atEnd: 'drop' })).toBe(
    '3 tries, every 100 ms, within 5000 ms, then drop',
  )
})
