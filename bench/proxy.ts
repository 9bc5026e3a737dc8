import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  freePort,
  type GuardedChild,
  redisCli,
  startChild,
  startRedis,
  TestHub,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { Bench, median, medianRatio, rounds, say } from './harness/bench.ts'

// The proxy beside direct Redis, twemproxy (Debian's nutcracker) and, where FIREBREAK_PREDIXY names its program, predixy with
// one thread; all asked by redis-benchmark in turn, round after round. CPU is what the kernel charged the process under test, user and system, divided by the requests.

const execute = promisify(execFile)
const bench = new Bench('proxy')

interface Contestant {
  readonly port: number
  readonly pid: number
}

interface Result {
  readonly perSecond: number
  readonly cpuUs: number
  readonly p50Ms: number
}

/** What the kernel charged the threads of a process so far: in nanoseconds, where `stat` counts by hundredths. */
function cpuSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ran = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
  return ran.reduce((sum, nanoseconds) => sum + Number(nanoseconds), 0) / 1e9
}

async function run(
  { port, pid }: Contestant,
  options: { pipeline: number; requests: number; clients?: number; key?: string },
): Promise<Result> {
  const { pipeline, requests, clients = 50, key } = options
  const command = key === undefined ? ['-r', '10000', 'GET', 'key:__rand_int__'] : ['GET', key]
  const before = cpuSeconds(pid)
  const args = ['-p', port, '-n', requests, '-c', clients, '-P', pipeline, '--csv', ...command].map(String)
  const { stdout } = await execute('redis-benchmark', args, { maxBuffer: 1 << 24 })
  const row = stdout.trim().split('\n').at(-1)!
  const cells = row.match(/"[^"]*"/g)!.map((cell) => cell.slice(1, -1))
  const [perSecond, , , p50Ms] = cells.slice(-7).map(Number)
  return { perSecond: perSecond!, cpuUs: ((cpuSeconds(pid) - before) * 1e6) / requests, p50Ms: p50Ms! }
}

/** Each contestant in turn, in alternating order. */
async function compare<Name extends string>(
  contestants: Record<Name, Contestant>,
  count: number,
  options: Parameters<typeof run>[1],
): Promise<Record<Name, { perSecond: number[]; cpuUs: number[]; p50Ms: number[] }>> {
  const names = Object.keys(contestants) as Name[]
  const results = Object.fromEntries(
    names.map((name) => [name, { perSecond: [], cpuUs: [], p50Ms: [] }]),
  ) as unknown as Record<Name, { perSecond: number[]; cpuUs: number[]; p50Ms: number[] }>
  for (let index = 0; index < count; index++) {
    for (const name of index % 2 === 0 ? names : [...names].reverse()) {
      const { perSecond, cpuUs, p50Ms } = await run(contestants[name], options)
      results[name].perSecond.push(perSecond)
      results[name].cpuUs.push(cpuUs)
      results[name].p50Ms.push(p50Ms)
    }
  }
  for (const name of names) {
    const { perSecond, cpuUs, p50Ms } = results[name]
    say(
      `P${options.pipeline} ${name}: ${Math.round(median(perSecond))}/s, ${median(cpuUs).toFixed(2)} µs CPU, p50 ${median(p50Ms)} ms`,
    )
  }
  return results
}

const hotPipelines = [1, 16, 64] as const
const children: GuardedChild[] = []

async function startTwemproxy(redisPort: number): Promise<Contestant> {
  const [port, statsPort] = [await freePort(), await freePort()]
  const file = join(temporaryFolder('nutcracker'), 'nutcracker.yml')
  writeFileSync(
    file,
    `alpha:\n  listen: 127.0.0.1:${port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  servers:\n   - 127.0.0.1:${redisPort}:1\n`,
  )
  const child = startChild('nutcracker', ['-c', file, '-s', String(statsPort)])
  children.push(child)
  await waitFor(() =>
    redisCli(port, 'GET', 'x').then(
      () => true,
      () => false,
    ),
  )
  return { port, pid: child.pid }
}

/** A proxy in C++; undefined where its program is not given. */
async function startPredixy(redisPort: number): Promise<Contestant | undefined> {
  const program = process.env['FIREBREAK_PREDIXY']
  if (program === undefined) return undefined
  const port = await freePort()
  const file = join(temporaryFolder('predixy'), 'predixy.conf')
  writeFileSync(
    file,
    `Bind 127.0.0.1:${port}
WorkerThreads 1
Authority {
  Auth {
    Mode admin
  }
}
StandaloneServerPool {
  Databases 16
  Hash crc16
  HashTag "{}"
  Distribution modula
  RefreshMethod fixed
  Group shard {
    + 127.0.0.1:${redisPort}
  }
}
`,
  )
  const child = startChild(program, [file])
  children.push(child)
  await waitFor(() =>
    redisCli(port, 'GET', 'x').then(
      () => true,
      () => false,
    ),
  )
  return { port, pid: child.pid }
}

/** Ours against predixy with one pipeline: requests in the same time, and CPU of a request. */
async function againstPredixy(ours: Contestant, predixy: Contestant, count: number): Promise<void> {
  for (const [pipeline, requests] of [
    [1, rounds(20_000, 100_000)],
    [16, rounds(200_000, 1_000_000)],
    [64, rounds(200_000, 1_000_000)],
  ] as const) {
    const found = await compare({ predixy, ours }, count, { pipeline, requests })
    const of = { of: 'ours', to: 'predixy' }
    bench.report({
      id: `p${pipeline}-vs-predixy`,
      ratio: medianRatio(found.ours.perSecond, found.predixy.perSecond),
      ...of,
    })
    bench.report({
      id: `p${pipeline}-cpu-vs-predixy`,
      ratio: medianRatio(found.ours.cpuUs, found.predixy.cpuUs),
      ...of,
    })
  }
}

async function startOurs(redisPort: number, options: Record<string, unknown> = {}): Promise<Contestant> {
  const file = fileURLToPath(new URL('./proxy-process.mjs', import.meta.url))
  const settings = JSON.stringify({ upstream: `redis://127.0.0.1:${redisPort}`, port: 0, ...options })
  const child = startChild(process.execPath, [file, settings])
  children.push(child)
  const [, port] = await child.printed(/listening (\d+)/)
  return { port: Number(port), pid: child.pid }
}

/**
 * CPU with counting over that without, of the same proxy but for its shield, both warmed alike.
 *
 * A difference of a few hundredths needs many rounds, and several pairs of processes: where the system happened to put the
 * memory of one makes some hundredths of a difference for as long as it lives. Rounds are short: a neighbour on the same
 * processor core makes everything half as fast for some tenths of a second, and both should meet it.
 */
async function countingCost(redisPort: number, shield: object): Promise<number> {
  const plainUs: number[] = []
  const countingUs: number[] = []
  for (let pair = 0; pair < rounds(1, 6); pair++) {
    const plain = await startOurs(redisPort)
    const counting = await startOurs(redisPort, { shield })
    for (let time = 0; time < 4; time++) {
      for (const contestant of [counting, plain]) await run(contestant, { pipeline: 16, requests: 300_000 })
    }
    const results = await compare({ plain, counting }, rounds(6, 16), {
      pipeline: 16,
      requests: 200_000,
    })
    plainUs.push(...results.plain.cpuUs)
    countingUs.push(...results.counting.cpuUs)
    await Promise.all(children.splice(-2).map((child) => child.stop(500)))
  }
  return medianRatio(countingUs, plainUs)
}

const redis = await startRedis({ args: ['--enable-debug-command', 'yes'] })
const hub = await TestHub.start()
// A hub is a process elsewhere: what it does with reports must not take the processor from those under test.
hub.readsReports = false
hub.heartbeatMs = 1000
try {
  await execute('redis-benchmark', [
    '-p',
    String(redis.port),
    '-n',
    '60000',
    '-P',
    '50',
    '-r',
    '10000',
    '-q',
    'SET',
    'key:__rand_int__',
    'x'.repeat(64),
  ])
  await redis.cli('SET', 'hot', 'x'.repeat(100))
  const direct: Contestant = { port: redis.port, pid: redis.child.pid }
  const twemproxy = await startTwemproxy(redis.port)
  const predixy = await startPredixy(redis.port)
  const ours = await startOurs(redis.port)
  const raw = await startOurs(redis.port, { transport: 'raw' })
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'bench', tableFile: false }

  // Nobody is measured cold: a process that was just started compiles while it answers.
  for (const contestant of [direct, twemproxy, ours, raw, ...(predixy === undefined ? [] : [predixy])]) {
    for (const pipeline of [1, 16])
      await run(contestant, { pipeline, requests: rounds(30_000, 100_000) * Math.min(pipeline, 8) })
  }
  const count = rounds(3, 11)
  const p1 = await compare({ direct, twemproxy, ours, raw }, count, { pipeline: 1, requests: rounds(20_000, 100_000) })
  bench.report({
    id: 'p1-cpu-vs-twemproxy',
    ratio: medianRatio(p1.ours.cpuUs, p1.twemproxy.cpuUs),
    of: 'CPU of the proxy',
    to: 'twemproxy',
  })
  bench.report({
    id: 'p1-raw-cpu-vs-twemproxy',
    ratio: medianRatio(p1.raw.cpuUs, p1.twemproxy.cpuUs),
    of: 'CPU of the proxy on raw handles',
    to: 'twemproxy',
  })
  bench.report({
    id: 'p1-vs-twemproxy',
    ratio: medianRatio(p1.ours.perSecond, p1.twemproxy.perSecond),
    of: 'the proxy',
    to: 'twemproxy',
  })

  const p16 = await compare({ direct, twemproxy, ours }, count, { pipeline: 16, requests: rounds(200_000, 1_000_000) })
  bench.report({
    id: 'p16-cpu-vs-twemproxy',
    ratio: medianRatio(p16.ours.cpuUs, p16.twemproxy.cpuUs),
    of: 'CPU of the proxy',
    to: 'twemproxy',
  })
  bench.report({
    id: 'p16-vs-direct',
    ratio: medianRatio(p16.ours.perSecond, p16.direct.perSecond),
    of: 'the proxy',
    to: 'direct Redis',
  })
  bench.report({
    id: 'p16-vs-twemproxy',
    ratio: medianRatio(p16.ours.perSecond, p16.twemproxy.perSecond),
    of: 'the proxy',
    to: 'twemproxy',
  })

  const p64 = await compare({ direct, ours }, count, { pipeline: 64, requests: rounds(300_000, 2_000_000) })
  bench.report({
    id: 'p64-vs-direct',
    ratio: medianRatio(p64.ours.perSecond, p64.direct.perSecond),
    of: 'the proxy',
    to: 'direct Redis',
  })

  if (predixy !== undefined) await againstPredixy(ours, predixy, count)

  bench.report({
    id: 'counting-cost',
    ratio: await countingCost(redis.port, shield),
    of: 'CPU with counting',
    to: 'without',
  })

  const one = await compare({ direct, twemproxy, ours }, count, {
    pipeline: 1,
    clients: 1,
    requests: rounds(4000, 30_000),
  })
  const added = (proxied: readonly number[]) => median(proxied.map((p50, index) => p50 - one.direct.p50Ms[index]!))
  bench.report({
    id: 'added-p50-vs-twemproxy',
    ratio: added(one.ours.p50Ms) / added(one.twemproxy.p50Ms),
    of: 'added p50 of one connection',
    to: 'twemproxy',
  })

  // Hot for longer than the slowest machine takes.
  hub.heat('main', ['hot'], { until: hub.now() + 3_600_000 })
  const hot = hotPipelines.map((pipeline) => ({
    pipeline,
    direct: [] as number[],
    ours: [] as number[],
    asked: 0,
    seen: 0,
  }))
  // Several processes, for the same reason as above.
  for (let nth = 0; nth < rounds(1, 4); nth++) {
    const keeping = await startOurs(redis.port, { shield })
    await waitFor(async () => {
      await redisCli(keeping.port, 'GET', 'hot')
      return /firebreak_local_hits:[1-9]/.test(await redisCli(keeping.port, 'FIREBREAK', 'INFO'))
    })
    await run(keeping, { pipeline: 16, requests: rounds(200_000, 500_000), key: 'hot' })
    for (const part of hot) {
      const requests = rounds(20_000, 60_000) * Math.min(part.pipeline, 20)
      await redis.cli('CONFIG', 'RESETSTAT')
      const results = await compare({ direct, keeping }, rounds(3, 4), {
        pipeline: part.pipeline,
        requests,
        key: 'hot',
      })
      const gets = Number(/cmdstat_get:calls=(\d+)/.exec(await redis.cli('INFO', 'commandstats'))?.[1] ?? 0)
      part.direct.push(...results.direct.perSecond)
      part.ours.push(...results.keeping.perSecond)
      part.asked += requests * results.direct.perSecond.length
      part.seen += gets
    }
    await children.pop()!.stop(500)
  }
  for (const { pipeline, direct: directly, ours: fromProxy, asked, seen } of hot) {
    bench.report({
      id: `hot-p${pipeline}-vs-direct`,
      ratio: medianRatio(fromProxy, directly),
      of: 'a hot key from the proxy',
      to: 'direct Redis',
    })
    bench.report({
      id: `hot-p${pipeline}-seen`,
      value: Math.max(0, (seen - asked) / asked) * 100,
      unit: '% of the proxy’s requests that Redis saw',
    })
  }
} finally {
  await Promise.all(children.map((child) => child.stop(500)))
  await hub.kill()
  await redis.stop()
}
bench.done({ redis: '7.0', twemproxy: 'nutcracker 0.5' })
