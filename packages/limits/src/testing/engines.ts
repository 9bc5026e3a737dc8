import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'
import type { Answer } from '../answer.ts'
import { localLimiter } from '../local/local-limiter.ts'
import { redisLimiter } from '../redis/redis-limiter.ts'
import type { LimitSpec } from '../spec/spec.ts'

/** A limiter of either engine under a test's clock. */
export interface TestedLimiter {
  take(key: string, cost?: number, requestId?: string): Answer | Promise<Answer>
  peek(key: string): Answer | Promise<Answer>
  refund(key: string, units?: number, requestId?: string): boolean | Promise<boolean>
  reset(key: string): void | Promise<void>
  block(key: string, forMs: number): void | Promise<void>
}

/** Both engines, for `describe.each`; call it in a test file, which then has its own Redis. */
export function bothEngines(): Record<'local' | 'redis', (spec: LimitSpec, clock: { now(): number }) => TestedLimiter> {
  let server: RedisServer
  let client: Ioredis
  let prefixes = 0
  beforeAll(async () => {
    server = await startRedis()
    client = new Ioredis(server.port)
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })
  return {
    local: (spec, clock) => localLimiter(spec, { clock }),
    redis: (spec, clock) =>
      redisLimiter(spec, client, { testClock: clock, deadlineMs: 20_000, prefix: `test${prefixes++}` }),
  }
}
