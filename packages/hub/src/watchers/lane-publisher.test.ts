import type { Invalidation } from '@firebreak/core'
import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { LanePublisher } from './lane-publisher.ts'

type Sent = Omit<Invalidation, 'sequence'>

function publisher(options: { maxWaiting?: number } = {}) {
  const sent: Sent[] = []
  const clock = new FakeClock()
  const lane = new LanePublisher({
    redisClusterId: 'main',
    publish: (message) => sent.push(message),
    timers: clock,
    coalesceMs: 5,
    ...options,
  })
  const told = () =>
    sent.map(
      ({ kind, database, items }) =>
        `${kind} ${database} ${items.map(({ key, value }) => (value ? `${key}=${value[0]}` : key)).join()}`,
    )
  return { lane, clock, told }
}

test('the first change is told at once, more of the same key once at the end, with the last value', () => {
  const { lane, clock, told } = publisher()
  lane.changed(0, [{ key: 'a', value: Uint8Array.of(1) }])
  expect(told()).toEqual(['keys 0 a=1'])
  for (let value = 2; value <= 9; value++) lane.changed(0, [{ key: 'a', value: Uint8Array.of(value) }])
  lane.changed(0, [{ key: 'b' }])
  expect(told()).toEqual(['keys 0 a=1', 'keys 0 b'])
  clock.advance(5)
  expect(told()).toEqual(['keys 0 a=1', 'keys 0 b', 'keys 0 a=9'])
  lane.changed(0, [{ key: 'a' }])
  expect(told()).toHaveLength(4)
})

test('the same name in two databases is two keys', () => {
  const { lane, told } = publisher()
  lane.changed(0, [{ key: 'a' }])
  lane.changed(1, [{ key: 'a' }])
  expect(told()).toEqual(['keys 0 a', 'keys 1 a'])
})

test('too many waiting keys are a flush of everything, counted', () => {
  const { lane, told } = publisher({ maxWaiting: 2 })
  lane.changed(0, [{ key: 'a' }, { key: 'b' }])
  lane.changed(0, [{ key: 'c' }])
  expect(told().at(-1)).toBe('flush -1 ')
  expect(lane.overflows).toBe(1)
})

test('a flush forgets what waited: it is covered', () => {
  const { lane, clock, told } = publisher()
  lane.changed(0, [{ key: 'a' }])
  lane.changed(0, [{ key: 'a' }])
  lane.flush(0)
  clock.advance(10)
  expect(told()).toEqual(['keys 0 a', 'flush 0 '])
})
