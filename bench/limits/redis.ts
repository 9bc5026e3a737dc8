import { fixedWindow, type LimitSpec, type RedisLimiterOptions, redisLimiter } from '@firebreak/limits'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { type Bench, interleaved, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'
import { measuredSpecs, worst } from './specs.ts'
import { admittedOf, perSecond, speedOf, type Take } from './speed.ts'

const hourMs = 3_600_000
const deadline: RedisLimiterOptions = { deadlineMs: 10_000, onUnavailable: 'closed' }

/** On Redis, against rate-limiter-flexible's Redis limiter: 100 callers at once, over 10,000 keys. */
export async function benchRedisMany(bench: Bench): Promise<void> {
  const calls = rounds(6000, 40_000)
  await withRedis((table) =>
    compare(bench, table, 'redis-many-vs-rlf', (call) => `user:${(call * 7919) % 10_000}`, {
      ours: calls * 2,
      theirs: calls,
    }),
  )
}

/** The same on one hot key; and that both admit the same. */
export async function benchRedisHot(bench: Bench): Promise<void> {
  const calls = rounds(10_000, 25_000)
  await withRedis(async (table) => {
    await compare(bench, table, 'redis-hot-vs-rlf', () => 'hot', { ours: calls * 12, theirs: calls })
    await compareLimited(bench, table)
    await compareCrowd(bench, table)
    await compareAdmission(table)
  })
}

/** A hot key that reaches its limit halfway, the same calls for both: each must admit the limit, no more and no less. */
async function compareLimited(bench: Bench, table: Table): Promise<void> {
  const calls = rounds(10_000, 25_000)
  const limit = calls / 2
  const spec = fixedWindow({ limit, windowMs: hourMs, anchor: 'firstHit' })
  const speed = async (name: string, take: Take) => {
    const start = workMs()
    const admitted = await admittedOf(calls, take)
    if (admitted !== limit) throw new Error(`${name} admitted ${admitted} instead of ${limit}`)
    return calls / (workMs() - start)
  }
  const contestants = {
    ours: () =>
      speed(
        'ours',
        ourTake(table, spec, () => 'hot'),
      ),
    theirs: () =>
      speed(
        'theirs',
        theirTake(table, limit, () => 'hot'),
      ),
  }
  await interleaved(1, contestants)
  const speeds = await interleaved(rounds(5, 11), contestants)
  say(`redis-hot-limited fixed window: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
  const ratio = medianRatio(speeds.ours, speeds.theirs)
  bench.report({ id: 'redis-hot-limited-vs-rlf', ratio, of: 'redisLimiter', to: 'RateLimiterRedis' })
}

/** A thousand callers at once: what a key gets that is hot indeed. One round trip serves all of them. */
async function compareCrowd(bench: Bench, table: Table): Promise<void> {
  const limit = 1_000_000
  const calls = rounds(5000, 25_000)
  const spec = measuredSpecs(limit, hourMs)['token bucket']!
  const speeds = await interleaved(rounds(3, 5), {
    ours: () =>
      speedOf(
        calls * 12,
        ourTake(table, spec, () => 'hot'),
        1000,
      ),
    theirs: () =>
      speedOf(
        calls,
        theirTake(table, limit, () => 'hot'),
        1000,
      ),
  })
  say(`redis-hot-crowd token bucket: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
  const ratio = medianRatio(speeds.ours, speeds.theirs)
  bench.report({ id: 'redis-hot-crowd-vs-rlf', ratio, of: 'redisLimiter, 1,000 callers', to: 'RateLimiterRedis' })
}

/** A server and a client for each contestant. */
export interface Table {
  readonly server: RedisServer
  readonly ours: Redis
  readonly theirs: Redis
}

export async function withRedis(play: (table: Table) => Promise<void>): Promise<void> {
  const server = await startRedis()
  const table: Table = { server, ours: new Redis(server.port), theirs: new Redis(server.port) }
  try {
    await play(table)
  } finally {
    table.ours.disconnect()
    table.theirs.disconnect()
    await server.stop()
  }
}

let prefixes = 0

export function ourTake({ ours }: Table, spec: LimitSpec, keyOf: (call: number) => string): Take {
  const limiter = redisLimiter(spec, ours, { ...deadline, prefix: `ours${prefixes++}` })
  return async (call) => (await limiter.take(keyOf(call))).allowed
}

function theirTake({ theirs }: Table, points: number, keyOf: (call: number) => string): Take {
  const keyPrefix = `theirs${prefixes++}`
  const limiter = new RateLimiterRedis({ storeClient: theirs, points, duration: hourMs / 1000, keyPrefix })
  return (call) =>
    limiter.consume(keyOf(call)).then(
      () => true,
      () => false,
    )
}

/** `calls` by speed, so that both run for about as long and a busy moment of the machine hits both alike. */
async function compare(
  bench: Bench,
  table: Table,
  id: string,
  keyOf: (call: number) => string,
  calls: { readonly ours: number; readonly theirs: number },
): Promise<void> {
  const limit = 1_000_000
  const ratios: Record<string, number> = {}
  for (const [name, spec] of Object.entries(measuredSpecs(limit, hourMs))) {
    const contestants = {
      ours: () => speedOf(calls.ours, ourTake(table, spec, keyOf)),
      theirs: () => speedOf(calls.theirs, theirTake(table, limit, keyOf)),
    }
    // First untimed, so that no round is spent on compiling.
    await interleaved(5, contestants)
    const speeds = await interleaved(rounds(7, 21), contestants)
    ratios[name] = medianRatio(speeds.ours, speeds.theirs)
    say(`${id} ${name}: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
    await table.server.cli('FLUSHALL')
  }
  const { ratio, note } = worst(ratios)
  bench.report({ id, ratio, of: 'redisLimiter', to: 'RateLimiterRedis', note })
}

/** 20,000 calls on one key with room for 1,000. */
async function compareAdmission(table: Table): Promise<void> {
  for (const [name, spec] of Object.entries(measuredSpecs(1000, hourMs))) {
    const admitted = await admittedOf(
      20_000,
      ourTake(table, spec, () => 'hot'),
    )
    if (admitted < 1000 || admitted > 1010) throw new Error(`${name} admitted ${admitted} instead of 1000`)
    say(`admission ${name}: ${admitted} of 20,000 with room for 1,000`)
  }
  say(
    `admission RateLimiterRedis: ${await admittedOf(
      20_000,
      theirTake(table, 1000, () => 'hot'),
    )}`,
  )
}
