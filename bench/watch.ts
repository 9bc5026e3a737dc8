import { protect, shieldOf, unprotect } from '@firebreak/client'
import { startHub } from '@firebreak/hub'
import { type RedisServer, startMariadb, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { parseRowMapping, ReplicaStream } from '@firebreak/watch'
import { Redis } from 'ioredis'
import { createConnection } from 'mysql2/promise'
import { Bench, interleaved, isQuick, median, medianRatio, quantile, rounds, say } from './harness/bench.ts'
import { PlainLoad } from './watch/plain-load.ts'

/**
 * What watching costs Redis: CPU seconds of redis-server per operation (INFO's used_cpu) with and without it, turn by
 * turn, under the load of fifty plain connections; and how long a commit takes through binlog, Redis and lane to a client.
 */
const bench = new Bench('watch')
const small = 'x'.repeat(100)

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

async function tracking(server: RedisServer): Promise<void> {
  say('tracking: 9 reads of 10 among 10,000 keys, the rest writes of them, 100 keys hot and tracked')
  const redis = new Redis(server.port)
  const load = await PlainLoad.open(server.port)
  const keys = Array.from({ length: 10_000 }, (_, index) => `k${index}`)
  await load.run(keys.length, (n) => ['SET', keys[n]!, small])
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
  const operations = rounds(10_000, 40_000)
  const run = async (isTracked: boolean) => {
    await setTracked(isTracked)
    // Whoever tracks the hot keys reads them all the time, so that each write of one costs a push and a read.
    const reading = setInterval(() => {
      for (const key of keys.slice(0, 100)) void guarded?.get(key)
    }, 10)
    const cost = await cpuPerOperation(redis, operations, () =>
      load.run(operations, (n) => {
        const key = keys[(n * 7919) % keys.length]!
        return n % 10 === 0 ? ['SET', key, small] : ['GET', key]
      }),
    )
    clearInterval(reading)
    return cost
  }
  const costs = await interleaved(rounds(21, 41), { tracked: () => run(true), plain: () => run(false) })
  bench.report({
    id: 'tracking-cpu-ratio',
    ratio: medianRatio(costs.tracked, costs.plain),
    of: "redis-server's CPU per operation while 100 hot keys are tracked",
    to: 'while none are',
  })
  await setTracked(false)
  await hub.kill()
  load.close()
  redis.disconnect()
}

/** A server that a stream follows all the time, against one that never had a replica and so keeps no backlog. */
async function replica(followed: RedisServer, plain: RedisServer): Promise<void> {
  say('replica stream: SET of 100 bytes')
  let seen = 0
  const address = { host: followed.host, port: followed.port }
  const stream = new ReplicaStream({ address }, { onChange: () => void seen++ })
  stream.start()
  await waitFor(() => stream.state.kind === 'live', { timeoutMs: 20_000 })
  const mark = new Redis(followed.port)
  // The first change of a stream is its flush; the second shows that it flows.
  await waitFor(async () => (await mark.set('mark', '1')) && seen >= 2)
  mark.disconnect()
  const operations = rounds(10_000, 40_000)
  const contestant = async (server: RedisServer) => {
    const redis = new Redis(server.port)
    const load = await PlainLoad.open(server.port)
    const run = () =>
      cpuPerOperation(redis, operations, () => load.run(operations, (n) => ['SET', `k${n % 10_000}`, small]))
    await run()
    const close = () => {
      load.close()
      redis.disconnect()
    }
    return { run, close }
  }
  const [one, other] = [await contestant(followed), await contestant(plain)]
  const costs = await interleaved(rounds(15, 41), { followed: one.run, plain: other.run })
  bench.report({
    id: 'replica-cpu-ratio',
    ratio: medianRatio(costs.followed, costs.plain),
    of: "redis-server's CPU per write while a replica stream is read",
    to: 'of a server without any replica',
    note: `${seen.toLocaleString('en-US')} changes seen`,
  })
  one.close()
  other.close()
  await stream.close()
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
const plain = await startRedis()
await replica(server, plain)
await plain.stop()
await binlog(server)
const version = (await server.cli('INFO', 'server')).match(/redis_version:(\S+)/)![1]!
await server.stop()
bench.done({ redis: version, quick: String(isQuick) })
