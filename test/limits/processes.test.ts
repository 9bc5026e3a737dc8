import type { SpawnOptions } from 'node:child_process'
import {
  calendarWindow,
  concurrency,
  fixedWindow,
  gcra,
  type LimitSpec,
  leakyBucket,
  leakyQueue,
  redisLimiter,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@firebreak/limits'
import { FakedClock, type RedisServer, startRedis, startSource } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

const taker = new URL('./taker.ts', import.meta.url)
const hourMs = 3_600_000
const specs: LimitSpec[] = [
  // Windows of years: no boundary can fall into the test.
  fixedWindow({ limit: 100, windowMs: 100 * 365 * 24 * hourMs }),
  slidingWindow({ limit: 100, windowMs: hourMs }),
  slidingCounter({ limit: 100, windowMs: 24 * hourMs * 365 * 50 }),
  slidingLog({ limit: 100, windowMs: hourMs }),
  tokenBucket({ capacity: 100, refill: 1, perMs: 100 * hourMs }),
  leakyBucket({ capacity: 100, leak: 1, perMs: 100 * hourMs }),
  leakyQueue({ intervalMs: 100 * hourMs, queue: 99 }),
  gcra({ capacity: 100, rate: 1, perMs: 100 * hourMs }),
  calendarWindow({ limit: 100, unit: 'month', timeZone: 'Pacific/Chatham' }),
  concurrency({ limit: 100, leaseMs: hourMs }),
]

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

/** Four processes that start together, with the given clock offsets. */
async function fourProcesses(spec: LimitSpec, offsetsMs: readonly number[]): Promise<number> {
  const children = offsetsMs.map((offsetMs) => {
    const args = [String(server.port), JSON.stringify(spec), '250']
    const options: SpawnOptions = { stdio: ['pipe', 'pipe', 'pipe'] }
    return offsetMs === 0
      ? startSource(taker, args, options)
      : new FakedClock(offsetMs).startSource(taker, args, options)
  })
  await Promise.all(children.map((child) => child.printed(/ready/)))
  for (const child of children) child.process.stdin!.write('go\n')
  const lines = await Promise.all(children.map((child) => child.printed(/admitted (\d+) of 250/)))
  await Promise.all(children.map((child) => child.exited))
  return lines.reduce((sum, line) => sum + Number(line[1]), 0)
}

test.each(specs.map((spec) => [spec.kind, spec] as const))(
  '%s: four processes of 250 calls at a limit of 100 are admitted exactly 100 times',
  async (_, spec) => {
    expect(await fourProcesses(spec, [0, 0, 0, 0])).toBe(100)
  },
)

test('clients whose clocks are an hour ahead or behind do not change the result', async () => {
  const day = calendarWindow({ limit: 100, unit: 'hour', timeZone: 'Asia/Kolkata' })
  const limiter = redisLimiter(day, client, { deadlineMs: 20_000 })
  expect(await fourProcesses(day, [0, -hourMs, hourMs, hourMs])).toBe(100)
  // This process, whose clock is right, sees all of them in its own hour.
  expect(await limiter.peek('shared')).toMatchObject({ remaining: 0, source: 'redis' })
  expect(
    await fourProcesses(gcra({ capacity: 100, rate: 1, perMs: 99 * hourMs }), [-hourMs, hourMs, -hourMs, hourMs]),
  ).toBe(100)
})
