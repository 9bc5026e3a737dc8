import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { BoundedCache } from '@firebreak/core'
import { loadTrace, startRedis, startSource, traceNames, waitFor, zipfTrace } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'
import { createClient } from 'redis'
import { hitRatio } from './cache/hit-ratio.ts'
import { type GetClient, getsPerSecond } from './cache/hot-get.ts'
import { Bench, interleaved, isQuick, median, medianRatio, rounds, say } from './harness/bench.ts'

/**
 * What a hot key's read costs: by `peek`, and by the normal API of both client libraries against the bare client on the
 * same server, turn by turn. Then the cache itself: its speed against lru-cache, and how many requests of real traces
 * its default policy answers, against LRU.
 */
const bench = new Bench('cache')
const key = 'product:0'

const server = await startRedis()
const hub = startSource(new URL('./client/hub-process.ts', import.meta.url), [], { stdio: ['pipe', 'pipe', 'pipe'] })
const [, hubUrl] = await hub.printed(/hub (\S+)/)

async function openNodeRedis() {
  const client = createClient({ socket: { host: '127.0.0.1', port: server.port } })
  client.on('error', () => {})
  await client.connect()
  return client
}

const guard = <Client extends object>(client: Client): Client =>
  protect(client, { hubs: [hubUrl!], serviceId: 'bench', redisClusterId: 'main', tableFile: false })
const bare = { ioredis: new Redis(server.port), nodeRedis: await openNodeRedis() }
const guarded = { ioredis: guard(new Redis(server.port)), nodeRedis: guard(await openNodeRedis()) }
await bare.ioredis.set(key, 'x'.repeat(100))
for (const client of Object.values(guarded)) await waitFor(() => shieldOf(client)?.isConnected)
hub.process.stdin!.write(`heat ${key}\n`)
for (const client of Object.values(guarded)) {
  await waitFor(async () => {
    await (client as GetClient).get(key)
    return typeof peek(client, key) === 'string'
  })
}

say('peek')
const peeks = 100_000
const peekSpeeds: number[] = []
let missed = 0
for (let round = 0; round < rounds(60, 200); round++) {
  let length = 0
  const before = performance.now()
  for (let index = 0; index < peeks; index++) length += peek(guarded.ioredis, key)?.length ?? 0
  const speed = (peeks / (performance.now() - before)) * 1000
  // A peek that finds nothing is quicker: only a round in which each gave the value counts.
  if (length === peeks * 100) peekSpeeds.push(speed)
  else missed++
  // Lets the watcher breathe: its lease is what a peek depends on.
  await new Promise((resolve) => setTimeout(resolve, 5))
}
if (missed > 0) say(`${missed} rounds of peek are left out: the value was not there all the time`)
bench.report({ id: 'peek-per-second', value: median(peekSpeeds), unit: 'peek/s' })

const names = { ioredis: 'async-vs-bare-ioredis', nodeRedis: 'async-vs-bare-node-redis' } as const
for (const library of ['ioredis', 'nodeRedis'] as const) {
  say(`hot GET with ${library}`)
  const clients = { bare: bare[library] as GetClient, guarded: guarded[library] as GetClient }
  // Short rounds, and many: what else the machine does then falls into few of them.
  const totals = { bare: 3000, guarded: 60_000 }
  for (let round = 0; round < 5; round++) {
    await getsPerSecond(clients.bare, key, totals.bare)
    await getsPerSecond(clients.guarded, key, totals.guarded)
  }
  const speeds = await interleaved(rounds(30, 100), {
    bare: () => getsPerSecond(clients.bare, key, totals.bare),
    guarded: () => getsPerSecond(clients.guarded, key, totals.guarded),
  })
  bench.report({
    id: names[library],
    ratio: medianRatio(speeds.guarded, speeds.bare),
    of: `a hot key's await get() a second (${Math.round(median(speeds.guarded)).toLocaleString('en-US')})`,
    to: `the bare client's (${Math.round(median(speeds.bare)).toLocaleString('en-US')})`,
  })
}
for (const client of Object.values(guarded)) unprotect(client)
for (const { ioredis, nodeRedis } of [bare, guarded]) {
  ioredis.disconnect()
  nodeRedis.destroy()
}
await hub.stop()
await server.stop()

say('SIEVE and lru-cache at 10,000 entries')
const entries = 10_000
const load = zipfTrace(200_000, entries * 4, 1)
const requests = Array.from(load.ids, (id) => load.keys[id]!)
const sieve = new BoundedCache<string>({ maxEntries: entries, maxBytes: Number.MAX_SAFE_INTEGER, policy: 'SIEVE' })
const lru = new LRUCache<string, string>({ max: entries })
/** Requests per CPU second that a cache takes, each a look-up and, where it misses, an insertion. */
function requestsPerSecond(get: (key: string) => unknown, set: (key: string) => void): number {
  const before = process.cpuUsage()
  for (const wanted of requests) if (get(wanted) === undefined) set(wanted)
  const { user, system } = process.cpuUsage(before)
  return (requests.length / (user + system)) * 1e6
}
const runSieve = () =>
  requestsPerSecond(
    (wanted) => sieve.get(wanted),
    (wanted) => sieve.set(wanted, wanted, 1),
  )
const runLru = () =>
  requestsPerSecond(
    (wanted) => lru.get(wanted),
    (wanted) => lru.set(wanted, wanted),
  )
for (let round = 0; round < 5; round++) runSieve() + runLru()
const cacheSpeeds = await interleaved(rounds(40, 100), { sieve: runSieve, lru: runLru })
bench.report({
  id: 'sieve-vs-lru-cache',
  ratio: medianRatio(cacheSpeeds.sieve, cacheSpeeds.lru),
  of: `requests per CPU second to SIEVE at 10,000 entries (${Math.round(median(cacheSpeeds.sieve)).toLocaleString('en-US')})`,
  to: 'lru-cache',
})

say('hit ratios at 1 % of the keys')
const traces = traceNames().map(loadTrace)
if (traces.length === 0) say('no recorded traces (set FIREBREAK_TRACES): a generated Zipf trace stands for them')
const differences = (traces.length > 0 ? traces : [zipfTrace(500_000, 40_000, 0.9)]).map((trace) => {
  const size = Math.max(1, Math.round(trace.keys.length / 100))
  const own = hitRatio(trace, 'S3-FIFO', size)
  const rival = hitRatio(trace, 'LRU', size)
  say(`${trace.name}: ${size} entries, S3-FIFO ${own.toFixed(2)} %, LRU ${rival.toFixed(2)} %`)
  return own - rival
})
bench.report({ id: 's3fifo-minus-lru-min-points', value: Math.min(...differences), unit: 'points' })
const mean = differences.reduce((sum, difference) => sum + difference, 0) / differences.length
bench.report({ id: 's3fifo-minus-lru-mean-points', value: mean, unit: 'points' })
bench.done({ redis: '7', quick: String(isQuick) })
