import { encodeCommand } from '@firebreak/core/resp'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import {
  answersRefusedAuth,
  type RedisServer,
  redisKind,
  scale,
  startCluster,
  startClusterOfOne,
  startRedis,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pickOf, randomOf } from './random-commands.ts'
import { RawClient } from './raw-client.ts'

// The same bytes to a Redis and, through the proxy, to another: cut anywhere, broken anywhere, of every kind of request in
// one pipeline. The answers must be the same bytes, and the connection must end where that of Redis ends.

let direct: RedisServer
let behind: RedisServer
let hub: TestHub
const proxies: FirebreakProxy[] = []
const closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  ;[direct, behind] = await Promise.all([startRedis(), startRedis()])
  hub = await TestHub.start()
})

afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()))
  await hub.kill()
  await Promise.all([direct.stop(), behind.stop(), ...closers.map((close) => close())])
})

async function start(options: Partial<ProxyOptions>): Promise<number> {
  const proxy = await startProxy({ upstream: behind.url, port: 0, ...options })
  proxies.push(proxy)
  return proxy.port
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const request = (...args: string[]) =>
  Buffer.from(encodeCommand(args.map((arg) => Buffer.from(arg, 'latin1')))).toString('latin1')

const end = bulk('the end')
function bulk(text: string): string {
  return `$${text.length}\r\n${text}\r\n`
}

/** Writes pieces as packets of their own and gives the replies up to the last one, or to the end of the connection. */
async function repliesOf(port: number, pieces: readonly string[]): Promise<string[]> {
  const client = await RawClient.connect(port)
  for (const piece of pieces) {
    client.write(piece)
    await turn()
  }
  const replies: string[] = []
  while (replies.at(-1) !== end && replies.at(-1) !== 'CLOSED') replies.push(await client.next())
  await client.close()
  return replies
}

const kinds: [string, Partial<ProxyOptions>][] = [
  ['public sockets', { transport: 'net' }],
  ['raw handles', { transport: 'raw' }],
]

describe.each(kinds)('over %s', (_kind, options) => {
  let port: number
  beforeAll(async () => {
    port = await start(options)
  })

  test('a stream of requests of all forms is the same wherever it is cut', async () => {
    const stream = [
      'SET fz "a b\\x00"\r\n',
      request('GET', 'fz'),
      '\r\nPING\n',
      '*0\r\n*-1\r\n',
      request('ECHO', '\x00\r\n$9\r\n\xff'),
      request('MULTI'),
      "APPEND fz 'c'\r\n",
      request('EXEC'),
      request('CLIENT', 'GETNAME'),
      request('NOSUCH', 'x'),
      request('GET'),
      request('ECHO', 'the end'),
    ].join('')
    const expected = await repliesOf(direct.port, [stream])
    expect(expected).toHaveLength(11)
    const cuts = Array.from({ length: stream.length - 1 }, (_, index) => index + 1)
    for (const cut of cuts) {
      expect(await repliesOf(port, [stream.slice(0, cut), stream.slice(cut)]), `cut at ${cut}`).toEqual(expected)
    }
    expect(await repliesOf(port, [...stream])).toEqual(expected)
  }, 60_000)

  test('requests that are broken at random are refused, answered or waited for as by Redis', async () => {
    const random = randomOf(42)
    const commands = [
      () => request('SET', `f${Math.floor(random() * 5)}`, 'v'.repeat(Math.floor(random() * 40))),
      () => request('GET', `f${Math.floor(random() * 5)}`),
      () => request('ECHO', '*1\r\n$4\r\nPING\r\n'),
      () => request('PING'),
      () => request('INCR', 'fn'),
      () => request('EXISTS', 'f1', 'f2', 'f3'),
      () => 'PING "in quotes"\r\n',
      () => "EXISTS f1 'f2'\r\n",
      () => '\r\n',
    ]
    const bytes = ['\r', '\n', '*', '$', '-', '0', '1', '9', ' ', '"', "'", '\x00', '\xff', 'x', '+', ':']
    // Lines without a word are no requests: whatever a wrong length swallows, what comes next begins at one of them.
    // A line with a NUL has no end, for Redis: it waits until it is too long.
    const tailOf = (stream: string) =>
      `${'\r\n'.repeat(stream.includes('\x00') ? 40_000 : 600)}${request('ECHO', 'the end')}`
    let refused = 0
    for (let round = 0; round < scale(400, 20_000); round++) {
      let stream = Array.from({ length: 1 + Math.floor(random() * 6) }, () => pickOf(commands, random)()).join('')
      for (let changes = 1 + Math.floor(random() * 3); changes > 0; changes--) {
        const at = Math.floor(random() * stream.length)
        const removed = random() < 0.6 ? Math.floor(random() * 3) : 0
        stream = stream.slice(0, at) + (random() < 0.7 ? pickOf(bytes, random) : '') + stream.slice(at + removed)
      }
      // A length beyond the tail would wait for ever, and a count makes one request of all that follows.
      if (/[*$]\d{4}|\*\d\d/.test(stream)) continue
      const tail = tailOf(stream)
      const expected = await repliesOf(direct.port, [stream + tail])
      const cut = Math.floor(random() * stream.length)
      // To a connection that has ended nothing can be written: the error might get lost over that.
      const isRefused = expected.at(-1) === 'CLOSED'
      const pieces = isRefused ? [stream + tail] : [stream.slice(0, cut), stream.slice(cut) + tail]
      const replies = await repliesOf(port, pieces)
      expect(replies, JSON.stringify(stream)).toEqual(expected)
      if (isRefused) refused++
    }
    expect(refused).toBeGreaterThan(20)
  }, 240_000)
})

/** A cluster of one node that is asked without the proxy, and one of three behind it. */
async function clusters(): Promise<{ port: number; upstream: string }> {
  const one = await startClusterOfOne()
  closers.push(() => one.stop())
  const cluster = await startCluster()
  closers.push(() => cluster.stop())
  return { port: one.port, upstream: `redis://127.0.0.1:${cluster.addresses[0]!.port}` }
}

describe.each([
  ['one thread', {}],
  ['public sockets', { transport: 'net' }],
  ['two threads', { workers: 2 }],
  ['one thread before a cluster', { mode: 'cluster' }],
] as [string, Partial<ProxyOptions>][])('in a proxy of %s', (kind, plain) => {
  test('pipelines of ten thousand requests of every kind, by several clients at once', async () => {
    const { port: without, ...options } = plain.mode === 'cluster' ? await clusters() : { port: direct.port, ...plain }
    const before = hub.hellos.length
    const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
    const port = await start({ ...options, shield })
    await waitFor(() => hub.hellos.length >= before + (plain.workers ?? 1))
    const each = async (index: number) => {
      const random = randomOf(index * 7919 + 7)
      const mine = `${kind.length}-${index}`
      hub.heat('main', [`hot:${mine}`])
      const script: string[] = [request('SET', `hot:${mine}`, 'v')]
      for (let count = 0; count < scale(10_000, 40_000); count++) script.push(...someRequests(mine, count, random))
      script.push(request('SELECT', '0'), request('DEL', `hot:${mine}`), request('ECHO', 'the end'))
      const stream = script.join('')
      const pieces: string[] = []
      for (let at = 0; at < stream.length; ) {
        const length = random() < 0.5 ? Math.floor(random() * 40) : Math.floor(random() * 60_000)
        pieces.push(stream.slice(at, at + length))
        at += length
      }
      const [expected, replies] = await Promise.all([repliesOf(without, [stream]), repliesOf(port, pieces)])
      const wrong = replies.findIndex((reply, place) => reply !== expected[place])
      expect(wrong < 0 ? '' : `${wrong}: ${replies[wrong]} instead of ${expected[wrong]}`).toBe('')
      expect(replies).toHaveLength(expected.length)
    }
    await Promise.all([1, 2, 3].map(each))
    const info = await RawClient.connect(port)
    const hits = /firebreak_local_hits:(\d+)/.exec(await info.ask('INFO', 'firebreak'))![1]
    if (plain.workers === undefined) expect(Number(hits)).toBeGreaterThan(0)
    await info.close()
  }, 240_000)
})

/** One request with a stamp of its own, or a few that belong together: answered here, from memory, or by Redis. */
function someRequests(mine: string, count: number, random: () => number): string[] {
  const stamp = `${mine}-${count}`
  const dice = random()
  if (dice < 0.3) return [request('GET', `hot:${mine}`)]
  if (dice < 0.5) return [request('ECHO', stamp)]
  if (dice < 0.58) return [request('SET', `own:${mine}`, stamp), request('GET', `own:${mine}`)]
  if (dice < 0.66) return [request('STRLEN', `hot:${mine}`), request('EXISTS', `hot:${mine}`)]
  if (dice < 0.7) return [request('APPEND', `hot:${mine}`, '.'), request('GET', `hot:${mine}`)]
  if (dice < 0.74) return [request('CLIENT', 'SETNAME', stamp), request('CLIENT', 'GETNAME')]
  if (dice < 0.78) return [`ECHO "${stamp}"\r\n`]
  if (dice < 0.82) {
    return [request('MULTI'), request('ECHO', stamp), request('APPEND', `hot:${mine}`, '!'), request('EXEC')]
  }
  if (dice < 0.85) return [request('RPUSH', `list:${mine}`, stamp), request('BLPOP', `list:${mine}`, '0')]
  if (dice < 0.88) return [request('EVAL', 'return {KEYS[1], ARGV[1]}', '1', `own:${mine}`, stamp)]
  if (dice < 0.9) return [request('WATCH', `own:${mine}`), request('UNWATCH')]
  if (dice < 0.92) return [request('SELECT', String(Math.floor(random() * 2)))]
  if (dice < 0.94) return [request('NOSUCH', stamp), request('GET'), request('HGET', `hot:${mine}`, stamp)]
  if (dice < 0.95) return answersRefusedAuth(redisKind()) ? [request('AUTH', 'nobody', stamp)] : []
  if (dice < 0.96) return [request('DEL', `hot:${mine}`), request('SET', `hot:${mine}`, stamp)]
  if (dice < 0.97) return [request('SUBSCRIBE', mine), request('UNSUBSCRIBE', mine)]
  if (dice < 0.98) return [request('RESET')]
  if (dice < 0.99) return [request('SETEX', `hot:${mine}`, '1000', stamp), request('GET', `hot:${mine}`)]
  return [request('ECHO', stamp.padEnd(20_000, '.'))]
}
