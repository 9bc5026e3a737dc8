import { PassThrough } from 'node:stream'
import { protect, shieldOf } from '@firebreak/client'
import type { AutopilotView, KeyDetail } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { letTimePass, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** Counting the bits of 4 MB takes Redis some 0.4 ms: two thousand a second fill it, and cost whoever asks next to nothing. */
const valueBytes = 4 * 1024 * 1024
const crowdSize = 30
/** Without its load being measured, 1,000 reads a second would make a key hot. */
const calmPerSecond = 60

let server: RedisServer
let hub: Hub
let plain: Redis
const apps: Redis[] = []

/** Clients of one service share a shield: these are two sensors. */
function app(serviceId: string): Redis {
  const redis = new Redis(server.port)
  protect(redis, { hubs: [hub.url], serviceId, redisClusterId: 'main', tableFile: false })
  apps.push(redis)
  return redis
}

beforeAll(async () => {
  server = await startRedis()
  hub = await startHub({ logLevel: 'silent' })
  plain = new Redis(server.port)
  const value = Buffer.alloc(valueBytes, 0x55)
  await plain.set('big', value)
  for (let index = 0; index < crowdSize; index++) await plain.set(`small:${index}`, value)
  app('shop')
  app('search')
  await waitFor(() => hub.core.fleet.hosts.counts().connected === 2)
}, 60_000)
afterAll(async () => {
  for (const redis of apps) {
    shieldOf(redis)?.close()
    redis.disconnect()
  }
  plain.disconnect()
  await hub.close()
  await server.stop()
})

async function view(): Promise<AutopilotView> {
  return (await (await fetch(`${hub.url}/v1/autopilot`)).json()) as AutopilotView
}

async function probes(): Promise<number> {
  const list = String(await plain.call('CLIENT', 'LIST'))
  return list.split('\n').filter((line) => line.includes('name=firebreak-load')).length
}

async function keyDetail(key: string): Promise<KeyDetail | undefined> {
  const response = await fetch(`${hub.url}/v1/keys/main/${key}`)
  return response.ok ? ((await response.json()) as KeyDetail) : undefined
}

test('nodes are measured while a rule goes by it, by the processes that are asked', async () => {
  expect(await probes()).toBe(0)
  expect((await view()).nodes).toEqual([])
  const rule = { glob: '*', threshold: 'auto', strategy: 'LocalCache' }
  const response = await fetch(`${hub.url}/v1/rules/auto`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rule),
  })
  expect(response.ok).toBe(true)
  const [node] = await waitFor(async () => {
    const { nodes } = await view()
    return nodes.length > 0 && nodes
  })
  expect(node).toMatchObject({
    redisClusterId: 'main',
    node: `localhost:${server.port}`,
    source: 'cpu',
    isStrained: false,
  })
  // Of the processes of a cluster up to three are asked, and here are two.
  await waitFor(async () => (await probes()) === 2)
})

test('a calm node: a key that is most of its traffic is left alone', async () => {
  const [one] = apps
  const until = performance.now() + 4000
  while (performance.now() < until) {
    await Promise.all(Array.from({ length: calmPerSecond / 10 }, () => one!.bitcount('big')))
    await letTimePass(100)
  }
  const { nodes } = await view()
  expect(nodes[0]!.isStrained).toBe(false)
  expect(nodes[0]!.operationsPerSecond).toBeGreaterThan(calmPerSecond / 3)
  expect(hub.core.delivery.size).toBe(0)
  const detail = await waitFor(() => keyDetail('big'))
  expect(detail.state).toBe('cold')
  expect(detail.reason).toMatch(/calm, so nothing is done$/)
}, 30_000)

test('a full node with one key that dominates: it is handled, and the reason says why in words and figures', async () => {
  let isOver = false
  // Everybody asks again as soon as there is an answer: Redis has as much to do as it can.
  const load = apps.flatMap((redis, nth) =>
    Array.from({ length: 12 }, async (_, loop) => {
      for (let index = nth * 7 + loop; !isOver; index++) {
        await redis.bitcount(index % 5 < 2 ? 'big' : `small:${index % crowdSize}`)
      }
    }),
  )
  try {
    const detail = await waitFor(
      async () => {
        const found = await keyDetail('big')
        return found?.state === 'hot' && found
      },
      { timeoutMs: 90_000 },
    )
    expect(detail.ruleId).toBe('auto')
    expect(detail.strategy?.strategy).toBe('LocalCache')
    expect(detail.reason).toMatch(
      new RegExp(
        `^hot because rule \`auto\`: [\\d,]+ reads/s.* and 0 writes/s are [\\d.]+ % of what node localhost:${server.port} can do \\([\\d,]+/s\\), which would be at \\d+ %`,
      ),
    )
    expect(detail.reason).toContain('LocalCache keeps')
    // And it helps: reads of it are answered from memory.
    await waitFor(async () => ((await keyDetail('big'))?.effect?.localHitRate ?? 0) > 0.5, { timeoutMs: 30_000 })
    const stdout = new PassThrough()
    const io = { env: { FIREBREAK_HUB: hub.url }, stdin: process.stdin, stdout, stderr: stdout }
    expect(await runCommand(commands, ['autopilot'], { ...io, signal: new AbortController().signal })).toBe(0)
    expect(String(stdout.read())).toContain(`localhost:${server.port}`)
  } finally {
    isOver = true
    await Promise.all(load)
  }
}, 180_000)

test('a Redis that refuses INFO is measured by its answers', async () => {
  const sourceIs = (source: string) => waitFor(async () => (await view()).nodes[0]?.source === source)
  await plain.call('ACL', 'SETUSER', 'default', '-info')
  await sourceIs('latency')
  await plain.call('ACL', 'SETUSER', 'default', '+info')
  await sourceIs('cpu')
}, 40_000)

test('without such a rule nobody measures any more', async () => {
  await fetch(`${hub.url}/v1/rules/auto`, { method: 'DELETE' })
  await waitFor(async () => (await probes()) === 0)
})
