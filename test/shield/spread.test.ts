import { keySlot } from '@firebreak/core/commands'
import { type Hub, startHub } from '@firebreak/hub'
import {
  type GuardedChild,
  moveSlot,
  type RedisCluster,
  type RedisServer,
  scale,
  startCluster,
  startSource,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let servers: RedisCluster
let hub: Hub
let readers: GuardedChild[] = []

const copyCount = 20
// A key whose own node is not the one that is killed in the end.
const key = Array.from({ length: 100 }, (_, index) => `hot${index}`).find((name) => keySlot(name) < 5000)!

beforeAll(async () => {
  servers = await startCluster()
  const strategy = { strategy: 'RedundantKeys', copyCount, template: '{key}_{n}', ttlJitterMs: 50 }
  hub = await startHub({
    initialRules: [{ id: 'spread', prefix: 'hot', threshold: 20, windowMs: 1000, minHoldMs: 1000, strategy }],
    logLevel: 'fatal',
  })
  await servers.nodes[0]!.cli('SET', key, 'v1')
  readers = Array.from({ length: 4 }, (_, index) => {
    const plan = JSON.stringify({ addresses: servers.addresses, hub: hub.url, key, instanceId: `reader-${index}` })
    return startSource(new URL('./reader-process.ts', import.meta.url), [plan], { stdio: ['pipe', 'pipe', 'pipe'] })
  })
  await Promise.all(readers.map((reader) => reader.printed(/ready/)))
}, 60_000)
afterAll(async () => {
  await Promise.all(readers.map((reader) => reader.stop(500)))
  await hub.close()
  await servers.stop()
})

/** The copies on each reachable node. */
async function copies(): Promise<string[][]> {
  const lists = await Promise.all(servers.nodes.map((node) => node.cli('KEYS', `${key}_*`).catch(() => '')))
  return lists.map((list) => list.split('\n').filter((name) => name !== ''))
}

const isSpread = async () => {
  const counts = (await copies()).map((names) => names.length).sort()
  return counts.join() === '6,7,7'
}

/** Makes all processes read at once; returns the combined result. */
let round = 0
async function readAll(perProcess: number, expected: string): Promise<{ failed: number; wrong: number }> {
  // A number that was not used before distinguishes this answer from others.
  const reads = perProcess + ++round
  for (const reader of readers) reader.process.stdin!.write(`${reads} ${expected}\n`)
  const answers = await Promise.all(
    readers.map((reader) => reader.printed(new RegExp(`^${reads} (\\{.*\\})$`, 'm'), 120_000)),
  )
  const sum = { failed: 0, wrong: 0 }
  for (const [, json] of answers) {
    const { failed, wrong } = JSON.parse(json!) as typeof sum
    sum.failed += failed
    sum.wrong += wrong
  }
  return sum
}

const commandsOf = async (node: RedisServer) =>
  Number((await node.cli('INFO', 'stats')).match(/total_commands_processed:(\d+)/)![1])

test('4 processes that read a key with 20 copies load no node more than 1.15 times the mean', async () => {
  await waitFor(isSpread, { timeoutMs: 60_000, everyMs: 100, what: () => `copies of ${key} to be spread` })
  // Every process has its connections to all nodes.
  expect(await readAll(200, 'v1')).toEqual({ failed: 0, wrong: 0 })
  const before = await Promise.all(servers.nodes.map(commandsOf))
  expect(await readAll(scale(2000, 20_000), 'v1')).toEqual({ failed: 0, wrong: 0 })
  const after = await Promise.all(servers.nodes.map(commandsOf))
  const loads = after.map((count, index) => count - before[index]!)
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length
  expect(mean).toBeGreaterThan(scale(2000, 20_000))
  expect(Math.max(...loads) / mean).toBeLessThanOrEqual(1.15)
})

test('resharding moves the copies: they are spread evenly again, none is left behind, and no read is wrong', async () => {
  const [first, second, third] = servers.nodes as [RedisServer, RedisServer, RedisServer]
  const moved = (await copies())[1]!.slice(0, scale(2, 5))
  // All the while somebody reads.
  const reading = readAll(scale(2000, 20_000), 'v1')
  for (const name of moved) await moveSlot(servers, keySlot(name), second, third)
  await waitFor(isSpread, { timeoutMs: 60_000, everyMs: 100, what: 'copies to be spread again' })
  // The key itself moves too.
  await moveSlot(servers, keySlot(key), first, third)
  await waitFor(async () => (await third.cli('GET', key)) === 'v1')
  expect(await reading).toEqual({ failed: 0, wrong: 0 })
  await third.cli('SET', key, 'v2')
  await waitFor(async () => (await readAll(20, 'v2')).wrong === 0, { timeoutMs: 30_000 })
  await waitFor(isSpread, { timeoutMs: 60_000, everyMs: 100 })
  const before = await Promise.all(servers.nodes.map(commandsOf))
  expect(await readAll(scale(2000, 20_000), 'v2')).toEqual({ failed: 0, wrong: 0 })
  const loads = (await Promise.all(servers.nodes.map(commandsOf))).map((count, index) => count - before[index]!)
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length
  expect(Math.max(...loads) / mean).toBeLessThanOrEqual(1.15)
})

test('when the process that refreshes the copies is killed, another takes over and follows the key', async () => {
  const node = servers.nodes[2]!
  const refresher = () => node.cli('GET', `{${key}}:firebreak-refresher`)
  const first = await waitFor(async () => /^reader-\d$/.test(await refresher()) && refresher())
  const [killed] = readers.splice(Number(first!.slice(-1)), 1)
  killed!.signal('SIGKILL')
  await killed!.exited
  await node.cli('SET', key, 'v3')
  // No process still reads the old value, with the copies in use.
  await waitFor(async () => (await readAll(20, 'v3')).wrong === 0, { timeoutMs: 30_000 })
  await waitFor(async () => ![first, ''].includes(await refresher()), { timeoutMs: 30_000 })
  await node.cli('SET', key, 'v4')
  await waitFor(async () => (await readAll(20, 'v4')).wrong === 0, { timeoutMs: 30_000 })
  await waitFor(isSpread, { timeoutMs: 60_000, everyMs: 100 })
})

test('a killed node loses no read that another copy can answer', async () => {
  const dying = servers.nodes[1]!
  dying.child.signal('SIGKILL')
  await dying.child.exited
  expect(await readAll(scale(500, 5000), 'v4')).toEqual({ failed: 0, wrong: 0 })
})
