import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { peek, protect, shieldOf } from '@firebreak/client'
import type { Overview } from '@firebreak/core'
import {
  type GuardedChild,
  type RedisCluster,
  type RedisServer,
  scale,
  sourceArgs,
  startCluster,
  startRedis,
  startSource,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WireSensor } from './wire-sensor.ts'

const execute = promisify(execFile)
const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const rule = { id: 'hot', prefix: 'hot-', threshold: 400, windowMs: 1000, minHoldMs: 10_000 }
const clientCount = 8

let cluster: RedisCluster
let protectedRedis: RedisServer
let hubs: { readonly child: GuardedChild; readonly url: string }[]
let clients: Redis[]
let timers: NodeJS.Timeout[]
let sensors: WireSensor[]

beforeEach(async () => {
  ;[cluster, protectedRedis] = await Promise.all([startCluster({ masters: 3 }), startRedis()])
  hubs = []
  clients = []
  timers = []
  sensors = []
  const children = [0, 1, 2].map(() => startHubProcess())
  for (const child of children) hubs.push({ child, url: (await child.printed(/hub (http:\S+)/))[1]! })
  await fetch(`${hubs[0]!.url}/v1/rules/hot`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
  })
}, 60_000)

afterEach(async () => {
  for (const timer of timers) clearInterval(timer)
  for (const sensor of sensors) sensor.close()
  for (const client of clients) {
    shieldOf(client)?.close()
    client.disconnect()
  }
  await Promise.all(hubs.map(({ child }) => child.stop(500)))
  await Promise.all([cluster.stop(), protectedRedis.stop()])
})

function startHubProcess(): GuardedChild {
  const storeUrl = `redis://${cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`
  return startSource(main, ['hub', '--port', '0', '--log-level', 'error', '--store-url', storeUrl])
}

/** Eight protected clients, each on one of the hubs, that all read `key` all the time. */
function readEverywhere(key: string): void {
  while (clients.length < clientCount) {
    const options = { hubs: hubs.map(({ url }) => url), serviceId: 'shop', tableFile: false as const }
    const instanceId = `client-${clients.length}`
    clients.push(protect(new Redis(protectedRedis.url), { ...options, instanceId }))
  }
  timers.push(
    setInterval(() => {
      for (const client of clients) client.get(key).catch(() => {})
    }, 8),
  )
}

const isLocalEverywhere = (key: string) => clients.every((client) => peek(client, key) !== undefined)

/** Watches a hub's table; fills the list when the key is missing from it. */
async function watch(url: string, redisClusterId: string, key: string, number: number): Promise<string[]> {
  const sensor = new WireSensor(url, number)
  sensors.push(sensor)
  await waitFor(() => sensor.isReady)
  const losses: string[] = []
  const look = () => {
    if (sensor.table.get(redisClusterId, key) === undefined) losses.push(`${key} is not in the table of ${url}`)
  }
  look()
  sensor.onTable = look
  return losses
}

async function overviews(): Promise<Overview[]> {
  return Promise.all(hubs.map(async ({ url }) => (await (await fetch(`${url}/v1/overview`)).json()) as Overview))
}

async function alarmsOf(): Promise<string[][]> {
  return (await overviews()).map(({ alarms }) => alarms.map(({ id }) => id))
}

async function clusterIdOf(key: string): Promise<string> {
  const keys = (await overviews()).flatMap((overview) => overview.keys)
  return keys.find((view) => view.key === key)?.redisClusterId ?? ''
}

test('a drill with eight clients on three hubs: hot by the sum of all, served locally by everyone', async () => {
  const rounds = String(scale(2, 20))
  const args = ['drill', '--json', '--rounds', rounds, '--clients', String(clientCount)]
  const hubUrls = hubs.map(({ url }) => url).join(',')
  const { stdout } = await execute(process.execPath, [...sourceArgs, main, ...args, '--hub', hubUrls])
  const result = JSON.parse(stdout) as {
    effectiveMs: { p50: number; p99: number; max: number }
    highestAlone: number
    threshold: number
    staleReads: number
    redisShareAfter: number
  }
  // Stated, not judged: the bar of 500 ms is for a machine that does nothing else.
  console.log(`effective everywhere: ${JSON.stringify(result.effectiveMs)} ms`)
  // Each reads a fifth of it; one that the machine held up catches up. Alone none reaches it.
  expect(result.highestAlone).toBeLessThan(result.threshold)
  expect(result.staleReads).toBe(0)
  expect(result.redisShareAfter).toBeLessThan(0.2)
  expect(result.effectiveMs.p99).toBeLessThan(10_000)
}, 120_000)

test('one hub killed: no hot key is lost, no client is without its table, and new keys are still found', async () => {
  await protectedRedis.cli('SET', 'hot-1', 'a')
  await protectedRedis.cli('SET', 'hot-2', 'b')
  readEverywhere('hot-1')
  await waitFor(() => isLocalEverywhere('hot-1'), { timeoutMs: 20_000 })
  const losses = await Promise.all(
    hubs.slice(1).map(async ({ url }, number) => watch(url, await clusterIdOf('hot-1'), 'hot-1', 100 + number)),
  )
  hubs[0]!.child.signal('SIGKILL')
  await hubs[0]!.child.exited
  const dead = hubs.shift()!
  expect(dead.child.process.signalCode).toBe('SIGKILL')
  // Whoever was on it finds another hub, which has the key in its table from the first snapshot on.
  await waitFor(() => clients.every((client) => shieldOf(client)!.isConnected), { timeoutMs: 20_000 })
  const overview = await overviews()
  expect(
    overview.every(({ keys }) =>
      keys.some(({ key, state }) => key === 'hot-1' && (state === 'hot' || state === 'cooling')),
    ),
  ).toBe(true)
  await waitFor(async () => {
    const counts = (await overviews()).map((each) => each.sensors.connected)
    return counts.reduce((sum, count) => sum + count, 0) === clientCount + sensors.length
  })
  await waitFor(() => isLocalEverywhere('hot-1'), { timeoutMs: 20_000 })
  readEverywhere('hot-2')
  await waitFor(() => isLocalEverywhere('hot-2'), { timeoutMs: 20_000 })
  expect(losses.flat()).toEqual([])
  // The others say that it is gone, until another has taken its place.
  const missing = async () => (await alarmsOf()).map((ids) => ids.filter((id) => id.startsWith('hub-lost:')).length)
  await waitFor(async () => (await missing()).every((count) => count === 1), { timeoutMs: 30_000 })
  const child = startHubProcess()
  hubs.push({ child, url: (await child.printed(/hub (http:\S+)/))[1]! })
  await waitFor(async () => (await missing()).every((count) => count === 0), { timeoutMs: 30_000 })
}, 150_000)

test('the Redis of the hubs restarted without its data: it is said, nothing hot is lost, and all goes on by itself', async () => {
  await protectedRedis.cli('SET', 'hot-1', 'a')
  await protectedRedis.cli('SET', 'hot-2', 'b')
  readEverywhere('hot-1')
  await waitFor(() => isLocalEverywhere('hot-1'), { timeoutMs: 20_000 })
  const redisClusterId = await clusterIdOf('hot-1')
  const losses = await Promise.all(hubs.map(({ url }, number) => watch(url, redisClusterId, 'hot-1', 100 + number)))
  await cluster.stop()
  await waitFor(async () => (await alarmsOf()).every((ids) => ids.includes('board')), { timeoutMs: 20_000 })
  const verdicts = (await overviews()).map(({ isSafe, verdict }) => (isSafe ? 'safe' : verdict))
  expect(verdicts).toEqual(hubs.map(() => expect.stringContaining('Redis that the hubs share')))
  const nodes = await Promise.all(cluster.nodes.map((node) => node.restart()))
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())))
  cluster = { ...cluster, nodes, stop }
  await waitFor(async () => (await alarmsOf()).every((ids) => !ids.includes('board')), { timeoutMs: 30_000 })
  expect((await alarmsOf()).flat()).toContain('board-reset')
  const rules = await Promise.all(hubs.map(async ({ url }) => (await fetch(`${url}/v1/rules`)).text()))
  expect(rules.every((text) => text.includes('"hot"'))).toBe(true)
  readEverywhere('hot-2')
  await waitFor(() => isLocalEverywhere('hot-2'), { timeoutMs: 20_000 })
  expect(losses.flat()).toEqual([])
}, 90_000)
