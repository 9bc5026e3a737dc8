import { waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { oneRedis } from '../testing/one-redis.ts'

const redis = oneRedis()
const { open, freshName } = redis

test.each(['before', 'after'])('close ends waiting for a latch %s the subscription stands', async (when) => {
  const locks = open()
  const latch = locks.getCountdownLatch(freshName())
  await latch.trySetCount(1)
  const ending = expect(latch.wait()).rejects.toMatchObject({ code: 'FB_LOCKS_CLOSED' })
  const channel = `redisson_countdownlatch__channel__{${latch.name}}`
  if (when === 'after') await waitFor(async () => (await redis.client.pubsub('NUMSUB', channel))[1] === 1)
  await locks.close()
  await ending
  await expect(latch.wait()).rejects.toMatchObject({ code: 'FB_LOCKS_CLOSED' })
})

test('a latch whose key is deleted without a message lets its waiters pass', async () => {
  const latch = open({ leaseMs: 200 }).getCountdownLatch(freshName())
  await latch.trySetCount(2)
  const waiting = latch.wait()
  const channel = `redisson_countdownlatch__channel__{${latch.name}}`
  await waitFor(async () => (await redis.client.pubsub('NUMSUB', channel))[1] === 1)
  await redis.client.del(latch.name)
  expect(await waiting).toBe(true)
})
