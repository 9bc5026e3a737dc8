import { join } from 'node:path'
import { ZooKeeperClient } from '@firebreak/centre'
import {
  type EtcdServer,
  freePort,
  type RedisServer,
  startEtcd,
  startRedis,
  startZooKeeper,
  temporaryFolder,
  uncaughtDuring,
  waitFor,
  type ZooKeeperServer,
} from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { EtcdRegistry } from '../workers/etcd-registry.ts'
import { RedisRegistry } from '../workers/redis-registry.ts'
import type { RegistryOptions, WorkerRegistry } from '../workers/worker-registry.ts'
import { ZooKeeperRegistry } from '../workers/zookeeper-registry.ts'
import type { SnowflakeNodeOptions } from './node-options.ts'
import { SnowflakeNode } from './snowflake-node.ts'

// A registry that lost everything, or only its last writes, while nodes run on their worker ids.

let zooKeeper: ZooKeeperServer
let etcd: EtcdServer
let redis: RedisServer
let client: Ioredis
let editor: ZooKeeperClient
let trees = 0
const nodes: SnowflakeNode[] = []

beforeAll(async () => {
  ;[zooKeeper, etcd, redis] = await Promise.all([startZooKeeper(), startEtcd(), startRedis()])
  client = new Ioredis(redis.port)
  editor = new ZooKeeperClient({ servers: zooKeeper.address })
  await editor.connect()
})
afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.close()))
})
afterAll(async () => {
  client.disconnect()
  await editor.close()
  await Promise.all([zooKeeper.stop(), etcd.stop(), redis.stop()])
})

const ownError = new Error('the listener’s own')

interface Kind {
  make(options: RegistryOptions): WorkerRegistry
  /** Deletes all records of a tree, or one of them. */
  forget(root: string, workerId?: number): Promise<void>
}

async function etcdDelete(body: Record<string, string>): Promise<void> {
  await fetch(`${etcd.url}/v3/kv/deleterange`, { method: 'POST', body: JSON.stringify(body) })
}

const kinds: Record<string, Kind> = {
  redis: {
    make: (options) => new RedisRegistry({ redis: client, ...options }),
    async forget(root, workerId) {
      if (workerId === undefined) await client.flushall()
      else await client.hdel(`{${root}}:leaf_forever`, String(workerId))
    },
  },
  etcd: {
    make: (options) => new EtcdRegistry({ endpoints: etcd.url, ...options }),
    async forget(root, workerId) {
      const base64 = (text: string) => Buffer.from(text).toString('base64')
      if (workerId === undefined) await etcdDelete({ key: base64(`${root}/`), range_end: base64(`${root}0`) })
      else await etcdDelete({ key: base64(`${root}/leaf_forever/${String(workerId).padStart(10, '0')}`) })
    },
  },
  zookeeper: {
    make: (options) => new ZooKeeperRegistry({ servers: zooKeeper.address, ...options }),
    async forget(root, workerId) {
      const names = await editor.getChildren(`${root}/leaf_forever`)
      const ending = workerId === undefined ? '' : `-${String(workerId).padStart(10, '0')}`
      for (const name of names.filter((each) => each.endsWith(ending)))
        await editor.delete(`${root}/leaf_forever/${name}`)
      if (workerId !== undefined) return
      // In one step, because a node that finds its claim gone creates it again at once.
      const claims = (await editor.getChildren(`${root}/leaf_temporary`)).map((name) => `leaf_temporary/${name}`)
      const paths = [...claims, 'leaf_temporary', 'leaf_forever'].map((name) => `${root}/${name}`)
      await editor.multi(paths.map((path) => ({ kind: 'delete', path, version: -1 })))
    },
  },
}

describe.each(Object.keys(kinds))('%s', (kind) => {
  const { make, forget } = kinds[kind]!

  async function start(root: string, more: Partial<SnowflakeNodeOptions> = {}) {
    const { address = { ip: '127.0.0.1', port: await freePort() } } = more
    const alarms: string[] = []
    const node = await SnowflakeNode.start({
      registry: make({ root, address, sessionTimeoutMs: 2000 }),
      address,
      cacheFile: join(temporaryFolder('emptied'), 'worker.json'),
      reportEveryMs: 100,
      registryAheadMs: 2000,
      claimWaitMs: 0,
      onAlarm: ({ code }) => alarms.push(code),
      ...more,
    })
    nodes.push(node)
    return { node, alarms }
  }

  /** Takes ids from nodes as fast as it can, and keeps them. */
  function gather(given: Set<string>, node: SnowflakeNode): { stop(): void; readonly repeated: number } {
    const state = { repeated: 0, isRunning: true }
    const round = () => {
      if (!state.isRunning) return
      try {
        for (let count = 0; count < 50; count++) {
          const id = node.next()
          if (given.has(id)) state.repeated++
          given.add(id)
        }
      } catch {
        // It refuses at this point, as it should.
      }
      setImmediate(round)
    }
    round()
    return {
      stop: () => {
        state.isRunning = false
      },
      get repeated() {
        return state.repeated
      },
    }
  }

  test.each([
    ['everything', undefined],
    ['the newest registration', 0],
  ])('that lost %s does not give a running node’s number to a new one: no id twice', async (_, lost) => {
    const root = `/empty${trees++}`
    const first = await start(root)
    expect(first.node.workerId).toBe(0)
    const given = new Set<string>()
    const takers = [gather(given, first.node)]
    await waitFor(() => given.size > 1000)
    await forget(root, lost)
    const second = await start(root)
    takers.push(gather(given, second.node))
    await waitFor(() => first.alarms.includes('FB_IDS_WORKER_LOST'))
    await waitFor(() => first.node.status().state === 'serving')
    const size = given.size
    await waitFor(() => given.size > size + 10_000)
    for (const taker of takers) taker.stop()
    expect(takers.map(({ repeated }) => repeated)).toEqual([0, 0])
    expect(first.node.workerId).not.toBe(second.node.workerId)
  })

  test('a node whose period does not fit that of the live nodes is refused; one whose settling time allows for it is not', async () => {
    const root = `/periods-${++trees}`
    await start(root, { reportEveryMs: 100 })
    const refused = { code: 'FB_IDS_PERIODS_DIFFER' }
    await expect(start(root, { reportEveryMs: 300 })).rejects.toMatchObject(refused)
    const { node } = await start(root, { reportEveryMs: 50, settleMs: 200 })
    await expect(start(root, { reportEveryMs: 20 })).rejects.toMatchObject(refused)
    expect(node.next()).toBeDefined()
    // To change to a longer period, first give every node a long enough settling time.
    await Promise.all(nodes.splice(0).map((each) => each.close()))
    await start(root, { reportEveryMs: 100, settleMs: 600 })
    await start(root, { reportEveryMs: 300 })
  })

  test('a node that restarts on its file with a period that does not fit is refused too', async () => {
    const root = `/periods-${++trees}`
    const mine = {
      cacheFile: join(temporaryFolder('periods'), 'worker.json'),
      address: { ip: '127.0.0.1', port: await freePort() },
    }
    const { node } = await start(root, mine)
    await node.close()
    nodes.pop()
    await start(root)
    await expect(start(root, { ...mine, reportEveryMs: 900 })).rejects.toMatchObject({ code: 'FB_IDS_PERIODS_DIFFER' })
  })

  test('a node whose listeners throw stops like any other when its record is gone, and resumes with a new number', async () => {
    const root = `/empty${trees++}`
    let isThrowing = false
    const throwing = () => {
      if (isThrowing) throw ownError
    }
    const thrown = await uncaughtDuring(async () => {
      const { node } = await start(root, { onAlarm: throwing, onLog: throwing })
      isThrowing = true
      await forget(root)
      await waitFor(() => node.status().error?.code === 'FB_IDS_WORKER_LOST')
      await waitFor(() => node.status().state === 'serving')
    })
    expect(thrown.length).toBeGreaterThanOrEqual(2)
    expect(new Set(thrown)).toEqual(new Set([ownError]))
  })

  test('if the record of a number is lost while it is reserved, no id of it is issued', async () => {
    const root = `/empty${trees++}`
    const starting = start(root, { settleMs: 60_000 })
    const refused = expect(starting).rejects.toMatchObject({ code: 'FB_IDS_WORKER_LOST' })
    await waitFor(async () => {
      await forget(root, 0).catch(() => {})
      return Promise.race([refused.then(() => true), new Promise((resolve) => setTimeout(resolve, 50))])
    })
    await refused
  })
})
