// Finders against redis-cli's own, on a real server in the same run, while another client goes on; and reading a dump.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { sourceArgs, startRedis } from '@firebreak/testkit'
import { Bench, interleaved, isQuick, median, medianRatio, rounds, say } from './harness/bench.ts'

const bench = new Bench('find')
const keyCount = isQuick ? 200_000 : 1_000_000
const dumpKeys = 1_000_000
const scanner = fileURLToPath(new URL('./find/scan.ts', import.meta.url))

/** Fills a server with keys of all types: half short strings, the rest hashes, lists, sets, sorted sets, long strings. */
const fill = `
for i = ARGV[1], ARGV[2] do
  local r = i % 10
  if r < 5 then redis.call('SET', 'user:' .. i .. ':name', string.rep('v', i % 200))
  elseif r == 5 then redis.call('HSET', 'session:' .. i, 'name', 'n' .. i, 'mail', i .. '@example.org', 'age', i % 90, 'cart', i * 3)
  elseif r == 6 then redis.call('RPUSH', 'queue:' .. i, 'a' .. i, 'b' .. i, 'c' .. i, 'd' .. i, 'e' .. i, 'f' .. i)
  elseif r == 7 then redis.call('SADD', 'tags:' .. i, i, i + 1, i + 2, i + 3, i + 4)
  elseif r == 8 then redis.call('ZADD', 'board:' .. i, 1, 'x' .. i, 2, 'y' .. i, 3, 'z' .. i)
  else redis.call('SET', 'page:' .. i, string.rep('lorem ipsum ', i % 60 + 1), 'EX', 100000) end
end`

async function filled(keys: number, args: readonly string[]) {
  const server = await startRedis({ args })
  for (let from = 0; from < keys; from += 50_000) {
    await server.cli('EVAL', fill, '0', String(from), String(Math.min(keys, from + 50_000) - 1))
  }
  return server
}

/** Runs a program to its end: milliseconds of the whole process, and what it printed. */
function timed(program: string, args: readonly string[]): Promise<{ ms: number; output: string }> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now()
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let errors = ''
    child.stdout.on('data', (chunk) => {
      output += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      errors += String(chunk)
    })
    child.on('close', (code) =>
      code === 0
        ? resolve({ ms: performance.now() - startedAt, output })
        : reject(new Error(`${program} ${args.join(' ')}: ${errors}`)),
    )
  })
}

/** Another client's GETs, in a process of its own; `period` gives the median since the last call. */
function otherClient(port: number, key: string) {
  const file = fileURLToPath(new URL('./find/get-latency.ts', import.meta.url))
  const child = spawn(process.execPath, [...sourceArgs, file, String(port), key], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async period(): Promise<number> {
      child.stdin.write('\n')
      return (JSON.parse((await lines.next()).value as string) as { p50: number }).p50
    },
    stop: () => child.stdin.end(),
  }
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
/** A scan: the whole process where it scans a million keys; where it scans few, without the start of Node. */
async function finder(kind: 'hot' | 'big'): Promise<number> {
  const { ms, output } = await timed(process.execPath, [...sourceArgs, scanner, kind, String(server.port)])
  return isQuick ? Number(output) : ms
}

const server = await filled(keyCount, ['--maxmemory-policy', 'allkeys-lfu'])
say(`${keyCount} keys are in`)
const client = otherClient(server.port, 'user:0:name')
const latency = { idle: [] as number[], hot: [] as number[], big: [] as number[] }

/** Runs a finder between two idle periods of the other client. */
async function beside(kind: 'hot' | 'big', work: () => Promise<number>): Promise<number> {
  await client.period()
  await wait(400)
  latency.idle.push(await client.period())
  const ms = await work()
  latency[kind].push(await client.period())
  return keyCount / (ms / 1000)
}
const cli = async (flag: string) => {
  const { ms } = await timed('redis-cli', ['-p', String(server.port), flag])
  return keyCount / (ms / 1000)
}

const speeds = await interleaved(rounds(3, 5), {
  hot: () => beside('hot', () => finder('hot')),
  hotkeys: () => cli('--hotkeys'),
  big: () => beside('big', () => finder('big')),
  memkeys: () => cli('--memkeys'),
})
client.stop()
await server.stop()
const rise = (kind: 'hot' | 'big') =>
  `p50 of another client's GET ${(median(latency[kind]) / median(latency.idle)).toFixed(2)}× idle${isQuick ? `; ${keyCount} keys, without the start of Node` : ''}`
bench.report({
  id: 'hot-scan-vs-cli',
  ratio: medianRatio(speeds.hot, speeds.hotkeys),
  of: 'find hot --scan',
  to: 'redis-cli --hotkeys',
  note: `${Math.round(median(speeds.hot))} keys/s; ${rise('hot')}`,
})
bench.report({
  id: 'big-scan-vs-cli',
  ratio: medianRatio(speeds.big, speeds.memkeys),
  of: 'find big --scan',
  to: 'redis-cli --memkeys',
  note: `${Math.round(median(speeds.big))} keys/s; ${rise('big')}`,
})
bench.report({
  id: 'hot-scan-get-p50',
  ratio: median(latency.hot) / median(latency.idle),
  of: 'p50 of GET during the scan',
  to: 'idle',
})
bench.report({
  id: 'big-scan-get-p50',
  ratio: median(latency.big) / median(latency.idle),
  of: 'p50 of GET during the scan',
  to: 'idle',
})

const dumpServer = await filled(dumpKeys, [])
await dumpServer.cli('SAVE')
await dumpServer.stop()
const reader = fileURLToPath(new URL('./find/read-dump.ts', import.meta.url))
const readings: { seconds: number; rssMb: number; keys: number }[] = []
for (let round = 0; round < rounds(3, 5); round++) {
  const child = spawn(process.execPath, [...sourceArgs, reader, `${dumpServer.folder}/dump.rdb`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  for await (const chunk of child.stdout) output += String(chunk)
  readings.push(JSON.parse(output))
}
if (readings.some(({ keys }) => keys !== dumpKeys)) throw new Error('the dump was not read whole')
bench.report({
  id: 'rdb-seconds',
  value: median(readings.map(({ seconds }) => seconds)),
  unit: 's',
  note: `${dumpKeys} keys`,
})
bench.report({
  id: 'rdb-rss-mb',
  value: median(readings.map(({ rssMb }) => rssMb)),
  unit: 'MB',
  note: 'peak of the process',
})
bench.done({
  redis: (await import('node:child_process'))
    .execFileSync('redis-server', ['--version'])
    .toString()
    .match(/v=(\S+)/)![1]!,
})
