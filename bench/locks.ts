// How long does a lock take when it is free, and how long does it lie idle between two holders?
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Locks } from '@firebreak/locks'
import { type GuardedChild, startRedis, startSource } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { Bench, interleaved, median, medianRatio, rounds, say } from './harness/bench.ts'
import { contend, contendReturning, handoffs, type Stay } from './locks/contend.ts'
import { type ContestantName, openContestants } from './locks/contestants.ts'

const bench = new Bench('locks')
const server = await startRedis()
const { take, close } = openContestants(server.port)
let names = 0

/** The least that a lock with an owner can be: SET NX PX, and a script that deletes what is ours. */
const raw = new Redis(server.port)
const deleteMine = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
const sha1 = (await raw.script('LOAD', deleteMine)) as string

const client = new Redis(server.port)
const locks = new Locks(client)
const lock = locks.getLock('free-firebreak')

async function perSecond(count: number, once: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  for (let index = 0; index < count; index++) await once()
  return (count / (performance.now() - startedAt)) * 1000
}

function pair(contestant: ContestantName): () => Promise<unknown> {
  const name = `free-${contestant}`
  return async () => (await take[contestant](name))()
}

// Many short rounds: a noisy moment then spoils few of them.
const pairs = 300
const free = await interleaved(rounds(41, 101), {
  raw: () =>
    perSecond(pairs, async () => {
      await raw.set('free-raw', 'owner', 'PX', 30_000, 'NX')
      await raw.evalsha(sha1, 1, 'free-raw', 'owner')
    }),
  firebreak: () =>
    perSecond(pairs, async () => {
      const handle = await lock.lock()
      await handle.unlock()
    }),
  'redis-semaphore': () => perSecond(pairs / 3, pair('redis-semaphore')),
  redlock: () => perSecond(pairs / 3, pair('redlock')),
})
for (const [name, speeds] of Object.entries(free)) {
  bench.report({ id: `uncontended-${name}`, value: median(speeds), unit: 'pairs/s' })
}
bench.report({
  id: 'uncontended-vs-raw',
  ratio: medianRatio(free.firebreak, free.raw),
  of: 'lock + unlock',
  to: 'SET NX PX + EVALSHA',
})

const waiters = 20
const batches = rounds(6, 20)
const handoffRounds = rounds(3, 7)

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The mean hand-off over several batches; in each a first holder keeps the lock until all waiters have come. */
async function meanHandoff(contestant: ContestantName, run: (name: string) => Promise<Stay[]>): Promise<number> {
  const gaps: number[] = []
  for (let batch = 0; batch < batches; batch++) {
    const name = `contended-${contestant}-${++names}`
    const release = await take[contestant](name)
    const running = run(name)
    await new Promise((resolve) => setTimeout(resolve, 30))
    await release()
    gaps.push(...handoffs(await running))
  }
  const meanMs = mean(gaps)
  say(`  ${contestant}: ${gaps.length} hand-offs, mean ${meanMs.toFixed(3)} ms`)
  return meanMs
}

say('one process, 20 waiters')
const inOneProcess = (contestant: ContestantName) => () =>
  meanHandoff(contestant, (name) => contend(take[contestant], name, waiters))
const one = await interleaved(handoffRounds, {
  firebreak: inOneProcess('firebreak'),
  'redis-semaphore': inOneProcess('redis-semaphore'),
})
// It polls every 200 ms: one round is enough to see where it stands.
const redlockInOne = await inOneProcess('redlock')()

say('one process, 20 tasks that come back at once')
const returningMs = rounds(400, 1500)
const sameTaskShares: number[] = []
const returningInOne = (contestant: ContestantName) => async () => {
  const name = `returning-${contestant}-${++names}`
  const { stays, sameTask } = await contendReturning(take[contestant], name, waiters, returningMs)
  if (contestant === 'redis-semaphore') sameTaskShares.push(sameTask / stays.length)
  return mean(handoffs(stays))
}
const returningOne = await interleaved(handoffRounds, {
  firebreak: returningInOne('firebreak'),
  'redis-semaphore': returningInOne('redis-semaphore'),
})

say('four processes, 5 waiters each')
const processes: GuardedChild[] = Array.from({ length: 4 }, () =>
  startSource(new URL('./locks/contender.ts', import.meta.url), [String(server.port)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  }),
)
await Promise.all(processes.map(({ process }) => once(process, 'message')))
async function runInFour(contestant: ContestantName, name: string, order: object = {}): Promise<Stay[]> {
  const answers = processes.map(({ process }) => once(process, 'message') as Promise<[Stay[]]>)
  for (const { process } of processes) process.send({ contestant, name, waiters: waiters / processes.length, ...order })
  return (await Promise.all(answers)).flatMap(([stays]) => stays)
}
const inFourProcesses = (contestant: ContestantName) => () =>
  meanHandoff(contestant, (name) => runInFour(contestant, name))
const four = await interleaved(handoffRounds, {
  firebreak: inFourProcesses('firebreak'),
  'firebreak-fair': inFourProcesses('firebreak-fair'),
  'redis-semaphore': inFourProcesses('redis-semaphore'),
})

say('four processes, 5 tasks each that come back at once')
const returningInFour = (contestant: ContestantName) => async () =>
  mean(handoffs(await runInFour(contestant, `returning-${contestant}-${++names}`, { returningMs })))
const returningFour = await interleaved(handoffRounds, {
  firebreak: returningInFour('firebreak'),
  'firebreak-fair': returningInFour('firebreak-fair'),
  'redis-semaphore': returningInFour('redis-semaphore'),
})

bench.report({ id: 'handoff-1-process-redlock', value: redlockInOne, unit: 'ms' })
for (const [name, values] of Object.entries(one)) {
  bench.report({ id: `handoff-1-process-${name}`, value: median(values), unit: 'ms' })
}
for (const [name, values] of Object.entries(four)) {
  bench.report({ id: `handoff-4-processes-${name}`, value: median(values), unit: 'ms' })
}
const to = "redis-semaphore's mean hand-off"
bench.report({
  id: 'handoff-1-process-vs-semaphore',
  ratio: medianRatio(one.firebreak, one['redis-semaphore']),
  of: 'mean hand-off',
  to,
})
bench.report({
  id: 'handoff-4-processes-vs-semaphore',
  ratio: medianRatio(four.firebreak, four['redis-semaphore']),
  of: 'mean hand-off',
  to,
})
bench.report({
  id: 'handoff-4-processes-fair-vs-semaphore',
  ratio: medianRatio(four['firebreak-fair'], four['redis-semaphore']),
  of: 'mean hand-off of the fair lock',
  to,
})

// The same with tasks that come back at once: see bench/locks/contend.ts.
const returning = 'mean hand-off, tasks come back at once'
const note = `redis-semaphore's releaser retook it itself in ${Math.round(median(sameTaskShares) * 100)} % of cases`
bench.report({
  id: 'returning-1-process-vs-semaphore',
  ratio: medianRatio(returningOne.firebreak, returningOne['redis-semaphore']),
  of: returning,
  to,
  note,
})
bench.report({
  id: 'returning-4-processes-vs-semaphore',
  ratio: medianRatio(returningFour.firebreak, returningFour['redis-semaphore']),
  of: returning,
  to,
})
bench.report({
  id: 'returning-4-processes-fair-vs-semaphore',
  ratio: medianRatio(returningFour['firebreak-fair'], returningFour['redis-semaphore']),
  of: `${returning}, fair lock`,
  to,
})

function version(name: string): string {
  return (
    JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), 'utf8')) as {
      version: string
    }
  ).version
}
const redisVersion = (await raw.info('server')).match(/redis_version:(\S+)/)?.[1] ?? 'unknown'
bench.done({
  redis: redisVersion,
  ioredis: version('ioredis'),
  'redis-semaphore': version('redis-semaphore'),
  redlock: version('redlock'),
})
for (const child of processes) child.process.disconnect()
await Promise.all([close(), locks.close()])
client.disconnect()
raw.disconnect()
await server.stop()
