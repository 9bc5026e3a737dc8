import { EtcdClient, ZooKeeperClient } from '@firebreak/centre'
import {
  type EtcdServer,
  type RedisServer,
  startEtcd,
  startRedis,
  startZooKeeper,
  waitFor,
  type ZooKeeperServer,
} from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { EtcdRegistry } from './etcd-registry.ts'
import { RedisRegistry } from './redis-registry.ts'
import type { RegistryOptions, WorkerRecord, WorkerRegistry } from './worker-registry.ts'
import { ZooKeeperRegistry } from './zookeeper-registry.ts'

let zooKeeper: ZooKeeperServer
let etcd: EtcdServer
let redis: RedisServer
let client: Ioredis
beforeAll(async () => {
  ;[zooKeeper, etcd, redis] = await Promise.all([startZooKeeper(), startEtcd(), startRedis()])
  client = new Ioredis(redis.port)
})
afterAll(async () => {
  client.disconnect()
  await Promise.all([zooKeeper.stop(), etcd.stop(), redis.stop()])
})

type Make = (options: RegistryOptions) => WorkerRegistry
const kinds: Record<string, Make> = {
  zookeeper: (options) => new ZooKeeperRegistry({ servers: zooKeeper.address, ...options }),
  etcd: (options) => new EtcdRegistry({ endpoints: etcd.url, ...options }),
  redis: (options) => new RedisRegistry({ redis: client, ...options }),
}

let trees = 0
const now = 1_700_000_000_000
const day = 86_400_000

function recordOf(registry: WorkerRegistry, port: number, timestamp = now): WorkerRecord {
  return { ip: '10.0.0.1', port, timestamp, mark: timestamp, owner: registry.owner, runsAlone: false, isHeld: false }
}

async function fillEtcd(root: string, workerId: number, record: WorkerRecord): Promise<number> {
  const key = `${root}/leaf_forever/${String(workerId).padStart(10, '0')}`
  await new EtcdClient({ endpoints: etcd.url }).putIf(key, JSON.stringify(record), '0')
  return workerId
}

describe.each(Object.keys(kinds))('%s', (kind) => {
  const opened: WorkerRegistry[] = []
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((registry) => registry.close()))
  })

  function open(root: string, port: number, more: Partial<RegistryOptions> = {}): WorkerRegistry {
    const registry = kinds[kind]!({ root, address: { ip: '10.0.0.1', port }, sessionTimeoutMs: 1000, ...more })
    opened.push(registry)
    return registry
  }

  test('five nodes starting at once on an empty tree get five ids', async () => {
    const root = `/tree${trees++}`
    const ids = await Promise.all(
      [1, 2, 3, 4, 5].map(async (port) => {
        const registry = open(root, port)
        await registry.claim({ waitMs: 0 })
        return registry.register(recordOf(registry, port))
      }),
    )
    expect(ids.sort()).toEqual([0, 1, 2, 3, 4])
  })

  test('a record is found again by its address, written by its owner and nobody else', async () => {
    const root = `/tree${trees++}`
    const first = open(root, 1)
    await first.claim({ waitMs: 0 })
    expect(await first.own()).toEqual([])
    const workerId = await first.register(recordOf(first, 1))
    await first.report(workerId, recordOf(first, 1, now + 3000))
    await first.close()

    const second = open(root, 1)
    await second.claim({ waitMs: 0 })
    await expect(second.report(workerId, recordOf(second, 1))).rejects.toMatchObject({ code: 'FB_IDS_WORKER_LOST' })
    const [found] = await second.own()
    expect(found).toMatchObject({ workerId, record: recordOf(first, 1, now + 3000) })
    await second.adopt(found!, recordOf(second, 1, now + 4000))
    await second.report(workerId, recordOf(second, 1, now + 5000))
    await expect(second.adopt(found!, recordOf(second, 1))).rejects.toMatchObject({ code: 'FB_IDS_WORKER_LOST' })
    const other = open(root, 2)
    await other.claim({ waitMs: 0 })
    expect(await other.own()).toEqual([])
  })

  test('an address has one live owner; its claim lapses with silence, or at once if the owner is known to be dead', async () => {
    const root = `/tree${trees++}`
    const first = open(root, 1)
    await first.claim({ waitMs: 0 })
    await first.claim({ waitMs: 0 })
    const second = open(root, 1)
    await expect(second.claim({ waitMs: 0 })).rejects.toMatchObject({ code: 'FB_IDS_ADDRESS_TAKEN' })
    await second.claim({ waitMs: 0, predecessor: first.owner })
    await expect(first.claim({ waitMs: 0 })).rejects.toMatchObject({ code: 'FB_IDS_ADDRESS_TAKEN' })
    await second.close()
    await first.claim({ waitMs: 0 })
  })

  test('peers are the other live addresses', async () => {
    const root = `/tree${trees++}`
    const [first, second, third] = [open(root, 1), open(root, 2), open(root, 3)]
    for (const registry of [first, second, third]) await registry.claim({ waitMs: 0 })
    const ports = async () => (await first.peers()).map(({ port }) => port).sort()
    expect(await ports()).toEqual([2, 3])
    await third.close()
    await waitFor(async () => (await ports()).length === 1)
    expect(await ports()).toEqual([2])
  })

  test('all 1,024 ids can be taken; then one is recycled only if its node was silent for long and is not live', async () => {
    const root = `/tree${trees++}`
    const filler = open(root, 9)
    await filler.claim({ waitMs: 0 })
    const taken = new Set<number>()
    // Number 7 is the oldest but alive, 8 is old and dead, the others are fresh.
    for (let index = 0; index < 1024; index++) {
      const timestamp = index === 7 ? now - 3 * day : index === 8 ? now - 2 * day : now
      const record = recordOf(filler, 2000 + index, timestamp)
      // A thousand registrations take ten seconds through etcd's JSON gateway, so all but the last are written directly.
      if (kind === 'etcd' && index < 1023) taken.add(await fillEtcd(root, index, record))
      else taken.add(await filler.register(record))
    }
    expect(taken.size).toBe(1024)
    const live = open(root, 2007)
    await live.claim({ waitMs: 0 })
    const patient = open(root, 1, { recycleAfterMs: 10 * day })
    await patient.claim({ waitMs: 0 })
    await expect(patient.register(recordOf(patient, 1))).rejects.toMatchObject({ code: 'FB_IDS_WORKERS_FULL' })
    const newcomers = [open(root, 2), open(root, 3)]
    for (const registry of newcomers) await registry.claim({ waitMs: 0 })
    const outcomes = await Promise.allSettled(
      newcomers.map((registry, index) => registry.register(recordOf(registry, 2 + index))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toMatchObject([{ value: 8 }])
    expect(outcomes.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { code: 'FB_IDS_WORKERS_FULL' } },
    ])
    await expect(filler.report(8, recordOf(filler, 2008))).rejects.toMatchObject({ code: 'FB_IDS_WORKER_LOST' })
  })
})

describe.each(['etcd', 'redis'])('%s without pings of its own', (kind) => {
  test('a claim that is not renewed lapses', async () => {
    const root = `/tree${trees++}`
    const make = (sessionTimeoutMs: number) =>
      kinds[kind]!({ root, address: { ip: '10.0.0.1', port: 1 }, sessionTimeoutMs })
    await make(1000).claim({ waitMs: 0 })
    const second = make(1000)
    await second.claim({ waitMs: 15_000 })
    await second.close()
  })
})

test('a ZooKeeper node is named ip:port-NUMBER below leaf_forever, and its claim is ephemeral below leaf_temporary', async () => {
  const reader = new ZooKeeperClient({ servers: zooKeeper.address })
  await reader.connect()
  const registry = new ZooKeeperRegistry({ servers: zooKeeper.address, address: { ip: '10.0.0.1', port: 8080 } })
  await registry.claim({ waitMs: 0 })
  const workerId = await registry.register(recordOf(registry, 8080))
  expect(workerId).toBe(0)
  const forever = await reader.getData('/leaf_forever/10.0.0.1:8080-0000000000')
  expect(JSON.parse(forever!.data)).toMatchObject({ ip: '10.0.0.1', port: 8080, timestamp: now })
  expect(forever!.stat.ephemeralOwner).toBe(0n)
  expect((await reader.exists('/leaf_temporary/10.0.0.1:8080'))!.ephemeralOwner).not.toBe(0n)
  await registry.close()
  expect(await reader.exists('/leaf_temporary/10.0.0.1:8080')).toBe(undefined)
  await reader.close()
})

test('a number freed by hand is used again once ZooKeeper’s counter is past 1023', async () => {
  const root = `/tree${trees++}`
  const editor = new ZooKeeperClient({ servers: zooKeeper.address })
  await editor.connect()
  const registry = new ZooKeeperRegistry({ root, servers: zooKeeper.address, address: { ip: '10.0.0.1', port: 1 } })
  await registry.claim({ waitMs: 0 })
  for (let index = 0; index < 1024; index++) {
    await editor.create(`${root}/leaf_forever/10.0.0.2:${index}-`, '{}', 'persistent-sequential')
  }
  await editor.delete(`${root}/leaf_forever/10.0.0.2:500-0000000500`)
  expect(await registry.register(recordOf(registry, 1))).toBe(500)
  await registry.close()
  await editor.close()
})
