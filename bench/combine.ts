import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { protect, shieldOf, unprotect } from '@firebreak/client'
import type { CombineStrategy } from '@firebreak/core'
import { type RedisServer, redisCli, startChild, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { Bench, interleaved, median, medianRatio, rounds, say } from './harness/bench.ts'

// Many writers increment one counter: through the proxy (redis-benchmark asks it) and in one process (ioredis), the same
// once with increments combined and once plainly, turn by turn. What Redis saw is what it counted itself.

const execute = promisify(execFile)
const bench = new Bench('combine')
const writers = [1, 16, 256] as const
const strategy: CombineStrategy = { strategy: 'Combine', maxCombined: 1024 }
/** The counter whose increments are combined, and one like it whose are not. */
const keys = { combined: 'counter:combined', plain: 'counter:plain' } as const

/** Increments that Redis has carried out. */
async function seenBy(redis: RedisServer): Promise<number> {
  const info = await redis.cli('INFO', 'commandstats')
  let seen = 0
  for (const [, calls] of info.matchAll(/cmdstat_(?:incr|incrby):calls=(\d+)/g)) seen += Number(calls)
  return seen
}

/** What the kernel charged a process so far, in microseconds. */
function cpuUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ran = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
  return ran.reduce((sum, nanoseconds) => sum + Number(nanoseconds), 0) / 1e3
}

/** So many increments of one key by so many writers; gives their speed. */
type Run = (key: string, clients: number, requests: number) => Promise<number>

/** Compares the two counters under one way of writing. */
async function compare(
  redis: RedisServer,
  name: string,
  run: Run,
  requestsOf: (clients: number) => number,
): Promise<void> {
  for (const clients of writers) {
    const requests = requestsOf(clients)
    const seen = { combined: [] as number[], plain: [] as number[] }
    const cpu = { combined: [] as number[], plain: [] as number[] }
    const measured = (kind: 'combined' | 'plain') => async () => {
      const before = await seenBy(redis)
      const cpuBefore = cpuUs(redis.child.pid)
      const perSecond = await run(keys[kind], clients, requests)
      seen[kind].push((await seenBy(redis)) - before)
      cpu[kind].push((cpuUs(redis.child.pid) - cpuBefore) / requests)
      return perSecond
    }
    const speeds = await interleaved(rounds(3, 9), { combined: measured('combined'), plain: measured('plain') })
    say(
      `${name}, ${clients} writers: ${Math.round(median(speeds.combined))}/s combined, ${Math.round(median(speeds.plain))}/s plain; Redis ${median(cpu.combined).toFixed(2)} and ${median(cpu.plain).toFixed(2)} µs CPU each`,
    )
    bench.report({
      id: `${name}-${clients}-seen`,
      value: (median(seen.combined) / requests) * 100,
      unit: '% of the increments that Redis saw as commands',
    })
    bench.report({
      id: `${name}-${clients}-vs-plain`,
      ratio: medianRatio(speeds.combined, speeds.plain),
      of: 'increments a second, combined',
      to: 'plain',
    })
    bench.report({
      id: `${name}-${clients}-redis-cpu`,
      ratio: medianRatio(cpu.combined, cpu.plain),
      of: 'CPU of Redis for an increment, combined',
      to: 'plain',
    })
  }
}

const redis = await startRedis()
const hub = await TestHub.start()
hub.readsReports = false
hub.heartbeatMs = 1000
const file = fileURLToPath(new URL('./proxy-process.mjs', import.meta.url))
const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'bench', tableFile: false } as const
const child = startChild(process.execPath, [file, JSON.stringify({ upstream: redis.url, port: 0, shield })])
const client = new Redis(redis.port)
try {
  hub.heat('main', [keys.combined], { strategy, until: hub.now() + 3_600_000 })
  const port = Number((await child.printed(/listening (\d+)/))[1])
  const throughProxy: Run = async (key, clients, requests) => {
    const args = ['-p', port, '-n', requests, '-c', clients, '--csv', 'INCR', key].map(String)
    const { stdout } = await execute('redis-benchmark', args, { maxBuffer: 1 << 24 })
    const cells = stdout
      .trim()
      .split('\n')
      .at(-1)!
      .match(/"[^"]*"/g)!
    return Number(cells.at(-7)!.slice(1, -1))
  }
  await waitFor(async () => {
    await throughProxy(keys.combined, 50, 2000)
    return /firebreak_combined:[1-9]/.test(await redisCli(port, 'FIREBREAK', 'INFO'))
  })
  for (const key of Object.values(keys)) await throughProxy(key, 64, rounds(100_000, 400_000))
  await compare(redis, 'proxy', throughProxy, (clients) =>
    rounds(clients === 1 ? 6000 : 60_000, clients === 1 ? 30_000 : 300_000),
  )

  protect(client, { ...shield, serviceId: 'bench-client', canaryMs: 0 })
  await waitFor(() => shieldOf(client)?.isConnected)
  const inProcess: Run = async (key, clients, requests) => {
    let left = requests
    const began = performance.now()
    const writer = async () => {
      while (left-- > 0) await client.incr(key)
    }
    await Promise.all(Array.from({ length: clients }, writer))
    return (requests / (performance.now() - began)) * 1000
  }
  await waitFor(async () => {
    const before = await seenBy(redis)
    await inProcess(keys.combined, 50, 2000)
    return (await seenBy(redis)) - before < 1000
  })
  for (const key of Object.values(keys)) await inProcess(key, 64, rounds(50_000, 200_000))
  await compare(redis, 'client', inProcess, (clients) =>
    rounds(clients === 1 ? 6000 : 40_000, clients === 1 ? 30_000 : 200_000),
  )
} finally {
  unprotect(client)
  client.disconnect()
  await child.stop(500)
  await hub.kill()
  await redis.stop()
}
bench.done({ redis: '7.0' })
