import { createHash } from 'node:crypto'
import { localLimiter, tokenBucket } from '@firebreak/limits'
import { Ratelimit } from '@upstash/ratelimit'
import type { Redis } from 'ioredis'
import { RateLimiter } from 'limiter'
import { type Bench, interleaved, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'
import { ourTake, withRedis } from './redis.ts'
import { perSecond, speedOf, type Take } from './speed.ts'

/** The other peers beside rate-limiter-flexible, each with the token bucket that it has. */
export async function benchPeers(bench: Bench): Promise<void> {
  await compareLimiter(bench)
  await compareUpstash(bench, 'redis-many-vs-upstash', 3, (call) => `user:${(call * 7919) % 10_000}`)
  await compareUpstash(bench, 'redis-hot-vs-upstash', 12, () => 'hot')
}

const hourMs = 3_600_000
const limit = 1_000_000
const bucket = tokenBucket({ capacity: limit, refill: limit, perMs: hourMs })

/** `limiter` has no keys: a map of its limiters stands for them. */
async function compareLimiter(bench: Bench): Promise<void> {
  const keys = Array.from({ length: 10_000 }, (_, index) => `user:${index}`)
  const ours = localLimiter(bucket)
  const theirs = new Map(keys.map((key) => [key, new RateLimiter({ tokensPerInterval: limit, interval: hourMs })]))
  const calls = rounds(50_000, 300_000)
  const speed = (take: (key: string) => boolean) => () => {
    const start = workMs()
    for (let call = 0; call < calls; call++) if (!take(keys[call % keys.length]!)) throw new Error('a call was denied')
    return calls / (workMs() - start)
  }
  const contestants = {
    ours: speed((key) => ours.take(key).allowed),
    theirs: speed((key) => theirs.get(key)!.tryRemoveTokens(1)),
  }
  await interleaved(1, contestants)
  const speeds = await interleaved(rounds(7, 9), contestants)
  say(`local-allow-vs-limiter: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
  const ratio = medianRatio(speeds.ours, speeds.theirs)
  bench.report({ id: 'local-allow-vs-limiter', ratio, of: 'localLimiter', to: 'limiter' })
}

/**
 * @upstash/ratelimit is made for a Redis over HTTP; here it is spared that and given a client as ours. We make `lead`
 * times as many calls, so that both run for about as long.
 */
async function compareUpstash(bench: Bench, id: string, lead: number, keyOf: (call: number) => string): Promise<void> {
  await withRedis(async (table) => {
    const calls = rounds(3000, 15_000)
    const theirs = upstashTake(table.theirs, keyOf)
    const contestants = {
      ours: () => speedOf(calls * lead, ourTake(table, bucket, keyOf)),
      theirs: () => speedOf(calls, theirs),
    }
    await interleaved(1, contestants)
    const speeds = await interleaved(rounds(5, 5), contestants)
    say(`${id}: ${perSecond(speeds.ours)} to ${perSecond(speeds.theirs)} calls/s`)
    const ratio = medianRatio(speeds.ours, speeds.theirs)
    bench.report({ id, ratio, of: 'redisLimiter', to: '@upstash/ratelimit' })
  })
}

function upstashTake(client: Redis, keyOf: (call: number) => string): Take {
  const limiter = new Ratelimit({
    redis: upstashRedis(client) as unknown as ConstructorParameters<typeof Ratelimit>[0]['redis'],
    limiter: Ratelimit.tokenBucket(limit, '1 h', limit),
    prefix: 'upstash',
  })
  return async (call) => (await limiter.limit(keyOf(call))).success
}

/** What it needs of its own client. Its scripts begin with a flag that only its own servers know: that line is left out. */
function upstashRedis(client: Redis) {
  const known = new Map<string, string>()
  return {
    evalsha(hash: string, keys: string[], args: string[]) {
      const sha1 = known.get(hash)
      if (sha1 === undefined) throw new Error('NOSCRIPT')
      return client.evalsha(sha1, keys.length, ...keys, ...args)
    },
    async eval(script: string, keys: string[], args: string[]) {
      const sha1 = (await client.script('LOAD', script.replace(/^#!.*\n/, ''))) as string
      known.set(createHash('sha1').update(script).digest('hex'), sha1)
      return client.evalsha(sha1, keys.length, ...keys, ...args)
    },
  }
}
