import { protect, shieldOf, unprotect } from '@firebreak/client'
import { startRedis, startSource, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { Bench, interleaved, isQuick, median, medianRatio, rounds, say } from './harness/bench.ts'
import { workMs } from './harness/work-time.ts'

/**
 * What `protect()` costs while nothing is hot, what it costs cold keys while another is hot, and what a hot key's GET gains,
 * all against bare ioredis on the same server in the same process, turn by turn.
 */
const concurrency = 100
const keyCount = 1000

/** Runs `total` GETs, `concurrency` at a time; `key` chooses the key of each. */
async function run(redis: Redis, total: number, key: (index: number) => string): Promise<void> {
  let index = 0
  const worker = async () => {
    while (index < total) await redis.get(key(index++))
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

/** Commands per second of this process' CPU time. */
async function perCpuSecond(redis: Redis, total: number, key: (index: number) => string): Promise<number> {
  const before = process.cpuUsage()
  await run(redis, total, key)
  const { user, system } = process.cpuUsage(before)
  return (total / (user + system)) * 1e6
}

/** Commands per second of wall time. */
async function perSecond(redis: Redis, total: number, key: (index: number) => string): Promise<number> {
  const before = workMs()
  await run(redis, total, key)
  return (total / (workMs() - before)) * 1000
}

const bench = new Bench('client')
const server = await startRedis()
const hub = startSource(new URL('./client/hub-process.ts', import.meta.url), [], { stdio: ['pipe', 'pipe', 'pipe'] })
const [, hubUrl] = await hub.printed(/hub (\S+)/)
const bare = new Redis(server.port)
const guarded = protect(new Redis(server.port), {
  hubs: [hubUrl!],
  serviceId: 'bench',
  redisClusterId: 'main',
  tableFile: false,
})
await waitFor(() => shieldOf(guarded)?.isConnected)
const keys = Array.from({ length: keyCount }, (_, index) => `product:${index}`)
await bare.mset(Object.fromEntries(keys.map((key) => [key, 'x'.repeat(100)])))

const cold = (index: number) => keys[index % keyCount]!
// Short rounds and many pairs: a disturbance of the machine then hits few of them. No forced collection in between, for
// it throws optimised code away and would measure its compilation.
const coldTotal = 5000
for (let round = 0; round < 8; round++) for (const redis of [bare, guarded]) await run(redis, coldTotal, cold)
say('cold: GET over 1,000 keys, nothing hot')
const coldSpeeds = await interleaved(rounds(150, 400), {
  bare: () => perCpuSecond(bare, coldTotal, cold),
  guarded: () => perCpuSecond(guarded, coldTotal, cold),
})
bench.report({
  id: 'cold-vs-bare',
  ratio: medianRatio(coldSpeeds.guarded, coldSpeeds.bare),
  of: 'commands per CPU second through protect(), nothing hot',
  to: 'bare ioredis',
})
bench.report({ id: 'bare-get-per-cpu-second', value: median(coldSpeeds.bare), unit: 'GET/s' })

hub.process.stdin!.write('heat product:0\n')
await waitFor(async () => {
  await guarded.get('product:0')
  return hub.output().includes('serving')
})
say('cold: GET over 999 other keys, beside the hot one')
const besides = (index: number) => keys[1 + (index % (keyCount - 1))]!
for (let round = 0; round < 8; round++) for (const redis of [bare, guarded]) await run(redis, coldTotal, besides)
const besideSpeeds = await interleaved(rounds(150, 400), {
  bare: () => perCpuSecond(bare, coldTotal, besides),
  guarded: () => perCpuSecond(guarded, coldTotal, besides),
})
bench.report({
  id: 'cold-beside-hot-vs-bare',
  ratio: medianRatio(besideSpeeds.guarded, besideSpeeds.bare),
  of: 'commands per CPU second through protect(), another key hot',
  to: 'bare ioredis',
})

const hot = () => 'product:0'
const hotTotal = rounds(200_000, 1_000_000)
await run(guarded, hotTotal, hot)
say('hot: GET of one hot key')
const hotSpeeds = await interleaved(rounds(10, 30), {
  bare: () => perSecond(bare, coldTotal * 4, hot),
  guarded: () => perSecond(guarded, hotTotal, hot),
})
bench.report({
  id: 'hot-vs-bare',
  ratio: medianRatio(hotSpeeds.guarded, hotSpeeds.bare),
  of: "a hot key's GET a second through protect()",
  to: 'bare ioredis',
})
bench.report({ id: 'hot-get-per-second', value: median(hotSpeeds.guarded), unit: 'GET/s' })

const sendPath = (redis: Redis, total: number) => {
  let index = 0
  const worker = async () => {
    while (index++ < total) await redis.call('GET', 'product:0')
  }
  return Promise.all(Array.from({ length: concurrency }, worker))
}
const sendPathSpeed = async (redis: Redis, total: number) => {
  const before = workMs()
  await sendPath(redis, total)
  return (total / (workMs() - before)) * 1000
}
const sendSpeeds = await interleaved(rounds(5, 15), {
  bare: () => sendPathSpeed(bare, coldTotal * 4),
  guarded: () => sendPathSpeed(guarded, coldTotal * 20),
})
bench.report({
  id: 'hot-send-path-vs-bare',
  ratio: medianRatio(sendSpeeds.guarded, sendSpeeds.bare),
  of: "a hot key's call('GET') a second, answered at the send path",
  to: 'bare ioredis',
})

unprotect(guarded)
guarded.disconnect()
bare.disconnect()
await hub.stop()
await server.stop()
bench.done({ redis: '7', quick: String(isQuick) })
