// Takes from one key on Redis a number of times and prints how many were admitted: node taker.ts PORT SPEC CALLS
import { type LimitSpec, redisLimiter } from '@firebreak/limits'
import { Redis } from 'ioredis'

const [port, spec, calls] = process.argv.slice(2)
const client = new Redis(Number(port))
const limiter = redisLimiter(JSON.parse(spec!) as LimitSpec, client, { deadlineMs: 20_000, onUnavailable: 'closed' })
await client.ping()
process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
let admitted = 0
let fromRedis = 0
const takers = Array.from({ length: 10 }, async (_, taker) => {
  for (let call = taker; call < Number(calls); call += 10) {
    const answer = await limiter.take('shared')
    if (answer.allowed) admitted++
    if (answer.source === 'redis') fromRedis++
  }
})
await Promise.all(takers)
process.stdout.write(`admitted ${admitted} of ${calls}, ${fromRedis} by Redis, wall ${Date.now()}\n`)
process.exit(0)
