import { commandOfArgs, keySlotOfBytes, keysOf, ListArgs, mayBlock } from '@firebreak/core/commands'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import {
  answersRefusedAuth,
  isFullRun,
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
import { comparable, fill, keyNames, randomCommand, randomOf, sentRows } from './random-commands.ts'
import { RawClient } from './raw-client.ts'

// Two servers that get the same commands, one of them through the proxy: every reply must be the same bytes.

let direct: RedisServer
let behind: RedisServer
let proxy: FirebreakProxy

beforeAll(async () => {
  ;[direct, behind] = await Promise.all([startRedis(), startRedis()])
  proxy = await startProxy({ upstream: behind.url, port: 0 })
})

afterAll(async () => {
  await proxy?.close()
  await Promise.all([direct?.stop(), behind?.stop()])
})

/** Ports of a Redis and of a proxy before another, and what ends both. */
interface Pair {
  readonly direct: number
  readonly proxied: number
  close(): Promise<unknown>
}

async function alone(options: Partial<ProxyOptions> = {}): Promise<Pair> {
  const [one, two] = await Promise.all([startRedis(), startRedis()])
  const between = await startProxy({ upstream: two.url, port: 0, ...options })
  return {
    direct: one.port,
    proxied: between.port,
    close: () => between.close().then(() => Promise.all([one.stop(), two.stop()])),
  }
}

/** Every key of the commands is hot: replies come from memory wherever they may. */
async function hot(): Promise<Pair> {
  const hub = await TestHub.start()
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  const pair = await alone({ shield })
  await waitFor(() => hub.hellos.length > 0)
  hub.heat('main', keyNames, { until: hub.now() + 3_600_000 })
  return { ...pair, close: () => pair.close().then(() => hub.kill()) }
}

/** A cluster of three behind the proxy, and one of a single node that is asked without it. */
async function clustered(): Promise<Pair> {
  const one = await startClusterOfOne()
  const cluster = await startCluster()
  const between = await startProxy({ upstream: `redis://127.0.0.1:${cluster.addresses[0]!.port}`, port: 0 })
  return {
    direct: one.port,
    proxied: between.port,
    close: () => between.close().then(() => Promise.all([one.stop(), cluster.stop()])),
  }
}

const kinds = {
  'one thread': { start: () => alone(), rounds: scale(4, 40) },
  'public sockets': { start: () => alone({ transport: 'net' }), rounds: scale(1, 20) },
  'two threads': { start: () => alone({ workers: 2 }), rounds: scale(1, 20) },
  'keys in memory': { start: hot, rounds: scale(4, 40) },
  'a cluster': { start: clustered, rounds: scale(3, 30) },
}

describe.each(Object.entries(kinds))('through %s', (kind, { start, rounds }) => {
  let pair: Pair
  beforeAll(async () => {
    pair = await start()
  }, 60_000)
  afterAll(() => pair?.close())

  const seeds = isFullRun ? [1, 2, 3, 4, 5] : [1]
  test.each(seeds.flatMap((seed) => [2, 3].map((version) => [version, seed])))(
    'every command of the table with random arguments is answered as Redis answers it (RESP%i, seed %i)',
    async (version, seed) => {
      const random = randomOf(version! * 7919 + seed! * 104_729)
      const [one, two] = await Promise.all([RawClient.connect(pair.direct), RawClient.connect(pair.proxied)])
      const both = async (args: readonly (string | Buffer)[]) => {
        const bytes = args.map((arg) => (typeof arg === 'string' ? Buffer.from(arg, 'latin1') : arg))
        return Promise.all([one.ask(...bytes), two.ask(...bytes)])
      }
      if (version === 3) await both(['HELLO', '3'])
      let compared = 0
      for (let round = 0; round < rounds; round++) {
        await both(['FLUSHALL'])
        for (const command of fill) await both(command)
        for (const row of sentRows) {
          const args = randomCommand(row, random)
          const parsed = new ListArgs(args)
          const known = commandOfArgs(parsed)
          if (known !== undefined && mayBlock(known, parsed)) continue
          const slots = new Set(keysOf(known ?? row, parsed).map(({ index }) => keySlotOfBytes(args[index]!)))
          // There the proxy does more than Redis, which says CROSSSLOT.
          if (kind === 'a cluster' && slots.size > 1) continue
          const [a, b] = await both(args)
          const shown = args.map((arg) => arg.toString('latin1')).join(' ')
          expect(comparable(row.name, b), shown).toBe(comparable(row.name, a))
          compared++
          if (row.name === 'SELECT' || row.flags.has('transaction')) await both(['DISCARD'])
          // On a cluster only one node's keys can be watched at a time.
          if (row.name === 'WATCH') await both(['UNWATCH'])
          if (row.name === 'SELECT') await both(['SELECT', '0'])
        }
      }
      expect(compared).toBeGreaterThan(sentRows.length * rounds * 0.8)
      await Promise.all([one.close(), two.close()])
    },
    120_000,
  )
})

describe.each([2, 3])('RESP%i', (version) => {
  test('pipelines of ten thousand, transactions, blocking pops and subscriptions: the same bytes in the same order', async () => {
    const [one, two] = await Promise.all([RawClient.connect(direct.port), RawClient.connect(proxy.port)])
    const script: string[][] = [
      ...(version === 3 ? [['HELLO', '3']] : []),
      ['FLUSHALL'],
      ...Array.from({ length: 10_000 }, (_, index) =>
        index % 3 === 0 ? ['INCR', 'c'] : ['SET', `k${index}`, `v${index}`],
      ),
      ['MULTI'],
      ['GET', 'c'],
      ['NOSUCH'],
      ['EXEC'],
      ['MULTI'],
      ['SELECT', '2'],
      ['SET', 'in-two', '1'],
      ['EXEC'],
      ['GET', 'in-two'],
      ['SELECT', '0'],
      ['GET', 'c'],
      ['BLPOP', 'nothing', '0.01'],
      ['RPUSH', 'l', '1', '2'],
      ['BLPOP', 'l', '0'],
      ['EVAL', 'return ARGV[1]', '0', 'x'],
      ['GET', 'c'],
      ['WATCH', 'c'],
      ['MULTI'],
      ['DISCARD'],
      ['SUBSCRIBE', 'a', 'b', 'a'],
      ['PSUBSCRIBE', 'p*'],
      ['UNSUBSCRIBE', 'b', 'a'],
      ['PUNSUBSCRIBE'],
      ['UNSUBSCRIBE'],
      ['CLIENT', 'SETNAME', 'me'],
      ['CLIENT', 'GETNAME'],
      ['CLIENT', 'SETNAME', 'not me'],
      ['NOSUCH', 'x'],
      ['CLIENT', 'NOSUCH'],
      ['SELECT', '99'],
      ['SELECT', 'x'],
      ['HELLO', '9'],
      ['HELLO', '3', 'NOSUCH'],
      ...(answersRefusedAuth(redisKind()) ? [['AUTH', 'nobody', 'nothing']] : []),
      ['AUTH', 'nothing'],
      ['AUTH'],
      ['GET', 'c'],
      ['RESET'],
      ['CLIENT', 'GETNAME'],
      ['PING'],
      ['QUIT'],
    ]
    const replies = async (client: RawClient) => {
      for (const command of script) client.send(...command)
      const all: string[] = []
      for (;;) {
        const reply = await client.next()
        all.push(reply.includes('proto') ? 'HELLO' : reply)
        if (reply === 'CLOSED') return all
      }
    }
    const [a, b] = await Promise.all([replies(one), replies(two)])
    expect(b).toEqual(a)
  })
})

test.each([
  ['an unknown first byte of a bulk', '*1\r\n:1\r\n'],
  ['a negative bulk length', '*1\r\n$-5\r\n'],
  ['a multibulk count that is no number', '*x\r\n'],
  ['a bulk length that is no number', '*1\r\n$x\r\n'],
  ['a multibulk count that is too large', '*99999999999\r\n'],
  ['a bulk that is too large', '*1\r\n$9999999999\r\n'],
  ['unbalanced quotes', 'SET a "b\r\n'],
  ['an inline request without an end', 'x'.repeat(70_000)],
])('%s is refused as Redis refuses it, after earlier replies', async (_what, bytes) => {
  const ends = await Promise.all(
    [direct.port, proxy.port].map(async (port) => {
      const client = await RawClient.connect(port)
      client.write(`PING\r\n${bytes}`)
      return [await client.next(), await client.next(), await client.next()]
    }),
  )
  expect(ends[1]).toEqual(ends[0])
  expect(ends[1]![2]).toBe('CLOSED')
})

test.each([
  ['a typed command', 'PING\r\n'],
  ['a typed command with a bare line feed', 'PING\n'],
  ['quotes and escapes', 'SET "a b" \'c\\\'d\'\r\nGET "a\\x20b"\r\n'],
  ['blank lines and empty arrays', '\r\n*0\r\n*-1\r\nPING\r\n'],
  ['binary arguments', '*2\r\n$4\r\nECHO\r\n$5\r\n\x00\r\n\xff\x01\r\n'],
  ['a command in pieces of one byte', '*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n'],
])('%s is answered as Redis answers it', async (what, bytes) => {
  const [a, b] = await Promise.all(
    [direct.port, proxy.port].map(async (port) => {
      const client = await RawClient.connect(port)
      if (what.includes('pieces')) {
        for (const byte of Buffer.from(bytes, 'latin1')) {
          client.write(Buffer.of(byte))
          await new Promise((resolve) => setImmediate(resolve))
        }
      } else client.write(bytes)
      client.send('ECHO', 'end')
      const all: string[] = []
      while (all.at(-1) !== '$3\r\nend\r\n') all.push(await client.next())
      await client.close()
      return all
    }),
  )
  expect(b).toEqual(a)
})
