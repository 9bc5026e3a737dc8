import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { protect, shieldOf, unprotect } from '@firebreak/client'
import { startRedis, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { Bench, interleaved, isQuick, median, medianRatio, rounds, say } from './harness/bench.ts'
import { cpuMs, longestTurnMs } from './table/longest-turn.ts'

/**
 * What a process pays for the size of the strategy table, from 10 to 100,000 hot keys: at rest, while keys become hot, and
 * for a command of a cold key. There are two key spaces; every hot key has been read once in one of them and is kept there.
 */
const most = Number(process.env['FIREBREAK_KEYS'] ?? 100_000)
const stormKeys = Math.min(10_000, most / 10)
const sizes = [10, 100, 1000, 10_000, 100_000].filter((size) => size <= most)
const concurrency = 100

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Megabytes that are in use after a collection, on the heap and beside it. */
async function usedMb(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    collect()
    await sleep(50)
  }
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

/** The share of a core that this process needs while nothing happens. */
async function restShare(): Promise<number> {
  const before = process.cpuUsage()
  const started = performance.now()
  await sleep(rounds(3000, 8000))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / (performance.now() - started)
}

async function readAll(redis: Redis, total: number, key: (index: number) => string): Promise<void> {
  let index = 0
  const worker = async () => {
    while (index < total) await redis.get(key(index++))
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

const bench = new Bench('table')
const server = await startRedis()
for (const db of [0, 1]) {
  const plain = new Redis(server.port, { db })
  for (let from = 0; from < most; from += 1000) {
    await plain.mset(Array.from({ length: 1000 }, (_, at) => [`product:${from + at}`, 'x'.repeat(100)]).flat())
  }
  plain.disconnect()
}
const hub = startSource(new URL('./table/hub-process.ts', import.meta.url), [], { stdio: ['pipe', 'pipe', 'pipe'] })
const [, hubUrl] = await hub.printed(/hub (\S+)/)
const options = { hubs: [hubUrl!], serviceId: 'bench', tableFile: join(temporaryFolder('table'), 'table.json') }
const clientOf = (redisClusterId: string, db: number) =>
  protect(new Redis(server.port, { db }), { ...options, redisClusterId })
const small = clientOf('small', 0)
const large = [clientOf('large', 0), clientOf('large', 1)]
const shield = shieldOf(small)!
await waitFor(() => shield.isConnected)
await waitFor(() => shield.tableVersion.version >= 1)

/** Makes keys hot and waits until this process has heard of all. */
async function heat(redisClusterId: string, from: number, to: number, size: number, withinMs: number): Promise<void> {
  const said = hub.output().length
  hub.process.stdin!.write(`heat ${redisClusterId} ${from} ${to} ${size} ${withinMs}\n`)
  await waitFor(() => /version \d+/.test(hub.output().slice(said)), { timeoutMs: 60_000 })
  const version = Number(/version (\d+)/.exec(hub.output().slice(said))![1])
  await waitFor(() => shield.tableVersion.version >= version, { timeoutMs: 60_000 })
}

await heat('small', 0, 10, 10, 0)
await readAll(small, 10, (index) => `product:${index}`)
let hotCount = 0
let baseMb = 0
for (const size of sizes) {
  const isLast = size === most
  const calm = isLast ? size - stormKeys : size
  await heat('large', hotCount, calm, 500, 0)
  if (isLast) {
    say(`storm: ${stormKeys} of ${size} become hot within a second, 500 in each delta`)
    await sleep(1500)
    const before = cpuMs()
    const longest = await longestTurnMs(async () => {
      await heat('large', calm, size, 500, 1000)
      await sleep(1500)
    })
    bench.report({ id: 'storm-max-stall-ms', value: longest, unit: 'ms', note: `longest turn, ${stormKeys} keys` })
    say(`the storm and the measuring of turns took ${Math.round(cpuMs() - before)} ms of CPU time`)
  }
  const tableMb = await usedMb()
  await readAll(large[0]!, size - hotCount, (index) => `product:${hotCount + index}`)
  hotCount = size
  await sleep(3000)
  const share = await restShare()
  const mb = await usedMb()
  if (size === sizes[0]) baseMb = mb
  const name = size >= 1000 ? `${size / 1000}k` : String(size)
  bench.report({ id: `rest-cpu-share-${name}`, value: share, unit: 'of a core' })
  bench.report({ id: `rest-mb-${name}`, value: mb - baseMb, unit: 'MB', note: 'more than with 10, each key kept' })
  bench.report({ id: `rest-table-mb-${name}`, value: tableMb - baseMb, unit: 'MB', note: 'newest keys not read yet' })
  say(`${name}: resident ${Math.round(process.memoryUsage().rss / 1e6)} MB`)
}

// Both have counted as many keys before: what counting them has grown is not what is compared.
await readAll(small, most, (index) => `small:${index}`)
say('cold: GET of keys that are not hot, beside 10 hot keys and beside all of them')
const coldTotal = 5000
const coldKeys = Array.from({ length: 1000 }, (_, index) => `cold:${index}`)
const cold = async (redis: Redis) => {
  const before = cpuMs()
  await readAll(redis, coldTotal, (index) => coldKeys[index % coldKeys.length]!)
  return coldTotal / (cpuMs() - before)
}
for (let round = 0; round < 8; round++) for (const redis of [small, large[0]!]) await cold(redis)
const speeds = await interleaved(rounds(60, 300), { small: () => cold(small), large: () => cold(large[0]!) })
bench.report({
  id: `cold-cost-${most / 1000}k-vs-10`,
  ratio: medianRatio(speeds.small, speeds.large),
  of: `CPU time of a cold GET beside ${most} hot keys`,
  to: 'the same beside 10',
})
bench.report({ id: 'cold-get-per-cpu-ms', value: median(speeds.large), unit: 'GET/ms' })

for (const redis of [small, ...large]) {
  unprotect(redis)
  redis.disconnect()
}
await hub.stop()
await server.stop()
bench.done({ redis: '7', quick: String(isQuick) })
