import { type LimitSpec, type RedisLimiterOptions, redisLimiter } from '@firebreak/limits'
import { startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { type Bench, interleaved, medianRatio, rounds, say } from '../harness/bench.ts'
import { measuredSpecs, worst } from './specs.ts'

const concurrency = 100
const hourMs = 3_600_000
const deadline: RedisLimiterOptions = { deadlineMs: 10_000, onUnavailable: 'closed' }

/** On Redis, against rate-limiter-flexible's Redis limiter: 100 callers at once, over many keys and on one hot key. */
export async function benchRedis(bench: Bench): Promise<void> {
  const server = await startRedis()
  const ourClient = new Redis(server.port)
  const theirClient = new Redis(server.port)
  let run = 0
  try {
    const compare = async (id: string, keyOf: (call: number) => string, calls: { ours: number; theirs: number }) => {
      const limit = 1_000_000
      const ratios: Record<string, number> = {}
      for (const [name, spec] of Object.entries(measuredSpecs(limit, hourMs))) {
        const contestants = {
          ours: () => ourSpeed(spec, keyOf, calls.ours, `bench${run++}`),
          theirs: () => theirSpeed(limit, keyOf, calls.theirs, `bench${run++}`),
        }
        // Once untimed, so that no round is spent on compiling.
        await interleaved(1, contestants)
        const speeds = await interleaved(rounds(7, 11), contestants)
        ratios[name] = medianRatio(speeds.ours, speeds.theirs)
        say(`${id} ${name}: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
        await server.cli('FLUSHALL')
      }
      const { ratio, note } = worst(ratios)
      bench.report({ id, ratio, of: 'redisLimiter', to: 'RateLimiterRedis', note })
    }

    const ourSpeed = async (spec: LimitSpec, keyOf: (call: number) => string, calls: number, prefix: string) => {
      const limiter = redisLimiter(spec, ourClient, { ...deadline, prefix })
      return speedOf(calls, async (call) => (await limiter.take(keyOf(call))).allowed)
    }
    const theirSpeed = async (points: number, keyOf: (call: number) => string, calls: number, keyPrefix: string) => {
      const limiter = new RateLimiterRedis({ storeClient: theirClient, points, duration: hourMs / 1000, keyPrefix })
      return speedOf(calls, (call) =>
        limiter.consume(keyOf(call)).then(
          () => true,
          () => false,
        ),
      )
    }

    // Calls by speed, so that both run for about as long and a busy moment of the machine hits both alike.
    const many = rounds(6000, 40_000)
    await compare('redis-many-vs-rlf', (call) => `user:${(call * 7919) % 10_000}`, { ours: many * 2, theirs: many })
    const hot = rounds(5000, 25_000)
    await compare('redis-hot-vs-rlf', () => 'hot', { ours: hot * 12, theirs: hot })

    // The same admission: 20,000 calls on one key with room for 1,000.
    for (const [name, spec] of Object.entries(measuredSpecs(1000, hourMs))) {
      const prefix = `same${run++}`
      const ours = redisLimiter(spec, ourClient, { ...deadline, prefix })
      const admitted = await admittedOf(20_000, async () => (await ours.take('hot')).allowed)
      if (admitted < 1000 || admitted > 1010) throw new Error(`${name} admitted ${admitted} instead of 1000`)
      say(`admission ${name}: ${admitted} of 20,000 with room for 1,000`)
    }
    const theirs = new RateLimiterRedis({ storeClient: theirClient, points: 1000, duration: 3600, keyPrefix: 'same' })
    const theirAdmitted = await admittedOf(20_000, () =>
      theirs.consume('hot').then(
        () => true,
        () => false,
      ),
    )
    say(`admission RateLimiterRedis: ${theirAdmitted}`)
  } finally {
    ourClient.disconnect()
    theirClient.disconnect()
    await server.stop()
  }
}

/** Calls a millisecond with 100 callers, each making its next call when it has its answer; all must be admitted. */
async function speedOf(calls: number, take: (call: number) => Promise<boolean>): Promise<number> {
  const start = performance.now()
  const admitted = await admittedOf(calls, take)
  if (admitted !== calls) throw new Error(`${admitted} of ${calls} calls were admitted`)
  return calls / (performance.now() - start)
}

async function admittedOf(calls: number, take: (call: number) => Promise<boolean>): Promise<number> {
  let next = 0
  let admitted = 0
  const caller = async () => {
    while (next < calls) if (await take(next++)) admitted++
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return admitted
}

function perSecond(speeds: readonly number[]): string {
  return Math.round(Math.max(...speeds) * 1000).toLocaleString('en-US')
}
