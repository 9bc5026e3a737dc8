import { protect, shieldOf, unprotect } from '@firebreak/client'
import { startHub } from '@firebreak/hub'
import { type RedisServer, startMariadb, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { parseRowMapping, ReplicaStream } from '@firebreak/watch'
import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import { Bench, interleaved, isQuick, median, medianRatio, quantile, rounds, say } from './harness/bench.ts'

/**
 * What watching costs Redis: CPU seconds of redis-server per operation (INFO's used_cpu) with and without it, turn by
 * turn on the same servers; and how long a commit takes through binlog, Redis and lane to a client.
 */
const bench = new Bench('watch')

async function cpuSeconds(redis: Redis): Promise<number> {
  const info = await redis.info('cpu')
  const read = (name: string) => Number(info.match(new RegExp(`${name}:([\\d.]+)`))![1])
  return read('used_cpu_user') + read('used_cpu_sys')
}

/** CPU seconds of the server per operation of `work`. */
async function cpuPerOperation(redis: Redis, operations: number, work: () => Promise<void>): Promise<number> {
  const before = await cpuSeconds(redis)
  await work()
  return ((await cpuSeconds(redis)) - before) / operations
}

/** Pipelines of 50: enough to keep the server busy, few enough for its answers to stay small. */
async function load(
  redis: Redis,
  operations: number,
  add: (pipeline: ReturnType<Redis['pipeline']>, n: number) => void,
) {
  for (let at = 0; at < operations; ) {
    const pipeline = redis.pipeline()
    for (let count = 0; count < 50; count++) add(pipeline, at++)
    await pipeline.exec()
  }
}

async function tracking(server: RedisServer): Promise<void> {
  say('tracking: 9 reads of 10 among 10,000 keys, the rest writes of them, 100 keys hot and tracked')
  const redis = new Redis(server.port)
  const keys = Array.from({ length: 10_000 }, (_, index) => `k${index}`)
  await load(redis, keys.length, (pipeline, n) => void pipeline.set(keys[n]!, 'x'.repeat(100)))
  const hub = await TestHub.start()
  hub.heat('main', keys.slice(0, 100), { until: hub.now() + 3_600_000 })
  const options = {
    hubs: [hub.url],
    serviceId: 'bench',
    redisClusterId: 'main',
    tableFile: false,
    canaryMs: 0,
  } as const
  let guarded: Redis | undefined
  const setTracked = async (isTracked: boolean) => {
    if (isTracked === (guarded !== undefined)) return
    if (guarded === undefined) {
      const client = protect(new Redis(server.port), options)
      guarded = client
      await waitFor(() => shieldOf(client)?.isConnected)
      await waitFor(async () => {
        await Promise.all(keys.slice(0, 100).map((key) => client.get(key)))
        return (await redis.info('stats')).includes('tracking_total_keys:100')
      })
    } else {
      unprotect(guarded)
      guarded.disconnect()
      guarded = undefined
    }
  }
  // The hot keys of a protected fleet are written now and then, and each write is read again by who tracks it.
  const operations = rounds(20_000, 60_000)
  const run = async (isTracked: boolean) => {
    await setTracked(isTracked)
    return cpuPerOperation(redis, operations, async () => {
      await load(redis, operations, (pipeline, n) => {
        const key = keys[(n * 7919) % keys.length]!
        if (n % 10 === 0) pipeline.set(key, 'y'.repeat(100))
        else pipeline.get(key)
        if (n % 100 === 0 && guarded !== undefined) void guarded.get(keys[n % 100]!)
      })
    })
  }
  const costs = await interleaved(rounds(9, 21), { tracked: () => run(true), plain: () => run(false) })
  bench.report({
    id: 'tracking-cpu-ratio',
    ratio: medianRatio(costs.tracked, costs.plain),
    of: "redis-server's CPU per operation while 100 hot keys are tracked",
    to: 'while none are',
  })
  await setTracked(false)
  await hub.kill()
  redis.disconnect()
}

async function replica(server: RedisServer): Promise<void> {
  say('replica stream: SET of 100 bytes')
  const redis = new Redis(server.port)
  let stream: ReplicaStream | undefined
  let seen = 0
  const setFollowed = async (isFollowed: boolean) => {
    await stream?.close()
    stream = undefined
    // The backlog alone costs something and stays; both sides have it.
    if (!isFollowed) return
    const address = { host: server.host, port: server.port }
    stream = new ReplicaStream({ address }, { onChange: () => void seen++ })
    stream.start()
    const before = seen
    await waitFor(() => stream!.state.kind === 'live', { timeoutMs: 20_000 })
    await redis.set('mark', '1')
    // The first change of a stream is its flush.
    await waitFor(() => seen >= before + 2)
  }
  const operations = rounds(20_000, 60_000)
  const run = async (isFollowed: boolean) => {
    await setFollowed(isFollowed)
    const before = seen
    return cpuPerOperation(redis, operations, async () => {
      await load(redis, operations, (pipeline, n) => void pipeline.set(`k${n % 10_000}`, 'x'.repeat(100)))
      if (isFollowed) await waitFor(() => seen >= before + operations)
    })
  }
  const costs = await interleaved(rounds(7, 21), { followed: () => run(true), plain: () => run(false) })
  bench.report({
    id: 'replica-cpu-ratio',
    ratio: medianRatio(costs.followed, costs.plain),
    of: "redis-server's CPU per write while a replica stream is read",
    to: 'while none is',
    note: `${seen.toLocaleString('en-US')} changes seen`,
  })
  await stream?.close()
  redis.disconnect()
}

async function binlog(server: RedisServer): Promise<void> {
  say('binlog: from the answer to a commit until a client has the new value in its memory')
  const database = await startMariadb({ args: ['--log-bin=binlog', '--binlog-format=ROW', '--server-id=1'] })
  const { host, port, user } = database
  await database.sql('CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(40)); INSERT INTO product VALUES (1, "0")')
  const strategy = { strategy: 'LocalCache', consistent: false }
  const hub = await startHub({
    logLevel: 'silent',
    initialRules: [{ id: 'hot', key: 'product:1', threshold: 1, strategy }],
    watchers: [
      {
        kind: 'binlog',
        redisClusterId: 'main',
        connection: { host, port, user, database: 'test' },
        mapping: parseRowMapping({ tables: { 'test.product': [{ key: 'product:{id}', value: { column: 'name' } }] } }),
        redis: server.url,
      },
    ],
  })
  await waitFor(() => hub.core.watchers.views()[0]?.state === 'live', { timeoutMs: 20_000 })
  const redis = protect(new Redis(server.port), {
    hubs: [hub.url],
    serviceId: 'bench',
    redisClusterId: 'main',
    tableFile: false,
    canaryMs: 0,
  })
  const client = await createConnection({ host, port, user, database: 'test' })
  const commit = (name: string) => client.query('UPDATE product SET name = ? WHERE id = 1', [name])
  await commit('first')
  await waitFor(async () => (await redis.get('product:1')) === 'first', { timeoutMs: 20_000 })
  const times: number[] = []
  for (let round = 0; round < rounds(200, 1000); round++) {
    await commit(`v${round}`)
    const committedAt = performance.now()
    while ((await redis.get('product:1')) !== `v${round}`) await new Promise((resolve) => setImmediate(resolve))
    times.push(performance.now() - committedAt)
  }
  bench.report({
    id: 'binlog-p50-ms',
    value: median(times),
    unit: 'ms',
    note: `p99 ${quantile(times, 0.99).toFixed(1)} ms of ${times.length} commits`,
  })
  client.destroy()
  unprotect(redis)
  redis.disconnect()
  await hub.close()
  await database.stop()
}

const server = await startRedis({ args: ['--repl-diskless-sync-delay', '0', '--repl-backlog-size', '8mb'] })
await tracking(server)
await replica(server)
await binlog(server)
const version = (await server.cli('INFO', 'server')).match(/redis_version:(\S+)/)![1]!
await server.stop()
bench.done({ redis: version, quick: String(isQuick) })
