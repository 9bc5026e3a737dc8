import { allCommands, type CommandRow, commandOfArgs, ListArgs, mayBlock } from '@firebreak/core'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisServer, scale, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

/** Replies of these differ between two servers by their nature; that one comes, of the same type, is compared. */
const differs = new Set(
  [
    ...[
      'INFO',
      'TIME',
      'RANDOMKEY',
      'LASTSAVE',
      'HELLO',
      'ROLE',
      'LOLWUT',
      'DUMP',
      'EXPIRETIME',
      'PEXPIRETIME',
      'PTTL',
    ],
    ...[
      'MEMORY STATS',
      'MEMORY DOCTOR',
      'MEMORY MALLOC-STATS',
      'MEMORY USAGE',
      'CLIENT LIST',
      'CLIENT INFO',
      'CLIENT ID',
    ],
    ...['ACL GENPASS', 'ACL LOG', 'SLOWLOG GET', 'SLOWLOG LEN', 'LATENCY HISTOGRAM', 'LATENCY DOCTOR', 'COMMAND DOCS'],
    ...['SRANDMEMBER', 'SPOP', 'HRANDFIELD', 'ZRANDMEMBER', 'XADD', 'DEBUG', 'OBJECT IDLETIME', 'OBJECT FREQ', 'SCAN'],
    ...['CONFIG GET', 'XINFO STREAM', 'XINFO CONSUMERS', 'XPENDING', 'XCLAIM', 'XAUTOCLAIM', 'KEYS', 'FUNCTION STATS'],
    ...['SMEMBERS', 'SDIFF', 'SINTER', 'SUNION', 'HGETALL', 'HKEYS', 'HVALS', 'SSCAN', 'HSCAN', 'ZSCAN', 'COMMAND'],
    ...['COMMAND LIST', 'CLIENT TRACKINGINFO', 'SORT', 'SORT_RO', 'BGSAVE', 'BGREWRITEAOF', 'RESTORE', 'CLIENT KILL'],
    ...['XRANGE', 'XREVRANGE', 'XREAD', 'XREADGROUP', 'XINFO GROUPS', 'SAVE', 'LATENCY LATEST', 'LATENCY RESET'],
  ].flat(),
)

/** Not sent at random: they end the server or the connection, or block both for long. */
const notSent =
  /^(SHUTDOWN|DEBUG|MONITOR|SYNC|PSYNC|REPLCONF|REPLICAOF|SLAVEOF|FAILOVER|QUIT|CLIENT (REPLY|PAUSE|KILL|UNBLOCK)|MIGRATE|CONFIG (SET|REWRITE)|MODULE .*|ACL (SETUSER|DELUSER|LOAD|SAVE)|SCRIPT (DEBUG|KILL)|FUNCTION KILL|WAIT|WAITAOF|HELLO|RESET|AUTH|BGSAVE|BGREWRITEAOF|SAVE|CLUSTER .*|SUBSCRIBE|PSUBSCRIBE|SSUBSCRIBE|.*UNSUBSCRIBE|PFSELFTEST|SWAPDB|LATENCY GRAPH|MEMORY DOCTOR)$/

function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

const keyNames = ['str', 'num', 'hash', 'list', 'set', 'zset', 'stream', 'bits', 'hll', 'geo', 'none', 'bin\xff\x00']
const words = ['1', '0', '-1', '5', 'x', '', 'abc', '*', '(1', '[a', '+', '-', '$', '>', '0-1', 'inf', '1.5', 'ff\xff']
const options = ['WITHSCORES', 'LIMIT', 'COUNT', 'NX', 'XX', 'GET', 'EX', 'BY', 'MATCH', 'LEFT', 'RIGHT', 'STREAMS']

function randomCommand(row: CommandRow, random: () => number): Buffer[] {
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)]!
  const least = Math.abs(row.arity)
  const length =
    row.arity > 0 && random() < 0.9
      ? row.arity
      : Math.max(1, least + Math.floor(random() * 4) - (random() < 0.1 ? 1 : 0))
  const args = row.name.split(' ')
  while (args.length < length) {
    const isKeyPlace = row.firstKey === args.length || random() < 0.25
    args.push(isKeyPlace ? pick(keyNames) : random() < 0.12 ? pick(options) : pick(words))
  }
  return args.map((word, index) => Buffer.from(index === 0 && random() < 0.3 ? word.toLowerCase() : word, 'latin1'))
}

const fill: string[][] = [
  ['SET', 'str', 'hello world'],
  ['SET', 'num', '41'],
  ['HSET', 'hash', 'f', '1', 'abc', '2'],
  ['RPUSH', 'list', 'a', 'b', 'c', '5'],
  ['SADD', 'set', 'a'],
  ['ZADD', 'zset', '1', 'a', '2', 'b', '3', 'x'],
  ['XADD', 'stream', '1-1', 'f', 'v'],
  ['SETBIT', 'bits', '7', '1'],
  ['PFADD', 'hll', 'a', 'b'],
  ['GEOADD', 'geo', '13.36', '38.11', 'a'],
  ['SET', 'bin\xff\x00', 'b\r\n\x00\xff'],
]

describe.each([2, 3])('RESP%i', (version) => {
  test('every command of the table with random arguments is answered as Redis answers it', async () => {
    const random = randomOf(version * 7919)
    const [one, two] = await Promise.all([RawClient.connect(direct.port), RawClient.connect(proxy.port)])
    const both = async (args: readonly (string | Buffer)[]) => {
      const bytes = args.map((arg) => (typeof arg === 'string' ? Buffer.from(arg, 'latin1') : arg))
      return Promise.all([one.ask(...bytes), two.ask(...bytes)])
    }
    if (version === 3) await both(['HELLO', '3'])
    const rows = allCommands().filter(({ name, since }) => since === undefined && !notSent.test(name))
    let compared = 0
    for (let round = 0; round < scale(4, 40); round++) {
      await both(['FLUSHALL'])
      for (const command of fill) await both(command)
      for (const row of rows) {
        const args = randomCommand(row, random)
        const parsed = new ListArgs(args)
        const known = commandOfArgs(parsed)
        if (known !== undefined && mayBlock(known, parsed)) continue
        const [a, b] = await both(args)
        const shown = args.map((arg) => arg.toString('latin1')).join(' ')
        if (differs.has(row.name) && !a.startsWith('-')) expect(b[0], shown).toBe(a[0])
        else expect(b, shown).toBe(a)
        compared++
        if (row.name === 'SELECT' || row.flags.has('transaction')) await both(['DISCARD'])
        if (row.name === 'SELECT') await both(['SELECT', '0'])
      }
    }
    expect(compared).toBeGreaterThan(rows.length * 2)
    await Promise.all([one.close(), two.close()])
  })

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
      ['AUTH', 'nobody', 'nothing'],
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
