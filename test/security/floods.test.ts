import { encodeJsonFrame } from '@firebreak/core'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type FloodCost, type HeldRequest, holdOpen } from './hold-open.ts'
import { RawSensor } from './raw-sensor.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000, maxConcurrency: 12 })

const megabyte = 1024 * 1024
const maxPeakBytes = 10 * megabyte
const token = 'a-token-that-nobody-guesses'
const tokens = { apps: [{ name: 'shop', token }], people: [{ name: 'ann', role: 'admin', token: `${token}-too` }] }

let redis: RedisServer
let closedRedis: RedisServer
type Kind = 'hub' | 'limits' | 'ids' | 'proxy' | 'ownUsers' | 'redisUsers'
const victims = {} as Record<Kind, Victim>

beforeAll(async () => {
  redis = await startRedis()
  closedRedis = await startRedis({ args: ['--requirepass', 'of-the-server'] })
  const upstream = `redis://127.0.0.1:${redis.port}`
  const started = await Promise.all([
    startVictim('hub', {
      tokens,
      connections: {
        headersTimeoutMs: 1000,
        requestTimeoutMs: 1500,
        frameTimeoutMs: 1000,
        maxUnfinishedBytes: 4 * megabyte,
      },
    }),
    startVictim('limits', { token, connections: { headersTimeoutMs: 1000, requestTimeoutMs: 1500 } }),
    startVictim('ids', { token, connections: { headersTimeoutMs: 1000, requestTimeoutMs: 1500 } }),
    startVictim('proxy', { upstream, port: 0, metricsPort: 0 }),
    startVictim('proxy', { upstream, port: 0, users: [{ name: 'default', password: 'of-the-proxy' }] }),
    startVictim('proxy', { upstream: `redis://127.0.0.1:${closedRedis.port}`, port: 0 }),
  ])
  const kinds = ['hub', 'limits', 'ids', 'proxy', 'ownUsers', 'redisUsers'] as const
  for (const [index, kind] of kinds.entries()) victims[kind] = started[index]!
})
afterAll(async () => {
  for (const { child } of Object.values(victims)) await child.stop()
  await redis.stop()
  await closedRedis.stop()
})

const post = (path: string, port: number): HeldRequest => ({
  port,
  head: `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: text/plain\r\nContent-Length: ${16 * megabyte}\r\n\r\n`,
  bytes: 15 * megabyte,
})

const upgrade = (port: number, first: Uint8Array = Buffer.alloc(0)): HeldRequest => {
  // A masked binary message of 15 MB, of which 1 MB never comes.
  const message = Buffer.alloc(14)
  message[0] = 0x82
  message[1] = 0xff
  message.writeBigUInt64BE(BigInt(15 * megabyte), 2)
  const head = `GET /v1/sensor HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`
  return { port, head: Buffer.concat([Buffer.from(head), first, message]), bytes: 14 * megabyte }
}

/** The hello of a sensor as a masked message, whose mask changes nothing. */
function hello(instanceId: string): Uint8Array {
  const frame = encodeJsonFrame('hello', 0, {
    ...{ serviceId: 'shop', hostId: 'h', instanceId, agent: 'raw/1', redisClusterIds: ['main'] },
    ...{ epoch: '', version: 0, sentAt: Date.now(), token },
  })
  const header = Buffer.from([0x82, 0xfe, frame.length >> 8, frame.length & 0xff, 0, 0, 0, 0])
  return Buffer.concat([header, frame])
}

const turns = new Map<Victim, Promise<unknown>>()

/** Floods run side by side, but each victim, whose memory is measured, has one at a time. */
function inTurn<T>(victim: Victim, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(victim) ?? Promise.resolve()).then(work, work)
  turns.set(victim, turn)
  return turn
}

/** A first, small flood makes the process take what connections cost it once and for all. */
function flood(victim: Victim, request: HeldRequest): Promise<FloodCost> {
  return inTurn(victim, async () => {
    await holdOpen(victim, { ...request, bytes: 64 * 1024 }, 40, 500, 0)
    return holdOpen(victim, request)
  })
}

test.concurrent.each([
  ['hub', '/v1/reports'],
  ['hub', '/nowhere'],
  ['limits', '/v1/limits/policy'],
  ['ids', '/nowhere'],
  ['proxy', '/metrics'],
] as const)('40 requests without a token that hold a body open cost little: %s %s', async (kind, path) => {
  const victim = victims[kind]
  const { peakBytes, answers } = await flood(victim, post(path, victim.ports.http))
  expect(peakBytes).toBeLessThan(maxPeakBytes)
  for (const answer of answers) expect(answer).toMatch(/^$|^HTTP\/1.1 4/)
})

test.concurrent('40 sensors that say no hello but send a large frame cost little', async () => {
  const { peakBytes, open } = await flood(victims.hub, upgrade(victims.hub.ports.http))
  expect(peakBytes).toBeLessThan(maxPeakBytes)
  expect(open).toBe(0)
})

test.concurrent('40 sensors that have said hello, and begin a large frame without its end, cost little and are cut off', async () => {
  const { hub } = victims
  let nth = 0
  const request = (): HeldRequest => ({
    ...upgrade(hub.ports.http),
    headOf: () => upgrade(hub.ports.http, hello(`held-${nth++}`)).head,
  })
  const { peakBytes, open } = await inTurn(hub, async () => {
    await holdOpen(hub, { ...request(), bytes: 32 * 1024 }, 40, 500, 0)
    return holdOpen(hub, request(), 40, 3000)
  })
  // What is held is bounded by maxUnfinishedBytes; what was let go is garbage until V8 finds that worth a collection. Without
  // the bound it is 560 MB.
  expect(peakBytes).toBeLessThan(10 * maxPeakBytes)
  expect(open).toBe(0)
})

test.concurrent('a process has a few connections at one time: of more the oldest are ended', () =>
  inTurn(victims.hub, async () => {
    const open = () => new RawSensor(victims.hub.ports.http, { instanceId: 'crowd', token }).answered()
    const sensors: RawSensor[] = []
    for (let nth = 0; nth < 6; nth++) sensors.push(await open())
    await waitFor(() => sensors[1]!.closed !== undefined)
    expect(sensors.map(({ closed }) => closed)).toEqual([
      ...Array(2).fill('1008 the process has reconnected'),
      ...Array(4).fill(undefined),
    ])
    for (const sensor of sensors) sensor.close()
  }))

test.concurrent('40 Redis clients of ids that show no password but send a large command cost little', async () => {
  const port = victims.ids.ports.resp
  const argument = `$65000\r\n${'a'.repeat(65_000)}\r\n`
  const { peakBytes, open } = await flood(victims.ids, { port, head: `*1000\r\n${argument.repeat(200)}`, bytes: 0 })
  expect(peakBytes).toBeLessThan(maxPeakBytes)
  expect(open).toBe(0)
})

describe.concurrent.each(['ids', 'ownUsers', 'redisUsers'] as const)(
  '40 Redis clients without a password cost little: %s',
  (kind) => {
    const short = '*1\r\n$4\r\nPING\r\n'
    test.concurrent.each([
      ['a value that is large', '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$15728640\r\n', undefined],
      ['arguments without end', '*1000001\r\n$4\r\nMSET\r\n', '$1\r\na\r\n'],
      ['short commands without end', short, short],
    ])('%s', async (_, head, words) => {
      const victim = victims[kind]
      const port = victim.ports.resp
      const piece = words === undefined ? {} : { piece: Buffer.from(words.repeat(Math.floor(65_536 / words.length))) }
      const { peakBytes, open } = await flood(victim, { port, head, bytes: 15 * megabyte, ...piece })
      expect(peakBytes).toBeLessThan(maxPeakBytes)
      expect(open).toBe(0)
    })
  },
)

test.concurrent.each([
  ['ownUsers', 'of-the-proxy'],
  ['redisUsers', 'of-the-server'],
  ['proxy', undefined],
] as const)('who has shown a password, where one is asked for, sends what they like: %s', (kind, password) =>
  inTurn(victims[kind], async () => {
    const client = new Redis(victims[kind].ports.resp, password === undefined ? {} : { password })
    const pairs = Array.from({ length: 5000 }, (_, index) => [`k${index}`, 'v'.repeat(20)]).flat()
    await client.mset(pairs)
    await client.set('large', 'v'.repeat(3 * megabyte))
    expect(await client.strlen('large')).toBe(3 * megabyte)
    expect((await client.mget(pairs.filter((_, index) => index % 2 === 0))).length).toBe(5000)
    const crowd = await Promise.all(Array.from({ length: 5000 }, (_, index) => client.get(`k${index}`)))
    expect(new Set(crowd)).toEqual(new Set(['v'.repeat(20)]))
    client.disconnect()
  }),
)

test.concurrent.each(['hub', 'limits', 'ids', 'proxy'] as const)(
  'a request that drips in is cut off: %s',
  async (kind) => {
    const victim = victims[kind]
    const port = victim.ports.http
    const head = `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `
    const { open } = await inTurn(victim, () => holdOpen(victim, { port, head, bytes: 0 }, 5, 1000))
    expect(open).toBe(0)
  },
)
