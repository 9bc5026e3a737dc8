import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { freePort, temporaryFolder, waitFor } from '@firebreak/testkit'
import { describe, expect, test } from 'vitest'
import { decodeSnowflake } from '../snowflake/layout.ts'
import { timePath } from './peer-clocks.ts'
import { SnowflakeNode } from './snowflake-node.ts'
import { zooKeeperNodes } from './testing/zookeeper-nodes.ts'

const nodes = zooKeeperNodes()
const { afterTest, newPlace, newRoot, recordOf, refused, setDown, start } = nodes

describe('with ZooKeeper up', () => {
  test('a node writes ip, port and time, writes its mark ahead, and keeps writing', async () => {
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

  test('a restart keeps the worker id and issues only later ids', async () => {
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

  test('a lost or damaged file is created again, with another worker id: the old one might run elsewhere', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    rmSync(place.cacheFile)
    const second = await start(place)
    expect(second.node.workerId).toBe(1)
    await second.node.close()
    writeFileSync(place.cacheFile, 'damaged')
    expect((await start(place)).node.workerId).toBe(2)
  })

  test('a node without a file keeps its worker id too: no other node can run past the mark in ZooKeeper', async () => {
    const { cacheFile: _, ...place } = await newPlace()
    const bare = (more = {}) => start({ ...place, cacheFile: '' }, { cacheFile: undefined as never, ...more })
    const first = await bare()
    const last = first.node.next()
    await first.node.close()
    const second = await bare()
    expect(second.node.workerId).toBe(0)
    expect(BigInt(second.node.next()) > BigInt(last)).toBe(true)
  })

  test('a clock behind the record of leaf_forever is refused, with an alarm', async () => {
    const place = await newPlace()
    await (await start(place)).node.close()
    const { code, alarms } = await refused(place, { offsetMs: -60_000 })
    expect(code).toBe('FB_IDS_CLOCK_REFUSED')
    expect(alarms).toMatchObject([{ code: 'FB_IDS_CLOCK_REFUSED' }])
    // Even if the file is gone, or the record is in the form that Leaf writes.
    rmSync(place.cacheFile)
    expect((await refused(place, { offsetMs: -60_000 })).code).toBe('FB_IDS_CLOCK_REFUSED')
    const { path } = await recordOf(place)
    const leaf = { ip: '127.0.0.1', port: String(place.port), timestamp: Date.now() + 60_000 }
    await nodes.reader.setData(path, JSON.stringify(leaf))
    expect((await refused(place)).code).toBe('FB_IDS_CLOCK_REFUSED')
    expect(await nodes.reader.getChildren(`${place.root}/leaf_temporary`)).toEqual([])
  })

  test('a new node whose clock is off the average of its live peers is refused, and the median is logged', async () => {
    const root = newRoot()
    for (let peer = 0; peer < 2; peer++) {
      const http = createServer((request, response) => {
        response.end(request.url === timePath ? JSON.stringify({ time: Date.now() }) : '{}')
      })
      await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
      afterTest(() => http.close())
      await start({ ...(await newPlace(root)), port: (http.address() as { port: number }).port })
    }
    const logs: string[] = []
    const place = await newPlace(root)
    for (const offsetMs of [-60_000, 60_000]) {
      const { code, alarms } = await refused(place, { offsetMs, onLog: (message) => logs.push(message) })
      expect(code).toBe('FB_IDS_PEERS_DISAGREE')
      expect(alarms).toMatchObject([{ code: 'FB_IDS_PEERS_DISAGREE' }])
    }
    expect(logs.filter((line) => /average.*median/.test(line))).toHaveLength(2)
    expect((await nodes.reader.getChildren(`${root}/leaf_forever`)).length).toBe(2)
    expect((await start(place, { peerThresholdMs: 90_000, offsetMs: 60_000 })).node.workerId).toBe(2)
  })

  test('two nodes with one address: the second is refused and the first continues', async () => {
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
    // When it is back, the first finds its address taken and stops.
    await waitFor(() => first.node.status().state === 'refusing')
    expect(() => first.node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_ADDRESS_TAKEN' }))
    expect(first.alarms.map(({ code }) => code)).toContain('FB_IDS_ADDRESS_TAKEN')
    await second.node.close()
    await waitFor(() => first.node.status().state === 'serving')
    first.node.next()
  })

  test('a record removed by hand while its node runs: an alarm, and ids continue under a new worker id', async () => {
    const place = await newPlace()
    const { node, alarms } = await start(place)
    const last = node.next()
    await nodes.reader.delete((await recordOf(place)).path)
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

describe('with a fixed worker id', () => {
  test('ids contain it, and the file keeps the mark across restarts', async () => {
    const cacheFile = join(temporaryFolder('ids'), 'worker.json')
    const first = await SnowflakeNode.start({ workerId: 77, cacheFile })
    const last = first.next()
    await first.close()
    const second = await SnowflakeNode.start({ workerId: 77, cacheFile })
    expect(decodeSnowflake(second.next()).workerId).toBe(77)
    expect(BigInt(second.next()) > BigInt(last)).toBe(true)
    await second.close()
    const behind = { now: () => Date.now() - 60_000 }
    const onAlarm = () => {}
    await expect(SnowflakeNode.start({ workerId: 77, cacheFile, clock: behind, onAlarm })).rejects.toMatchObject({
      code: 'FB_IDS_CLOCK_REFUSED',
    })
    writeFileSync(cacheFile, 'x')
    await expect(SnowflakeNode.start({ workerId: 77, cacheFile, onAlarm })).rejects.toMatchObject({
      code: 'FB_IDS_CACHE_BROKEN',
    })
  })

  test('needs nothing else; exactly one of registry and worker id must be given', async () => {
    const node = await SnowflakeNode.start({ workerId: 5 })
    expect(node.decode(node.nextBigInt()).workerId).toBe(5)
    await node.close()
    await expect(SnowflakeNode.start({})).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
    await expect(SnowflakeNode.start({ workerId: 1024 })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })
})
