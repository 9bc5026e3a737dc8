import { copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import {
  FaultProxy,
  freePort,
  startZooKeeper,
  temporaryFolder,
  waitFor,
  type ZooKeeperServer,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { decodeSnowflake } from '../snowflake/layout.ts'
import { ZooKeeperRegistry } from '../workers/zookeeper-registry.ts'
import { ZooKeeperClient } from '../zookeeper/zookeeper-client.ts'
import type { IdsAlarm, SnowflakeNodeOptions } from './node-options.ts'
import { timePath } from './peer-clocks.ts'
import { SnowflakeNode } from './snowflake-node.ts'

let server: ZooKeeperServer
let proxy: FaultProxy
let reader: ZooKeeperClient
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

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  setDown(false)
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function setDown(isDown: boolean): void {
  proxy.faults.refusesConnections = isDown
  if (isDown) proxy.cut()
}

let trees = 0
interface Place {
  readonly root: string
  readonly port: number
  readonly cacheFile: string
}
async function newPlace(root = `/node${trees++}`): Promise<Place> {
  return { root, port: await freePort(), cacheFile: join(temporaryFolder('ids'), 'worker.json') }
}

interface Started {
  readonly node: SnowflakeNode
  readonly alarms: IdsAlarm[]
  readonly logs: string[]
}

/** Starts a node behind the fault proxy (`direct` goes past it); everything is closed after the test. */
async function start(place: Place, more: Partial<SnowflakeNodeOptions> & { direct?: boolean; offsetMs?: number } = {}) {
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
        sessionTimeoutMs: 1000,
        connectTimeoutMs: 1000,
      }),
      address,
      cacheFile: place.cacheFile,
      reportEveryMs: 50,
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

async function refused(
  place: Place,
  more: Parameters<typeof start>[1] = {},
): Promise<{ code: string; alarms: IdsAlarm[] }> {
  const alarms: IdsAlarm[] = []
  const error = await start(place, { onAlarm: (alarm) => alarms.push(alarm), ...more }).then(
    () => expect.fail('it started'),
    (error: { code: string }) => error,
  )
  return { code: error.code, alarms }
}

async function recordOf(place: Place, workerId = 0) {
  const path = `${place.root}/leaf_forever/127.0.0.1:${place.port}-${String(workerId).padStart(10, '0')}`
  return { path, record: JSON.parse((await reader.getData(path))!.data) as { timestamp: number; mark: number } }
}

describe('with ZooKeeper up', () => {
  test('a node writes ip, port and time, writes its mark ahead, and goes on writing', async () => {
    const place = await newPlace()
    const { node } = await start(place)
    const first = (await recordOf(place)).record
    expect(first).toMatchObject({ ip: '127.0.0.1', port: place.port })
    expect(Math.abs(first.timestamp - Date.now())).toBeLessThan(10_000)
    const id = decodeSnowflake(node.next())
    expect(id.workerId).toBe(0)
    const { record } = await recordOf(place)
    expect(id.timestampMs).toBeLessThanOrEqual(record.mark)
    expect(id.timestampMs).toBeLessThanOrEqual(JSON.parse(readFileSync(place.cacheFile, 'utf8')).mark)
    await waitFor(async () => (await recordOf(place)).record.timestamp > first.timestamp + 100)
    expect(node.status()).toMatchObject({ state: 'serving', workerId: 0, registry: { kind: 'zookeeper', isUp: true } })
  })

  test('a restart keeps the worker id and gives later ids only', async () => {
    const place = await newPlace()
    const other = await start(await newPlace(place.root))
    const first = await start(place)
    expect([other.node.workerId, first.node.workerId]).toEqual([0, 1])
    const last = first.node.nextMany(10_000).at(-1)!
    await first.node.close()
    expect(() => first.node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CLOSED' }))
    const second = await start(place)
    expect(second.node.workerId).toBe(1)
    expect(BigInt(second.node.next()) > BigInt(last)).toBe(true)
  })

  test('a lost or damaged file is made anew, with another worker id: the old one might run somewhere', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    rmSync(place.cacheFile)
    const second = await start(place)
    expect(second.node.workerId).toBe(1)
    await second.node.close()
    writeFileSync(place.cacheFile, 'damaged')
    expect((await start(place)).node.workerId).toBe(2)
  })

  test('a node without a file keeps its worker id too: nobody can run on past the mark in ZooKeeper', async () => {
    const { cacheFile: _, ...place } = await newPlace()
    const bare = (more = {}) => start({ ...place, cacheFile: '' }, { cacheFile: undefined as never, ...more })
    const first = await bare()
    const last = first.node.next()
    await first.node.close()
    const second = await bare()
    expect(second.node.workerId).toBe(0)
    expect(BigInt(second.node.next()) > BigInt(last)).toBe(true)
  })

  test('own time behind the record of leaf_forever: refused, with an alarm', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    const { code, alarms } = await refused(place, { offsetMs: -3000 })
    expect(code).toBe('FB_IDS_CLOCK_REFUSED')
    expect(alarms).toMatchObject([{ code: 'FB_IDS_CLOCK_REFUSED' }])
    // Also where the file is gone, and where the record is as Leaf itself writes it.
    rmSync(place.cacheFile)
    expect((await refused(place, { offsetMs: -3000 })).code).toBe('FB_IDS_CLOCK_REFUSED')
    const { path } = await recordOf(place)
    const leaf = { ip: '127.0.0.1', port: String(place.port), timestamp: Date.now() + 5000 }
    await reader.setData(path, JSON.stringify(leaf))
    expect((await refused(place)).code).toBe('FB_IDS_CLOCK_REFUSED')
    expect(await reader.getChildren(`${place.root}/leaf_temporary`)).toEqual([])
  })

  test('a new node whose clock is off the average of its live peers is refused, and the median is logged', async () => {
    const root = `/node${trees++}`
    for (let peer = 0; peer < 2; peer++) {
      const http = createServer((request, response) => {
        response.end(request.url === timePath ? JSON.stringify({ time: Date.now() }) : '{}')
      })
      await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
      cleanups.push(() => http.close())
      await start({ ...(await newPlace(root)), port: (http.address() as { port: number }).port })
    }
    const logs: string[] = []
    const place = await newPlace(root)
    for (const offsetMs of [-5000, 5000]) {
      const { code, alarms } = await refused(place, { offsetMs, onLog: (message) => logs.push(message) })
      expect(code).toBe('FB_IDS_PEERS_DISAGREE')
      expect(alarms).toMatchObject([{ code: 'FB_IDS_PEERS_DISAGREE' }])
    }
    expect(logs.filter((line) => /average.*median/.test(line))).toHaveLength(2)
    expect((await reader.getChildren(`${root}/leaf_forever`)).length).toBe(2)
    expect((await start(place, { peerThresholdMs: 60_000, offsetMs: 5000 })).node.workerId).toBe(2)
  })

  test('two nodes with one address: the second is refused and the first goes on', async () => {
    const place = await newPlace()
    const first = await start(place)
    const twin = { ...(await newPlace(place.root)), port: place.port }
    expect((await refused(twin)).code).toBe('FB_IDS_ADDRESS_TAKEN')
    expect(first.node.status().state).toBe('serving')
  })

  test('two nodes with one address and the first cut off from ZooKeeper: the second gets another worker id', async () => {
    const place = await newPlace()
    const first = await start(place)
    setDown(true)
    const twin = { ...(await newPlace(place.root)), port: place.port }
    const second = await start(twin, { direct: true, claimWaitMs: 10_000 })
    first.node.next()
    expect(second.node.workerId).not.toBe(first.node.workerId)
    setDown(false)
    // Back, the first finds its address taken and stops.
    await waitFor(() => first.node.status().state === 'refusing')
    expect(() => first.node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_ADDRESS_TAKEN' }))
    expect(first.alarms.map(({ code }) => code)).toContain('FB_IDS_ADDRESS_TAKEN')
    await second.node.close()
    await waitFor(() => first.node.status().state === 'serving')
    first.node.next()
  })

  test('a record removed by hand while its node runs: an alarm, and ids go on under a new worker id', async () => {
    const place = await newPlace()
    const { node, alarms } = await start(place)
    const last = node.next()
    await reader.delete((await recordOf(place)).path)
    await waitFor(() => alarms.some(({ code }) => code === 'FB_IDS_WORKER_LOST'))
    await waitFor(() => node.status().state === 'serving')
    expect(node.workerId).toBe(1)
    expect(BigInt(node.next()) > BigInt(last)).toBe(true)
  })

  test('a second process on the same cache file is refused', async () => {
    const place = await newPlace()
    await start(place)
    expect((await refused({ ...place, port: await freePort() })).code).toBe('FB_IDS_CACHE_LOCKED')
  })
})

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
    expect(second.node.status()).toMatchObject({ state: 'serving', workerId: 1, registry: { isUp: true } })
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
    expect((await refused(place, { offsetMs: -2000 })).code).toBe('FB_IDS_CLOCK_REFUSED')
  })

  test('at the start and the file is so old that the worker id may be somebody else’s: refused', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    setDown(true)
    expect((await refused(place, { recycleAfterMs: 10_000, offsetMs: 6000 })).code).toBe('FB_IDS_CACHE_STALE')
    expect((await start(place, { recycleAfterMs: 10_000, offsetMs: 1000 })).node.workerId).toBe(0)
  })

  test('while running: ids go on from the file past the mark in ZooKeeper, and it is written again afterwards', async () => {
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

  test('while running for half of the recycling time: no more ids, and again when it is back', async () => {
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

  test('a node without a file stops at the mark that ZooKeeper holds, and goes on when it is back', async () => {
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

describe('with a fixed worker id', () => {
  test('ids carry it, and the file keeps the mark over restarts', async () => {
    const cacheFile = join(temporaryFolder('ids'), 'worker.json')
    const first = await SnowflakeNode.start({ workerId: 77, cacheFile })
    const last = first.next()
    await first.close()
    const second = await SnowflakeNode.start({ workerId: 77, cacheFile })
    expect(decodeSnowflake(second.next()).workerId).toBe(77)
    expect(BigInt(second.next()) > BigInt(last)).toBe(true)
    await second.close()
    const behind = { now: () => Date.now() - 2000 }
    const onAlarm = () => {}
    await expect(SnowflakeNode.start({ workerId: 77, cacheFile, clock: behind, onAlarm })).rejects.toMatchObject({
      code: 'FB_IDS_CLOCK_REFUSED',
    })
    writeFileSync(cacheFile, 'x')
    await expect(SnowflakeNode.start({ workerId: 77, cacheFile, onAlarm })).rejects.toMatchObject({
      code: 'FB_IDS_CACHE_BROKEN',
    })
  })

  test('needs nothing else, and exactly one of registry and worker id is given', async () => {
    const node = await SnowflakeNode.start({ workerId: 5 })
    expect(node.decode(node.nextBigInt()).workerId).toBe(5)
    await node.close()
    await expect(SnowflakeNode.start({})).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(SnowflakeNode.start({ workerId: 1024 })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })
})
