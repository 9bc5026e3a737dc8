import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { InvalidationLane } from './invalidation-lane.ts'

const { random, timers } = fakeRuntime()
const newLane = () => new InvalidationLane({ random, timers, onRelayFailure() {} })

test('a hub that was started again never has the head that its sensors heard last', () => {
  const heads = new Set(Array.from({ length: 100 }, () => newLane().head))
  expect(heads.size).toBe(100)
})

test('messages are numbered one by one, and a skip is a gap', () => {
  const lane = newLane()
  const { head } = lane
  const message = { redisClusterId: 'main', database: 0, kind: 'flush', items: [] } as const
  expect([lane.publish(message), lane.publish(message)]).toEqual([head + 1, head + 2])
  lane.skip()
  expect([lane.publish(message), lane.head]).toEqual([head + 4, head + 4])
})
