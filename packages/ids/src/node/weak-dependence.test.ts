import { copyFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { freePort, type GuardedChild, startEtcd, startRedis, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NodeAddress } from '../address/node-address.ts'
import { decodeSnowflake } from '../snowflake/layout.ts'
import { EtcdRegistry } from '../workers/etcd-registry.ts'
import { RedisRegistry } from '../workers/redis-registry.ts'
import type { WorkerRegistry } from '../workers/worker-registry.ts'
import type { SnowflakeNodeOptions } from './node-options.ts'
import { zooKeeperNodes } from './testing/zookeeper-nodes.ts'

const { newPlace, recordOf, refused, setDown, start } = zooKeeperNodes()

describe('with ZooKeeper down', () => {
  test('at the start: ids come from the file, and the node joins again when ZooKeeper is back', async () => {
    const place = await newPlace()
    await start(await newPlace(place.root))
    const first = await start(place)
    const last = first.node.next()
    await first.node.close()
    setDown(true)
    const second = await start(place)
    expect(second.node.workerId).toBe(1)
    expect(BigInt(second.node.next()) > BigInt(last)).toBe(true)
    expect(second.alarms).toMatchObject([{ code: 'FB_IDS_REGISTRY_DOWN' }])
    expect(second.node.status().registry?.isUp).toBe(false)
    const before = (await recordOf(place, 1)).record.timestamp
    setDown(false)
    await waitFor(async () => (await recordOf(place, 1)).record.timestamp > before)
    // The record can be read before its writer receives ZooKeeper's answer.
    await waitFor(() => second.node.status().registry?.isUp)
    expect(second.node.status()).toMatchObject({ state: 'serving', workerId: 1 })
  })

  test.each([
    ['missing', 'FB_IDS_CACHE_MISSING', (file: string) => rmSync(file)],
    ['empty', 'FB_IDS_CACHE_MISSING', (file: string) => truncateSync(file, 0)],
    ['damaged', 'FB_IDS_CACHE_BROKEN', (file: string) => writeFileSync(file, 'not ours')],
    ['cut', 'FB_IDS_CACHE_BROKEN', (file: string) => truncateSync(file, 300)],
    [
      'a copy',
      'FB_IDS_CACHE_FOREIGN',
      (file: string) => {
        copyFileSync(file, `${file}.copy`)
        rmSync(file)
        copyFileSync(`${file}.copy`, file)
      },
    ],
  ])('at the start and the file is %s: refused, never worker 0', async (_, code, damage) => {
    const place = await newPlace()
    await (await start(place)).node.close()
    damage(place.cacheFile)
    setDown(true)
    const outcome = await refused(place)
    expect(outcome.code).toBe(code)
    expect(outcome.alarms).toMatchObject([{ code }])
  })

  test('at the start and the file is of another address: refused', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    setDown(true)
    expect((await refused({ ...place, port: await freePort() })).code).toBe('FB_IDS_CACHE_FOREIGN')
  })

  test('at the start and the clock is behind the file: refused', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    setDown(true)
    expect((await refused(place, { offsetMs: -60_000 })).code).toBe('FB_IDS_CLOCK_REFUSED')
  })

  test('at the start and the file is so old that the worker id may belong to another node: refused', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    setDown(true)
    expect((await refused(place, { recycleAfterMs: 10_000, offsetMs: 6000 })).code).toBe('FB_IDS_CACHE_STALE')
    expect((await start(place, { recycleAfterMs: 10_000, offsetMs: 1000 })).node.workerId).toBe(0)
  })

  test('while running: ids continue from the file past the mark in ZooKeeper, which is written again afterwards', async () => {
    const place = await newPlace()
    const { node, alarms } = await start(place, { registryAheadMs: 300 })
    const { mark } = (await recordOf(place)).record
    setDown(true)
    await waitFor(() => !node.status().registry!.isUp)
    await waitFor(() => decodeSnowflake(node.next()).timestampMs > mark + 300)
    expect(alarms).toMatchObject([{ code: 'FB_IDS_REGISTRY_DOWN' }])
    setDown(false)
    await waitFor(() => node.status().registry!.isUp)
    await waitFor(async () => (await recordOf(place)).record.timestamp > mark + 300)
    expect(node.workerId).toBe(0)
  })

  test('while running for half of the recycling time: no more ids until it is back', async () => {
    const place = await newPlace()
    const { node, alarms } = await start(place, { recycleAfterMs: 1200 })
    setDown(true)
    await waitFor(() => node.status().error?.code === 'FB_IDS_CACHE_STALE')
    expect(() => node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CACHE_STALE' }))
    expect(alarms.map(({ code }) => code)).toContain('FB_IDS_CACHE_STALE')
    setDown(false)
    await waitFor(() => node.status().state === 'serving')
    node.next()
  })

  test('a node without a file stops at the mark in ZooKeeper, and resumes when it is back', async () => {
    const place = await newPlace()
    const { node } = await start(place, { cacheFile: undefined as never, registryAheadMs: 400 })
    setDown(true)
    const last = await waitFor(() => {
      try {
        node.next()
        return undefined
      } catch (error) {
        return (error as { code: string }).code
      }
    })
    expect(last).toBe('FB_IDS_MARK_REACHED')
    setDown(false)
    await waitFor(() => {
      try {
        return node.next()
      } catch {
        return undefined
      }
    })
  })
})

describe.each(['etcd', 'redis'])('on %s', (kind) => {
  let child: GuardedChild
  let open: (address: NodeAddress) => WorkerRegistry
  let restart: () => Promise<GuardedChild>
  let close: () => Promise<unknown>
  beforeAll(async () => {
    if (kind === 'etcd') {
      let etcd = await startEtcd()
      child = etcd.child
      open = (address) => new EtcdRegistry({ endpoints: etcd.url, address })
      restart = async () => {
        etcd = await etcd.restart()
        return etcd.child
      }
      close = () => etcd.stop()
    } else {
      let redis = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
      const client = new Ioredis(redis.port, { maxRetriesPerRequest: 1 })
      client.on('error', () => {})
      child = redis.child
      open = (address) => new RedisRegistry({ redis: client, address })
      restart = async () => {
        redis = await redis.restart()
        return redis.child
      }
      close = async () => {
        client.disconnect()
        await redis.stop()
      }
    }
  })
  afterAll(() => close())

  test('the same applies: reports, the file while it is down, the worker id kept, one address once', async () => {
    const place = await newPlace()
    const address = { ip: '127.0.0.1', port: place.port }
    const go = (more: Partial<SnowflakeNodeOptions> = {}) => start(place, { registry: open(address), ...more })
    const first = await go()
    const last = first.node.next()
    const twin = { ...place, cacheFile: `${place.cacheFile}.twin` }
    expect((await refused(twin, { registry: open(address) })).code).toBe('FB_IDS_ADDRESS_TAKEN')
    await first.node.close()
    expect((await refused(place, { registry: open(address), offsetMs: -60_000 })).code).toBe('FB_IDS_CLOCK_REFUSED')

    const second = await go()
    expect(second.node.workerId).toBe(first.node.workerId)
    expect(BigInt(second.node.next()) > BigInt(last)).toBe(true)
    child.signal('SIGKILL')
    await child.exited
    await waitFor(() => !second.node.status().registry!.isUp)
    second.node.next()
    await second.node.close()
    const third = await go()
    expect(third.node.workerId).toBe(first.node.workerId)
    expect(third.alarms).toMatchObject([{ code: 'FB_IDS_REGISTRY_DOWN' }])
    child = await restart()
    await waitFor(() => third.node.status().registry!.isUp)
    expect(third.node.status()).toMatchObject({ state: 'serving', workerId: first.node.workerId })
    await third.node.close()
  })
})
