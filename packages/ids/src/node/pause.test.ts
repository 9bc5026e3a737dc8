import { systemRuntime } from '@firebreak/core'
import { fakeRuntime, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RedisRegistry } from '../workers/redis-registry.ts'
import type { CachedWorker, WorkerCache } from './cache-file.ts'
import { PauseWatch } from './pause-watch.ts'
import { SnowflakeNode } from './snowflake-node.ts'

let redis: RedisServer
let client: Ioredis
beforeAll(async () => {
  redis = await startRedis()
  client = new Ioredis(redis.port)
})
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

test('the longest time between two checks is reported once', () => {
  const runtime = fakeRuntime()
  const watch = new PauseWatch(runtime, 100)
  runtime.clock.advance(1000)
  expect(watch.take()).toBe(100)
  runtime.clock.step(5000)
  expect(watch.take()).toBe(5000)
  expect(watch.take()).toBe(0)
  watch.stop()
})

test('a paused node asks its registry before the next id, and stops if its worker id is gone', async () => {
  // A paused process: its clock continues, and nothing else does.
  const clock = { aheadMs: 0, now: () => systemRuntime.clock.now() + clock.aheadMs }
  const address = { ip: '127.0.0.1', port: 1 }
  const node = await SnowflakeNode.start({
    registry: new RedisRegistry({ redis: client, root: 'pause', address }),
    address,
    reportEveryMs: 1000,
    settleMs: 2000,
    registryAheadMs: 3000,
    markAheadMs: 100,
    clock,
    runtime: { ...systemRuntime, clock },
    onAlarm: () => {},
  })
  node.next()
  clock.aheadMs = 10_000
  expect(() => node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_PAUSED' }))
  await waitFor(() => node.status().state === 'serving', { what: 'the registry to confirm the worker id' })
  expect(node.workerId).toBe(0)
  await client.hset('{pause}:leaf_forever', '0', JSON.stringify({ ip: '127.0.0.1', port: 2, timestamp: Date.now() }))
  clock.aheadMs = 20_000
  const codes: string[] = []
  await waitFor(
    () => {
      try {
        node.next()
        return true
      } catch (error) {
        codes.push((error as { code: string }).code)
        return false
      }
    },
    { what: 'another worker id', timeoutMs: 10_000 },
  )
  expect(codes[0]).toBe('FB_IDS_PAUSED')
  expect(codes).toContain('FB_IDS_WORKER_LOST')
  expect(node.workerId).toBe(1)
  await node.close()
})

test('a node that cannot start with a new worker id does not fall back on the one that it has lost', async () => {
  let file: CachedWorker | undefined
  const openCache = (path: string): WorkerCache => ({
    path,
    read: () => (file === undefined ? { kind: 'missing', why: 'empty' } : { kind: 'valid', worker: file }),
    write: (worker) => {
      file = worker
    },
    close: () => {},
  })
  const address = { ip: '127.0.0.1', port: 3 }
  let isDown = false
  const start = (settleMs: number) => {
    const registry = new RedisRegistry({ redis: client, root: 'fallback', address })
    const report = registry.report.bind(registry)
    registry.report = (workerId, record) => {
      if (isDown) return Promise.reject(Object.assign(new Error('down'), { code: 'FB_IDS_REGISTRY_DOWN' }))
      return report(workerId, record)
    }
    const options = { cacheFile: 'worker.json', openCache, settleMs, reportEveryMs: 100, onAlarm: () => {} }
    return SnowflakeNode.start({ registry, address, ...options })
  }
  await (await start(0)).close()
  await client.flushall()
  isDown = true
  await expect(start(200)).rejects.toMatchObject({ code: 'FB_IDS_CACHE_STALE' })
  isDown = false
  const node = await start(200)
  expect(node.status().state).toBe('serving')
  await node.close()
})

test('a first request that fails after a pause is repeated before the file is trusted', async () => {
  const clock = { aheadMs: 0, now: () => systemRuntime.clock.now() + clock.aheadMs }
  const address = { ip: '127.0.0.1', port: 4 }
  const registry = new RedisRegistry({ redis: client, root: 'ended', address })
  const claim = registry.claim.bind(registry)
  let failures = 0
  registry.claim = (options) => {
    // The connection ended while the process was paused.
    if (failures-- > 0) return Promise.reject(Object.assign(new Error('ended'), { code: 'FB_IDS_REGISTRY_DOWN' }))
    return claim(options)
  }
  let file: CachedWorker | undefined
  const codes = new Set<string>()
  const node = await SnowflakeNode.start({
    registry,
    address,
    cacheFile: 'worker.json',
    openCache: (path) => ({
      path,
      read: () => (file === undefined ? { kind: 'missing', why: 'empty' } : { kind: 'valid', worker: file }),
      write: (worker) => {
        file = worker
      },
      close: () => {},
    }),
    reportEveryMs: 1000,
    settleMs: 2000,
    registryAheadMs: 3000,
    markAheadMs: 100,
    clock,
    runtime: { ...systemRuntime, clock },
    onAlarm: () => {},
  })
  const lost = node.workerId
  await client.hset('{ended}:leaf_forever', '0', JSON.stringify({ ip: '127.0.0.1', port: 5, timestamp: Date.now() }))
  failures = 1
  clock.aheadMs = 10_000
  const given: number[] = []
  await waitFor(
    () => {
      try {
        given.push(node.decode(node.next()).workerId)
      } catch (error) {
        codes.add((error as { code: string }).code)
      }
      return given.length > 0
    },
    { what: 'another worker id', timeoutMs: 10_000 },
  )
  expect(given).not.toContain(lost)
  expect([...codes]).toEqual(['FB_IDS_PAUSED', 'FB_IDS_WORKER_LOST'])
  // If the registry really is down, the node continues on its file.
  failures = Number.POSITIVE_INFINITY
  clock.aheadMs = 20_000
  expect(() => node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_PAUSED' }))
  await waitFor(() => node.status().state === 'serving', { what: 'the file to be trusted' })
  failures = 0
  await node.close()
})
