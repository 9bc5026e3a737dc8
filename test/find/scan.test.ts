import { keySlot } from '@firebreak/core/commands'
import { discover, findBigByScan, findHotByScan } from '@firebreak/find'
import { type RedisCluster, type RedisServer, scale, startCluster, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bigElements, fillSmall, plantBig, plantedNames } from './planted.ts'

describe('one server', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lfu', '--lfu-log-factor', '0'] })
    await fillSmall(server, scale(20_000, 1_000_000))
    await plantBig(server.cli)
    // With a factor of 0 every access counts, so that the order of the counters is that of the accesses.
    const heat = "for i=1,ARGV[1] do redis.call('GET', KEYS[1]) end"
    for (const [index, name] of plantedNames.entries()) {
      await server.cli('SET', `hot:${name}`, 'v')
      await server.cli('EVAL', heat, '1', `hot:${name}`, String(230 - 11 * index))
    }
  })
  afterAll(() => server.stop())

  test('all planted hot keys are found by their counters, hottest first', async () => {
    const finding = await findHotByScan({ target: { port: server.port }, resampleMs: 0 })
    expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames.map((name) => `hot:${name}`))
    expect(finding).toMatchObject({ kind: 'hot', method: 'scan', topology: 'standalone', isComplete: true })
  })

  test('a key under heavy load is reported with its rate and the error of the rate', async () => {
    await server.cli('CONFIG', 'SET', 'lfu-log-factor', '10')
    await server.cli('SET', 'now', 'v')
    const burst = () => server.cli('EVAL', "for i=1,300 do redis.call('GET', KEYS[1]) end", '1', 'now')
    await burst()
    const burstsAt: number[] = []
    let isOver = false
    const looking = findHotByScan({ target: { port: server.port }, resampleMs: 1200, match: 'now' }).finally(() => {
      isOver = true
    })
    while (!isOver) {
      await burst()
      burstsAt.push(performance.now())
    }
    const finding = await looking
    // A busy machine sends unevenly: the scan's rate is between the slowest and the fastest half second.
    const rates = burstsAt.flatMap((from) => {
      if (from + 500 > burstsAt.at(-1)!) return []
      return burstsAt.filter((at) => at > from && at <= from + 500).length * 600
    })
    const [slowest, fastest] = [Math.min(...rates), Math.max(...rates)]
    const [key] = finding.keys
    expect(key!.relativeError!).toBeLessThan(0.5)
    // The truth lies within four standard errors, up or down.
    const factor = Math.max(key!.accessesPerSecond! / fastest, slowest / key!.accessesPerSecond!)
    expect(factor).toBeLessThan(1 + 4 * key!.relativeError!)
    await server.cli('CONFIG', 'SET', 'lfu-log-factor', '0')
  })

  test('all planted big keys are found in order, and the biggest of each type', async () => {
    const finding = await findBigByScan({ target: { port: server.port }, samples: 0, countsElements: true })
    expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
    const lists = finding.types!.find(({ type }) => type === 'list')!
    expect(lists.byElements.map(({ key }) => key)).toEqual(plantedNames.filter((_name, index) => index % 2 === 1))
    expect(lists.byElements[0]).toMatchObject({ elements: bigElements(1), encoding: 'quicklist' })
    expect(finding.scanned).toBe(Number(await server.cli('DBSIZE')))
    const prefixes = finding.prefixes!.children
    expect(prefixes.map(({ prefix }) => prefix).sort()).toEqual(['planted:', 'small:'])
    expect(prefixes[0]!.bytes).toBeGreaterThan(prefixes[1]!.bytes)
  })

  test('before 7.2 elements are not counted on a master unless asked for, and no key is touched', async () => {
    // Counters decay by the minute; not while they are compared.
    await server.cli('CONFIG', 'SET', 'lfu-decay-time', '0')
    const before = await server.cli('OBJECT', 'FREQ', 'planted:01')
    const finding = await findBigByScan({ target: { port: server.port }, match: 'planted:*' })
    expect(finding.notes.join()).toMatch(/elements were not counted/)
    expect(finding.types!.find(({ type }) => type === 'list')!.elements).toBe(0)
    expect(await server.cli('OBJECT', 'FREQ', 'planted:01')).toBe(before)
    await server.cli('CONFIG', 'SET', 'lfu-decay-time', '1')
    const asked = await findBigByScan({ target: { port: server.port }, match: 'planted:*', countsElements: true })
    expect(asked.notes.join()).toMatch(/changed LRU and LFU data/)
    expect(asked.keys[1]!.elements).toBe(bigElements(1))
  })

  test('type, glob and thresholds narrow what is found', async () => {
    const target = { port: server.port }
    const byType = await findBigByScan({ target, type: 'list', top: 3 })
    expect(byType.keys.map(({ key }) => key)).toEqual(['planted:01', 'planted:03', 'planted:05'])
    const byGlob = await findBigByScan({ target, match: 'planted:0[0-2]' })
    expect(byGlob.keys).toHaveLength(3)
    const byBytes = await findBigByScan({ target, minBytes: 200_000 })
    expect(byBytes.keys.every(({ bytes }) => bytes! >= 200_000)).toBe(true)
    const byElements = await findBigByScan({ target, countsElements: true, minElements: bigElements(5) })
    expect(byElements.keys.map(({ key }) => key)).toEqual(['planted:01', 'planted:03', 'planted:05'])
  })

  test('the rate limit is kept, and stopping returns what was found so far', async () => {
    const startedAt = performance.now()
    const ended = new AbortController()
    let seen = 0
    const finding = await findBigByScan({
      target: { port: server.port },
      keysPerSecond: 5000,
      count: 500,
      signal: ended.signal,
      progress: ({ done }) => {
        seen = done
        if (done >= 3000) ended.abort()
      },
    })
    expect(finding.isComplete).toBe(false)
    expect(finding.scanned).toBe(seen)
    expect(finding.keys.length).toBe(20)
    // 3,000 keys at 5,000 a second; the last page needs no wait.
    expect(performance.now() - startedAt).toBeGreaterThan(350)
  })

  test('without LFU the error says how to switch and where else to look', async () => {
    await server.cli('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
    const failure = await findHotByScan({ target: { port: server.port } }).catch((error) => error)
    expect(failure).toMatchObject({ code: 'FB_FIND_NO_LFU' })
    expect(failure.message).toMatch(/CONFIG SET maxmemory-policy volatile-lfu/)
    for (const way of ['--capture', '--monitor', '--server']) expect(failure.message).toContain(way)
    await server.cli('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lfu')
  })
})

describe('a cluster with replicas', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1, args: ['--maxmemory-policy', 'allkeys-lfu'] })
    const owner = async (key: string) => {
      const topology = await discover({ port: cluster.nodes[0]!.port })
      const slot = keySlot(key)
      const master = topology.masters.find(({ slots }) => slots!.some(([from, to]) => slot >= from && slot <= to))!
      return cluster.nodes.find(({ port }) => port === master.target.port)!
    }
    const owners = new Map<string, RedisServer>()
    for (const name of plantedNames) owners.set(name, await owner(name))
    await plantBig(async (...args) => owners.get(args[3]!)!.cli(...args))
    for (const node of cluster.nodes) {
      await waitFor(
        async () => {
          const info = await node.cli('INFO', 'replication')
          return /state=online|master_link_status:up/.test(info)
        },
        { timeoutMs: 30_000, everyMs: 50, what: `the replication of ${node.port}` },
      )
    }
    await waitFor(async () => {
      const { replicas } = await discover({ port: cluster.nodes[0]!.port })
      return [...replicas.values()].every((list) => list.length === 1)
    })
  })
  afterAll(() => cluster.stop())

  test('all nodes are read from any one of them, and the answer is one', async () => {
    const finding = await findBigByScan({ target: { port: cluster.nodes[4]!.port }, samples: 0 })
    expect(finding.topology).toBe('cluster')
    expect(finding.source).toHaveLength(3)
    expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
    for (const { key, slot } of finding.keys) expect(slot).toBe(keySlot(key))
    expect(new Set(finding.keys.map(({ node }) => node)).size).toBeGreaterThan(1)
  })

  test('replicas are preferred, so that elements may be counted; masters are read on request', async () => {
    const topology = await discover({ port: cluster.nodes[0]!.port })
    const masters = new Set(topology.masters.map(({ address }) => address))
    const finding = await findBigByScan({ target: { port: cluster.nodes[0]!.port } })
    expect(finding.keys.every(({ node }) => !masters.has(node!))).toBe(true)
    expect(finding.keys.find(({ key }) => key === 'planted:01')!.elements).toBe(bigElements(1))
    const fromMasters = await findBigByScan({ target: { port: cluster.nodes[0]!.port }, prefersReplicas: false })
    expect(fromMasters.keys.every(({ node }) => masters.has(node!))).toBe(true)
  })

  test('hot keys of all nodes are in one list', async () => {
    const finding = await findHotByScan({ target: { port: cluster.nodes[0]!.port }, resampleMs: 0 })
    expect(finding.scanned).toBe(20)
    expect(new Set(finding.keys.map(({ node }) => node)).size).toBe(3)
  })
})
