import type { RespValue } from '@firebreak/core/resp'
import { findHotByServer, findSlots } from '@firebreak/find'
import { hasCapability, redisKind, startCluster, startRedis } from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { expect, test } from 'vitest'
import { bulk, startFakeRedis } from './fake-redis.ts'

const ok = 'OK'

/** Redis 8.6: records on demand, by processor time and bytes. */
function redis86(args: readonly string[], isBusy = false): RespValue | undefined {
  switch (args.slice(0, 2).join(' ').toUpperCase()) {
    case 'INFO SERVER':
      return bulk('redis_version:8.6.0\r\nredis_mode:standalone\r\n')
    case 'INFO REPLICATION':
      return bulk('role:master\r\n')
    case 'CLIENT SETNAME':
    case 'HOTKEYS STOP':
    case 'HOTKEYS RESET':
      return ok
    case 'HOTKEYS START':
      return isBusy ? undefined : ok
    case 'HOTKEYS GET':
      return [
        [
          bulk('tracking-active'),
          1,
          bulk('sample-ratio'),
          1,
          bulk('all-commands-all-slots-us'),
          1000,
          bulk('by-cpu-time-us'),
          [bulk('hot'), 700, bulk('warm'), 200],
          bulk('by-net-bytes'),
          [bulk('wide'), 9000, bulk('hot'), 4000],
        ],
      ]
  }
  return undefined
}

test('Redis 8.6 records for a while, and the recording is removed afterwards', async () => {
  const server = await startFakeRedis((args) => redis86(args))
  const finding = await findHotByServer({ target: { port: server.port }, durationMs: 100, top: 10 })
  expect(finding.keys).toMatchObject([
    { key: 'wide', networkBytes: 9000 },
    { key: 'hot', cpuMicroseconds: 700, networkBytes: 4000, share: 0.7 },
    { key: 'warm', cpuMicroseconds: 200 },
  ])
  expect(server.seen).toContain('HOTKEYS START METRICS 2 CPU NET COUNT 10 DURATION 1')
  expect(server.seen.slice(-3)).toEqual(['HOTKEYS GET', 'HOTKEYS STOP', 'HOTKEYS RESET'])
  server.stop()
})

test('a recording by somebody else is read and left running', async () => {
  const { ErrorReply } = await import('@firebreak/core/resp')
  const server = await startFakeRedis((args) =>
    args[1] === 'START' ? new ErrorReply('ERR hotkeys tracking is already in progress') : redis86(args),
  )
  const finding = await findHotByServer({ target: { port: server.port }, durationMs: 100 })
  expect(finding.keys).toHaveLength(3)
  expect(finding.notes.join()).toMatch(/somebody else/)
  expect(server.seen.join()).not.toMatch(/STOP|RESET/)
  server.stop()
})

/** Valkey 9.2 as a cluster of two: records all the time, by accesses a second. */
test('Valkey 9.2 gives accesses a second, from all nodes of a cluster', async () => {
  const ports: number[] = []
  const node = (index: number) =>
    startFakeRedis((args) => {
      switch (args.slice(0, 2).join(' ').toUpperCase()) {
        case 'INFO SERVER':
          return bulk('redis_version:7.2.4\r\nvalkey_version:9.2.0\r\nserver_mode:cluster\r\n')
        case 'CLIENT SETNAME':
          return ok
        case 'CLUSTER SLOTS':
          return [
            [0, 8191, [bulk('127.0.0.1'), ports[0]!, bulk('a')]],
            [8192, 16383, [bulk('127.0.0.1'), ports[1]!, bulk('b')]],
          ]
        case 'HOTKEYS GET':
          return index === 0
            ? [[bulk('key'), bulk('low'), bulk('db'), 0, bulk('qps'), 50]]
            : [[bulk('key'), bulk('high'), bulk('db'), 3, bulk('qps'), 5000]]
      }
      return undefined
    })
  const servers = [await node(0), await node(1)]
  ports.push(...servers.map(({ port }) => port))
  const finding = await findHotByServer({ target: { port: ports[1]! } })
  expect(finding.topology).toBe('cluster')
  expect(finding.keys).toMatchObject([
    { key: 'high', accessesPerSecond: 5000, database: 3, node: `127.0.0.1:${ports[1]}` },
    { key: 'low', accessesPerSecond: 50, node: `127.0.0.1:${ports[0]}` },
  ])
  for (const server of servers) server.stop()
})

test('a server without HOTKEYS is named with its version, and other ways are offered', async () => {
  const server = await startRedis()
  const failure = await findHotByServer({ target: { port: server.port } }).catch((error) => error)
  expect(failure).toMatchObject({ code: 'FB_FIND_NO_HOTKEYS' })
  expect(failure.message).toMatch(/\(\d+\.\d+\.\d+\) has no HOTKEYS/)
  expect(failure.message).toMatch(/--scan.*--capture.*--monitor/s)
  await server.stop()
})

test('CLUSTER SLOT-STATS gives processor time and bytes for each slot, read twice', async () => {
  let reading = 0
  let look = 0
  const server = await startFakeRedis((args, port) => {
    switch (args.slice(0, 2).join(' ').toUpperCase()) {
      case 'INFO SERVER':
        return bulk('redis_version:8.2.0\r\nredis_mode:cluster\r\n')
      case 'CLIENT SETNAME':
        return ok
      case 'CLUSTER SLOTS':
        return [[0, 16383, [bulk('127.0.0.1'), port, bulk('a')]]]
      case 'INFO COMMANDSTATS':
        look++
        return bulk(`cmdstat_get:calls=${1000 + look * 500},usec=${look * 800},usec_per_call=1\r\n`)
      case 'INFO STATS':
        return bulk(`total_net_input_bytes:${look * 1000}\r\ntotal_net_output_bytes:${look * 3000}\r\n`)
      case 'INFO KEYSPACE':
        return bulk('db0:keys=3,expires=0,avg_ttl=0\r\n')
      case 'CLUSTER SLOT-STATS': {
        reading++
        const stats = (keys: number, cpu: number, bytes: number): RespValue => [
          bulk('key-count'),
          keys,
          bulk('cpu-usec'),
          cpu,
          bulk('network-bytes-in'),
          bytes,
          bulk('network-bytes-out'),
          bytes,
        ]
        return [
          [5, stats(1, reading * 100, reading * 10)],
          [9, stats(2, reading * 900, reading * 90)],
        ]
      }
      case 'CLUSTER GETKEYSINSLOT':
        return args[2] === '9' ? [bulk('hot'), bulk('cold')] : []
      case 'OBJECT FREQ':
        return args[2] === 'hot' ? 200 : 3
    }
    return undefined
  })
  const finding = await findSlots({ target: { port: server.port }, durationMs: 200 })
  expect(finding.method).toBe('slot-stats')
  expect(finding.slots).toMatchObject([
    { slot: 9, keys: 2, share: expect.closeTo(0.9) },
    { slot: 5, keys: 1, share: expect.closeTo(0.1) },
  ])
  expect(finding.slots![0]!.cpuMicrosecondsPerSecond).toBeGreaterThan(0)
  expect(finding.slots![0]!.bytesPerSecond).toBeGreaterThan(0)
  expect(finding.nodes).toMatchObject([{ slots: 16384, share: 1, keys: 3 }])
  expect(finding.keys.map(({ key }) => key)).toEqual(['hot', 'cold'])
  server.stop()
})

test('on real servers figures per slot come from their own counts, and missing ones are reported', async () => {
  const cluster = await startCluster({ args: ['--maxmemory-policy', 'allkeys-lfu'] })
  const [first] = cluster.nodes
  const target = { port: first!.port }
  // Slots 6093, 12182 and one below 300: each on another node.
  const keys = ['hot', 'foo', 'a52'] as const
  const redis = new Cluster([...cluster.addresses])
  const load = async (times: number) => {
    for (let turn = 0; turn < times; turn++) {
      await Promise.all([
        ...Array.from({ length: 50 }, () => redis.get(keys[0])),
        redis.get(keys[1]),
        redis.get(keys[2]),
      ])
    }
  }
  for (const key of keys) await redis.set(key, 'x'.repeat(1000))
  const look = async () => {
    const looked = findSlots({ target, durationMs: 1000 })
    await load(40)
    return looked
  }
  const untold = await look()
  expect(untold).toMatchObject({ method: 'commandstats', slots: [] })
  const canCount = hasCapability(redisKind(), 'slotStats')
  expect(untold.notes.join()).toMatch(canCount ? /cluster-slot-stats-enabled yes/ : /does not count by slot/)
  if (canCount) {
    for (const node of cluster.nodes) await node.cli('CONFIG', 'SET', 'cluster-slot-stats-enabled', 'yes')
    const finding = await look()
    expect(finding.method).toBe('slot-stats')
    expect(finding.slots![0]).toMatchObject({ slot: 6093, keys: 1 })
    expect(finding.slots![0]!.share).toBeGreaterThan(0.5)
    expect(finding.slots![0]!.bytesPerSecond).toBeGreaterThan(1000)
    expect(finding.keys.map(({ key }) => key).toSorted()).toEqual([...keys].toSorted())
    expect(new Set(finding.keys.map(({ node }) => node)).size).toBe(3)
    // Requests about slots produce a quarter of a megabyte of replies, and no load on an otherwise idle node.
    expect(finding.nodes!.at(-1)!.bytesOutPerSecond).toBeLessThan(50_000)
  }
  await redis.quit()
  await cluster.stop()
})
