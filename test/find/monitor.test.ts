import { fileURLToPath } from 'node:url'
import { openRespClient } from '@firebreak/core/node'
import { encodeCommand } from '@firebreak/core/resp'
import { findHotByMonitor, findSlots } from '@firebreak/find'
import { type RedisCluster, type RedisServer, startCluster, startRedis, startSource, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessPlanted, plantedNames } from './planted.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const isMonitored = async () => /flags=O/.test(await server.cli('CLIENT', 'LIST'))

test('all planted hot keys are found in order, with their exact counts, and MONITOR ends with it', async () => {
  const ended = new AbortController()
  const looking = findHotByMonitor({
    target: { port: server.port },
    durationMs: 60_000,
    restMs: 0,
    signal: ended.signal,
  })
  await waitFor(isMonitored)
  await accessPlanted(server.port)
  await server.cli('SET', 'marker', 'x')
  await server.cli('PING')
  ended.abort()
  const finding = await looking
  expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
  expect(finding.keys.map(({ accesses }) => accesses)).toEqual(plantedNames.map((_name, index) => 2000 - 80 * index))
  expect(finding.keys[0]!.commands).toEqual({ GET: 2000 })
  await waitFor(async () => !(await isMonitored()))
})

test('bursts pause in between, and are limited in bytes and time', async () => {
  const finding = await findHotByMonitor({ target: { port: server.port }, durationMs: 700, burstMs: 100, restMs: 100 })
  expect(finding.counts!['bursts']).toBeGreaterThan(1)
  expect(finding.counts!['bursts']).toBeLessThan(8)
  const looking = findHotByMonitor({ target: { port: server.port }, durationMs: 60_000, restMs: 0, maxBytes: 50_000 })
  await waitFor(isMonitored)
  await accessPlanted(server.port)
  const bounded = await looking
  expect(bounded.notes.join()).toMatch(/ended after 50000 bytes/)
  expect(bounded.scanned).toBeGreaterThan(100)
  expect(await isMonitored()).toBe(false)
})

test('a paused reader is cut off by the guard before the server’s memory grows', async () => {
  const child = startSource(main, [
    'find',
    'hot',
    '--monitor',
    '--duration',
    '60s',
    '--rest',
    '0',
    '--port',
    String(server.port),
  ])
  await waitFor(isMonitored, { timeoutMs: 30_000, what: () => child.output() })
  // Like Ctrl-Z: the process keeps its connection but does not read.
  child.signal('SIGSTOP')
  const before = Number(/used_memory:(\d+)/.exec(await server.cli('INFO', 'memory'))![1])
  const writer = await openRespClient({ port: server.port })
  const commands = Buffer.concat(Array.from({ length: 20 }, () => encodeCommand(['SET', 'big', 'x'.repeat(100_000)])))
  let sent = 0
  await waitFor(
    async () => {
      if (!(await isMonitored())) return true
      await writer.batch(commands, 20, () => {})
      sent += 20
      return false
    },
    { timeoutMs: 60_000, what: () => `the guard to end MONITOR after ${sent} commands` },
  )
  writer.close()
  const after = Number(/used_memory:(\d+)/.exec(await server.cli('INFO', 'memory'))![1])
  expect(after - before).toBeLessThan(64 << 20)
  child.signal('SIGCONT')
  await child.exited
  expect(child.output()).toMatch(/stopped by the guard/)
})

test('a reader that is killed leaves no MONITOR behind', async () => {
  const child = startSource(main, [
    'find',
    'hot',
    '--monitor',
    '--duration',
    '60s',
    '--rest',
    '0',
    '--port',
    String(server.port),
  ])
  await waitFor(isMonitored, { timeoutMs: 30_000 })
  child.signal('SIGKILL')
  await child.exited
  await waitFor(async () => !(await isMonitored()))
})

test('MONITOR is not started if it could not be ended from the server', async () => {
  await server.cli(
    'ACL',
    'SETUSER',
    'watcher',
    'on',
    '>secret',
    '~*',
    '+monitor',
    '+info',
    '+client|id',
    '+client|setname',
  )
  const target = { port: server.port, username: 'watcher', password: 'secret' }
  await expect(findHotByMonitor({ target, durationMs: 100 })).rejects.toMatchObject({ code: 'FB_FIND_MONITOR' })
  expect(await isMonitored()).toBe(false)
})

test('slots: the skewed node, then its slot, then its key', async () => {
  const cluster: RedisCluster = await startCluster({ masters: 3 })
  try {
    let isOver = false
    const load = (async () => {
      while (!isOver) {
        for (const { port } of cluster.nodes) await cluster.nodes[0]!.cli('-c', 'GET', `even:${port}`)
        const script = "for i=1,200 do redis.call('GET', KEYS[1]) end"
        await cluster.nodes[0]!.cli('-c', 'EVAL', script, '1', '{skewed}:key')
      }
    })()
    const finding = await findSlots({
      target: { port: cluster.nodes[1]!.port },
      durationMs: 1500,
      burstMs: 600,
      keysBy: 'monitor',
    })
    isOver = true
    await load
    const owner = finding.keys[0]!.node
    expect(finding).toMatchObject({ kind: 'slots', method: 'commandstats', topology: 'cluster' })
    expect(finding.nodes).toHaveLength(3)
    expect(finding.nodes![0]).toMatchObject({ node: owner })
    expect(finding.nodes![0]!.skew).toBeGreaterThan(1.5)
    expect(finding.nodes!.reduce((sum, { slots }) => sum + slots, 0)).toBe(16384)
    expect(finding.slots![0]).toMatchObject({ node: owner, slot: finding.keys[0]!.slot })
    expect(finding.keys[0]).toMatchObject({ key: '{skewed}:key' })
    expect(finding.notes.join()).toMatch(/times the mean/)
    const without = await findSlots({ target: { port: cluster.nodes[0]!.port }, durationMs: 100 })
    expect(without.notes.join()).toMatch(/does not count by slot/)
  } finally {
    await cluster.stop()
  }
})
