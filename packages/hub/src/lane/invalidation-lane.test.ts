import { decodeFrame, decodeInvalidation, type Invalidation } from '@firebreak/core'
import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { hubRetrySteps } from '../config/retry-steps.ts'
import { InvalidationLane } from './invalidation-lane.ts'

const runtime = fakeRuntime()
const newLane = () =>
  new InvalidationLane({ ...runtime, retry: hubRetrySteps.relay.policy, onUnreadable() {}, onRelay() {} })

test('a hub that was started again never has the head that its sensors heard last', () => {
  const heads = new Set(Array.from({ length: 100 }, () => newLane().head))
  expect(heads.size).toBe(100)
})

test('what the relay did not take is flushed at the other hubs once it does; the alarm becomes critical and ends', async () => {
  const told: Invalidation[] = []
  const states: unknown[] = []
  let isAway = true
  const relay = {
    async open() {},
    async publish(bytes: Uint8Array) {
      if (isAway) throw new Error('the Redis is away')
      told.push(decodeInvalidation(decodeFrame(bytes)))
    },
  }
  const retry = { ...hubRetrySteps.relay.policy, tries: 1 }
  const lane = new InvalidationLane({
    ...runtime,
    random: () => 1,
    relay,
    retry,
    onUnreadable() {},
    onRelay: (failure) => void states.push(failure?.isOverdue),
  })
  const change = (redisClusterId: string) =>
    lane.publish({ redisClusterId, database: 0, kind: 'keys', items: [{ key: 'a' }] })
  for (const cluster of ['main', 'main', 'other']) change(cluster)
  await runtime.clock.advanceAsync(1100)
  await runtime.clock.advanceAsync(1100)
  isAway = false
  await runtime.clock.advanceAsync(1100)
  expect(told.map(({ redisClusterId, kind, database }) => [redisClusterId, kind, database]).sort()).toEqual([
    ['main', 'flush', -1],
    ['other', 'flush', -1],
  ])
  expect(states).toEqual([false, true, true, undefined])
  change('main')
  await runtime.clock.advanceAsync(5000)
  expect(told).toHaveLength(3)
})

test('messages are numbered one by one, and a skip is a gap', () => {
  const lane = newLane()
  const { head } = lane
  const message = { redisClusterId: 'main', database: 0, kind: 'flush', items: [] } as const
  expect([lane.publish(message), lane.publish(message)]).toEqual([head + 1, head + 2])
  lane.skip()
  expect([lane.publish(message), lane.head]).toEqual([head + 4, head + 4])
})
