import { join } from 'node:path'
import { ZooKeeperClient } from '@firebreak/centre'
import { FaultProxy, freePort, startZooKeeper, temporaryFolder, type ZooKeeperServer } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { ZooKeeperRegistry } from '../../workers/zookeeper-registry.ts'
import type { IdsAlarm, SnowflakeNodeOptions } from '../node-options.ts'
import { SnowflakeNode } from '../snowflake-node.ts'

/** What a node keeps over restarts. */
export interface Place {
  readonly root: string
  readonly port: number
  readonly cacheFile: string
}

export interface Started {
  readonly node: SnowflakeNode
  readonly alarms: IdsAlarm[]
  readonly logs: string[]
}

type StartOptions = Partial<SnowflakeNodeOptions> & { direct?: boolean; offsetMs?: number }

/**
 * Nodes on a real ZooKeeper behind a proxy that can cut it off, for the tests of a file; call at its top. Everything is closed after
 * each test.
 */
export function zooKeeperNodes() {
  let server: ZooKeeperServer
  let proxy: FaultProxy
  let reader: ZooKeeperClient
  let trees = 0
  const cleanups: (() => unknown)[] = []

  beforeAll(async () => {
    server = await startZooKeeper()
    proxy = await FaultProxy.start(server.port)
    reader = new ZooKeeperClient({ servers: server.address })
    await reader.connect()
  })
  afterAll(async () => {
    await reader.close()
    await proxy.close()
    await server.stop()
  })
  afterEach(async () => {
    setDown(false)
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  })

  /** Cuts ZooKeeper off, or lets it back. */
  function setDown(isDown: boolean): void {
    proxy.faults.refusesConnections = isDown
    if (isDown) proxy.cut()
  }

  /** A part of the tree that nobody has used. */
  function newRoot(): string {
    return `/node${trees++}`
  }

  async function newPlace(root: string = newRoot()): Promise<Place> {
    return { root, port: await freePort(), cacheFile: join(temporaryFolder('ids'), 'worker.json') }
  }

  /** Starts a node behind the fault proxy (`direct` goes past it); everything is closed after the test. */
  async function start(place: Place, more: StartOptions = {}) {
    const { direct = false, offsetMs = 0, ...options } = more
    const address = { ip: '127.0.0.1', port: place.port }
    const servers = direct ? server.address : `127.0.0.1:${proxy.port}`
    const alarms: IdsAlarm[] = []
    const logs: string[] = []
    const started: Started = {
      alarms,
      logs,
      node: await SnowflakeNode.start({
        registry: new ZooKeeperRegistry({
          servers,
          root: place.root,
          address,
          sessionTimeoutMs: 3000,
          connectTimeoutMs: 10_000,
        }),
        address,
        cacheFile: place.cacheFile,
        reportEveryMs: 50,
        // Nothing empties the registry here: nobody waits, and a busy machine is no pause.
        settleMs: 0,
        registryAheadMs: 2000,
        markAheadMs: 200,
        claimWaitMs: 0,
        clock: { now: () => Date.now() + offsetMs },
        onAlarm: (alarm) => alarms.push(alarm),
        onLog: (message) => logs.push(message),
        ...options,
      }),
    }
    cleanups.push(() => started.node.close())
    return started
  }

  /** The code with which a start is refused, and the alarms of it. */
  async function refused(place: Place, more: StartOptions = {}): Promise<{ code: string; alarms: IdsAlarm[] }> {
    const alarms: IdsAlarm[] = []
    const error = await start(place, { onAlarm: (alarm) => alarms.push(alarm), ...more }).then(
      () => expect.fail('it started'),
      (error: { code: string }) => error,
    )
    return { code: error.code, alarms }
  }

  /** The record in leaf_forever. */
  async function recordOf(place: Place, workerId = 0) {
    const path = `${place.root}/leaf_forever/127.0.0.1:${place.port}-${String(workerId).padStart(10, '0')}`
    return { path, record: JSON.parse((await reader.getData(path))!.data) as { timestamp: number; mark: number } }
  }

  /** Runs after the test. */
  function afterTest(cleanup: () => unknown): void {
    cleanups.push(cleanup)
  }

  return {
    /** A client of the tests' own, past the proxy. */
    get reader() {
      return reader
    },
    setDown,
    newRoot,
    newPlace,
    start,
    refused,
    recordOf,
    afterTest,
  }
}
