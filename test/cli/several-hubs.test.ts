import { PassThrough } from 'node:stream'
import { protect, unprotect } from '@firebreak/client'
import { type Hub, openRedisStore, startHub } from '@firebreak/hub'
import { freePort, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: RedisServer
let hubs: Hub[]
const clients: Redis[] = []

beforeAll(async () => {
  server = await startRedis()
  hubs = []
  for (let index = 0; index < 2; index++)
    hubs.push(await startHub({ logLevel: 'fatal', store: await openRedisStore(server.url), hubId: `hub-${index}` }))
  for (const [index, hub] of hubs.entries()) {
    const client = new Redis(server.url)
    const own = { hubs: [hub.url], serviceId: 'shop', instanceId: `shop-${index}`, tableFile: false as const }
    clients.push(protect(client, own))
  }
  await waitFor(async () => {
    const counts = await Promise.all(hubs.map(async ({ url }) => (await hostsOf(url)).length))
    const { hubs: known } = (await (await fetch(`${hubs[0]!.url}/v1/hubs`)).json()) as { hubs: { processes: number }[] }
    return counts.every((count) => count === 1) && known.length === 2 && known.every(({ processes }) => processes === 1)
  })
})
afterAll(async () => {
  for (const client of clients) {
    unprotect(client)
    client.disconnect()
  }
  await Promise.all(hubs.map((hub) => hub.close()))
  await server.stop()
})

async function hostsOf(url: string): Promise<{ instanceId: string }[]> {
  return ((await (await fetch(`${url}/v1/hosts`)).json()) as { hosts: { instanceId: string }[] }).hosts
}

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const { signal } = new AbortController()
  const code = await runCommand(commands, words, { env: {}, stdin: process.stdin, stdout, stderr, signal })
  return { code, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') }
}

test('hosts of one hub says that there are others', async () => {
  const { out, err } = await run('hosts', '--hub', hubs[0]!.url)
  expect(out).toContain('shop-0')
  expect(out).not.toContain('shop-1')
  expect(err).toMatch(/^This is hub hub-0, one of 2: \d process(es)? reports? to the others; name every hub in --hub/)
})

test('hosts of all hubs lists the processes of all, each with its hub', async () => {
  const both = hubs.map(({ url }) => url).join(',')
  const { code, out, err } = await run('hosts', '--hub', both, '--json')
  const rows = JSON.parse(out) as { instanceId: string; hub: string }[]
  expect(rows.map(({ instanceId, hub }) => [instanceId, hub]).sort()).toEqual([
    ['shop-0', hubs[0]!.url],
    ['shop-1', hubs[1]!.url],
  ])
  expect([code, err]).toEqual([0, ''])
  expect((await run('hosts', '--hub', both)).out).toMatch(/ HUB\b/)
})

test('hosts names the hub that does not answer, and lists the others', async () => {
  const gone = `http://127.0.0.1:${await freePort()}`
  const { code, out, err } = await run('hosts', '--hub', `${gone},${hubs[1]!.url}`)
  expect([code, out]).toEqual([0, expect.stringContaining('shop-1')])
  expect(err).toContain(`The processes of the hub at ${gone} are missing: no hub answers at ${gone}`)
  expect((await run('hosts', '--hub', `${gone},${gone}`)).code).toBe(1)
})

test('top says which hub it shows, and how many others there are', async () => {
  const { out } = await run('top', '--once', '--hub', hubs[0]!.url)
  expect(out).toMatch(
    /^hub hub-0, one of 2: reads, writes and sensors are those of its own processes; 1 process reports/m,
  )
})
