import type { Redis, RedisScript } from '@firebreak/redis'
import { fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { ServerScripts } from './server-scripts.ts'

const deadlineMs = 50
const script = { name: 'take', source: '', sha1: '' } satisfies RedisScript

test('a delayed reply does not allow later calls to come just as late', async () => {
  const runtime = fakeRuntime()
  const serverAheadMs = 5000
  let wayMs = 1
  const latest: unknown[] = []
  const redis: Pick<Redis, 'run'> = {
    async run(_script, _keys, [, notAfter]) {
      latest.push(notAfter)
      runtime.clock.advance(wayMs)
      return [runtime.clock.now() + serverAheadMs, 1]
    },
  }
  const scripts = new ServerScripts(redis as Redis, { deadlineMs, testClock: undefined, runtime })
  const call = async (): Promise<void> => void (await scripts.run(script, [], () => []))
  // Nothing is known yet: the script may run at any time.
  await call()
  expect(latest.pop()).toBe('')
  wayMs = 1200
  await call()
  wayMs = 1
  await call()
  expect(Number(latest.pop())).toBeLessThanOrEqual(runtime.clock.now() + serverAheadMs + deadlineMs)
})
