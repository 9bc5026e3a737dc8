import { defaultLocalCache } from '@firebreak/core'
import { allCommands } from '@firebreak/core/commands'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisServer, scale, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let server: RedisServer
let hub: TestHub
let proxy: FirebreakProxy
let direct: RawClient
const open: RawClient[] = []

beforeAll(async () => {
  server = await startRedis()
  direct = await RawClient.connect(server.port)
})

afterAll(async () => {
  await direct.close()
  await server.stop()
})

beforeEach(async () => {
  await direct.ask('FLUSHALL')
  hub = await TestHub.start()
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  proxy = await startProxy({ upstream: server.url, port: 0, shield })
  await waitFor(() => hub.hellos.length > 0)
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()))
  await proxy.close()
  await hub.kill()
})

async function client(version: 2 | 3 = 2): Promise<RawClient> {
  const made = await RawClient.connect(proxy.port)
  open.push(made)
  if (version === 3) await made.ask('HELLO', '3')
  return made
}

async function localHits(redis: RawClient): Promise<number> {
  return Number(/firebreak_local_hits:(\d+)/.exec(await redis.ask('INFO', 'firebreak'))![1])
}

/** Asks until the reply came from memory. */
async function served(redis: RawClient, ...args: string[]): Promise<string> {
  const before = await localHits(redis)
  return waitFor(async () => {
    const reply = await redis.ask(...args)
    return (await localHits(redis)) > before ? reply : undefined
  })
}

test('accesses of keys are counted by command, in pipelines, transactions and scripts', async () => {
  const redis = await client()
  const commands = [
    ['SET', 'a', '1'],
    ['GET', 'a'],
    ['MGET', 'a', 'b'],
    ['MULTI'],
    ['INCR', 'a'],
    ['EXEC'],
    ['EVAL', 'return 1', '1', 's'],
    ['BLPOP', 'l', '0.01'],
  ]
  for (const command of commands) await redis.ask(...command)
  const all = () => hub.counted('a').count === 4 && hub.counted('s').count === 1 && hub.counted('l').count === 1
  await waitFor(all, {
    what: () => JSON.stringify([hub.counted('a'), hub.counted('b'), hub.counted('s'), hub.counted('l')]),
  })
  expect(hub.counted('a')).toEqual({ count: 4, writes: 2 })
  expect(hub.counted('b')).toEqual({ count: 1, writes: 0 })
})

test.each(['GEORADIUS g 13 38 500 km STORE x STORE hot', 'GEORADIUSBYMEMBER g m 500 km STOREDIST x STOREDIST hot'])(
  'a read behind %s sees what it wrote',
  async (line) => {
    const redis = await client()
    await redis.ask('GEOADD', 'g', '13.3', '38.1', 'm')
    await redis.ask('SET', 'hot', 'old')
    hub.heat('main', ['hot'])
    expect(await served(redis, 'TYPE', 'hot')).toBe('+string\r\n')
    redis.send(...line.split(' '))
    redis.send('TYPE', 'hot')
    expect(await redis.next()).toBe(':1\r\n')
    expect(await redis.next()).toBe('+zset\r\n')
  },
)

test('a hot key is answered from memory, and Redis hardly sees it', async () => {
  const redis = await client()
  await redis.ask('SET', 'hot', 'value')
  hub.heat('main', ['hot'])
  expect(await served(redis, 'GET', 'hot')).toBe('$5\r\nvalue\r\n')
  await direct.ask('CONFIG', 'RESETSTAT')
  const reads = scale(2000, 20_000)
  for (let index = 0; index < reads; index++) redis.send('GET', 'hot')
  for (let index = 0; index < reads; index++) expect(await redis.next()).toBe('$5\r\nvalue\r\n')
  const stats = await direct.ask('INFO', 'commandstats')
  const gets = Number(/cmdstat_get:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  expect(gets).toBeLessThan(reads / 100)
  await waitFor(() => hub.counted('hot').count >= reads)
})

test('what is read from memory is reported, though nothing else is asked for', async () => {
  const redis = await client()
  await redis.ask('SET', 'hot', 'value')
  hub.heat('main', ['hot'])
  await served(redis, 'GET', 'hot')
  for (let round = 0; round < 3; round++) {
    const before = hub.counted('hot').count
    for (let index = 0; index < 300; index++) await redis.ask('GET', 'hot')
    await waitFor(() => hub.counted('hot').count >= before + 300)
  }
})

test.each([2, 3] as const)(
  'RESP%i: every cacheable command gives from memory the bytes that Redis gives',
  async (version) => {
    const redis = await client(version)
    const plain = await RawClient.connect(server.port)
    open.push(plain)
    if (version === 3) await plain.ask('HELLO', '3')
    const fill = [
      'SET str hello',
      'HSET hash f 1 g 2',
      'RPUSH list a b c',
      'SADD set a',
      'ZADD zset 1 a 2.5 b 0.1 c',
      'SETBIT bits 7 1',
      'PFADD hll a b',
      'GEOADD geo 13.36 38.11 a 15.08 37.5 b',
      'XADD stream 1-1 f v',
    ]
    for (const line of fill) await direct.ask(...line.split(' '))
    const cases: Record<string, string[]> = {
      GET: ['str'],
      GETRANGE: ['str 0 2'],
      SUBSTR: ['str 0 2'],
      STRLEN: ['str', 'none'],
      MGET: ['str', 'none', 'list'],
      BITCOUNT: ['bits', 'bits 0 -1'],
      BITFIELD_RO: ['bits GET u8 0'],
      BITPOS: ['bits 1'],
      GETBIT: ['bits 7'],
      PFCOUNT: ['hll'],
      HEXISTS: ['hash f'],
      HGET: ['hash f', 'hash none'],
      HGETALL: ['hash', 'none'],
      HKEYS: ['hash'],
      HLEN: ['hash'],
      HMGET: ['hash f none'],
      HSTRLEN: ['hash f'],
      HVALS: ['hash'],
      LINDEX: ['list 0', 'list 9'],
      LLEN: ['list'],
      LPOS: ['list b', 'list z', 'list z COUNT 0'],
      LRANGE: ['list 0 -1', 'none 0 1'],
      SCARD: ['set'],
      SDIFF: ['set'],
      SINTER: ['set'],
      SINTERCARD: ['1 set'],
      SISMEMBER: ['set a'],
      SMEMBERS: ['set', 'none'],
      SMISMEMBER: ['set a z'],
      SUNION: ['set'],
      EXISTS: ['str', 'none'],
      TYPE: ['str', 'none'],
      ZCARD: ['zset'],
      ZCOUNT: ['zset -inf +inf'],
      ZDIFF: ['1 zset', '1 zset WITHSCORES'],
      ZINTER: ['1 zset WITHSCORES'],
      ZINTERCARD: ['1 zset'],
      ZLEXCOUNT: ['zset - +'],
      ZMSCORE: ['zset a none'],
      ZRANGE: ['zset 0 -1', 'zset 0 -1 WITHSCORES', 'none 0 -1 WITHSCORES'],
      ZRANGEBYLEX: ['zset - +'],
      ZRANGEBYSCORE: ['zset 0 9', 'zset 0 9 WITHSCORES'],
      ZRANK: ['zset b', 'zset none'],
      ZREVRANGE: ['zset 0 -1 WITHSCORES'],
      ZREVRANGEBYLEX: ['zset + -'],
      ZREVRANGEBYSCORE: ['zset 9 0 WITHSCORES'],
      ZREVRANK: ['zset b'],
      ZSCORE: ['zset b', 'zset none', 'zset c'],
      ZUNION: ['1 zset WITHSCORES'],
      GEODIST: ['geo a b km', 'geo a none'],
      GEOHASH: ['geo a none'],
      GEOPOS: ['geo a none', 'none x'],
      GEOSEARCH: ['geo FROMMEMBER a BYRADIUS 500 km ASC WITHDIST WITHCOORD WITHHASH'],
      GEORADIUS_RO: ['geo 15 37 300 km WITHDIST ASC'],
      GEORADIUSBYMEMBER_RO: ['geo a 300 km WITHDIST'],
      XLEN: ['stream'],
      XRANGE: ['stream - +'],
      XREVRANGE: ['stream + -'],
    }
    hub.heat('main', ['str', 'hash', 'list', 'set', 'zset', 'bits', 'hll', 'geo', 'stream', 'none'])
    await served(redis, 'GET', 'str')
    const rows = allCommands().filter(({ cacheable, since }) => cacheable && since === undefined)
    expect(rows.map(({ name }) => name).filter((name) => cases[name] === undefined)).toEqual([])
    for (const { name } of rows) {
      for (const args of cases[name]!) {
        const command = [name, ...args.split(' ')]
        const expected = await plain.ask(...command)
        if (expected.startsWith('-')) expect(await redis.ask(...command), command.join(' ')).toBe(expected)
        else expect(await served(redis, ...command), command.join(' ')).toBe(expected)
      }
    }
  },
)

test('a write by anybody is seen: through this proxy at once, by others as soon as Redis tells', async () => {
  const redis = await client()
  const other = await client(3)
  await redis.ask('SET', 'hot', '0')
  hub.heat('main', ['hot'])
  await served(redis, 'GET', 'hot')
  for (let value = 1; value < scale(200, 2000); value++) {
    const writer = value % 2 === 0 ? redis : other
    await writer.ask('SET', 'hot', String(value))
    const text = String(value)
    expect(await redis.ask('GET', 'hot')).toBe(`$${text.length}\r\n${text}\r\n`)
    expect(await other.ask('GET', 'hot')).toBe(`$${text.length}\r\n${text}\r\n`)
  }
  await direct.ask('SET', 'hot', 'outside')
  await waitFor(async () => (await redis.ask('GET', 'hot')) === '$7\r\noutside\r\n')
  // Read your own writes, also without waiting, in transactions, scripts and after FLUSHALL.
  redis.send('SET', 'hot', 'a')
  redis.send('GET', 'hot')
  redis.send('MULTI')
  redis.send('SET', 'hot', 'b')
  redis.send('EXEC')
  redis.send('GET', 'hot')
  redis.send('EVAL', "return redis.call('SET', KEYS[1], 'c')", '1', 'hot')
  redis.send('GET', 'hot')
  redis.send('FLUSHALL')
  redis.send('GET', 'hot')
  const replies: string[] = []
  for (let index = 0; index < 10; index++) replies.push(await redis.next())
  expect(replies).toEqual([
    '+OK\r\n',
    '$1\r\na\r\n',
    '+OK\r\n',
    '+QUEUED\r\n',
    '*1\r\n+OK\r\n',
    '$1\r\nb\r\n',
    '+OK\r\n',
    '$1\r\nc\r\n',
    '+OK\r\n',
    '$-1\r\n',
  ])
})

test('a command that reads one hot key and writes another is seen by what follows it', async () => {
  const redis = await client()
  const cases: [fill: string, command: string][] = [
    ['SADD {t}s a', 'SUNIONSTORE {t}d {t}s {t}s'],
    ['SADD {t}s a', 'SDIFFSTORE {t}d {t}s'],
    ['SADD {t}s a', 'SMOVE {t}s {t}d a'],
    ['ZADD {t}s 1 a', 'ZUNIONSTORE {t}d 1 {t}s WEIGHTS 2'],
    ['ZADD {t}s 1 a', 'ZRANGESTORE {t}d {t}s 0 -1'],
    ['RPUSH {t}s 1', 'LMOVE {t}s {t}d LEFT RIGHT'],
    ['RPUSH {t}s 1', 'RPOPLPUSH {t}s {t}d'],
    ['RPUSH {t}s 1', 'SORT {t}s STORE {t}d'],
    ['SET {t}s 1', 'RENAME {t}s {t}d'],
    ['SET {t}s 1', 'COPY {t}s {t}d'],
    ['SET {t}s 1', 'BITOP NOT {t}d {t}s'],
    ['SET {t}s 1', 'MSETNX {t}d 1 {t}e 2'],
    ['PFADD {t}s a', 'PFMERGE {t}d {t}s'],
    ['GEOADD {t}s 13 38 a', 'GEOSEARCHSTORE {t}d {t}s FROMMEMBER a BYRADIUS 1 km'],
    ['GEOADD {t}s 13 38 a', 'GEORADIUS {t}s 13 38 1 km STORE {t}d'],
  ]
  hub.heat('main', ['{t}s', '{t}d', '{t}e'])
  for (const [fill, command] of cases) {
    await redis.ask('DEL', '{t}s', '{t}d', '{t}e')
    await redis.ask(...fill.split(' '))
    expect(await served(redis, 'EXISTS', '{t}d')).toBe(':0\r\n')
    redis.send(...command.split(' '))
    redis.send('EXISTS', '{t}d')
    await redis.next()
    expect(await redis.next(), command).toBe(':1\r\n')
  }
})

test('a write behind a value that is sent on as it comes is seen too', async () => {
  const redis = await client()
  const large = Buffer.alloc(3 * 1024 * 1024, 'x')
  hub.heat('main', ['hot'])
  for (let version = 0; version < 5; version++) {
    await redis.ask('SET', 'hot', 'old')
    expect(await served(redis, 'GET', 'hot')).toBe('$3\r\nold\r\n')
    redis.send('MSET', 'large', large, 'hot', `new-${version}`)
    redis.send('GET', 'hot')
    expect([await redis.next(), await redis.next()]).toEqual(['+OK\r\n', `$5\r\nnew-${version}\r\n`])
  }
})

test('a user gets from memory only what it may read, and the errors are those of Redis', async () => {
  const rights = '+get +hello +info +client +multi +exec +pttl +ping'.split(' ')
  await direct.ask('ACL', 'SETUSER', 'reader', 'on', '>pass', '~hot', ...rights)
  await direct.ask('ACL', 'SETUSER', 'stranger', 'on', '>pass', '~other', '+@all')
  await direct.ask('SET', 'hot', 'secret')
  hub.heat('main', ['hot'])
  const anybody = await client()
  expect(await served(anybody, 'GET', 'hot')).toBe('$6\r\nsecret\r\n')
  const stranger = await client()
  expect(await stranger.ask('AUTH', 'stranger', 'pass')).toBe('+OK\r\n')
  for (let index = 0; index < 20; index++) expect(await stranger.ask('GET', 'hot')).toMatch(/^-NOPERM/)
  const reader = await client()
  expect(await reader.ask('AUTH', 'reader', 'pass')).toBe('+OK\r\n')
  expect(await served(reader, 'GET', 'hot')).toBe('$6\r\nsecret\r\n')
  expect(await reader.ask('STRLEN', 'hot')).toMatch(/^-NOPERM/)
  // Another database is another key.
  expect(await anybody.ask('SELECT', '1')).toBe('+OK\r\n')
  for (let index = 0; index < 20; index++) expect(await anybody.ask('GET', 'hot')).toBe('$-1\r\n')
})

test('with the hub gone it is a plain proxy that still keeps what is hot correct; the switch turns it plain', async () => {
  const redis = await client()
  await redis.ask('SET', 'hot', '1')
  hub.heat('main', ['hot'])
  await served(redis, 'GET', 'hot')
  hub.setOff(true)
  await waitFor(async () => (await redis.ask('INFO', 'firebreak')).includes('firebreak_shield:off'))
  const before = await localHits(redis)
  await redis.ask('GET', 'hot')
  expect(await localHits(redis)).toBe(before)
  hub.setOff(false)
  await served(redis, 'GET', 'hot')
  await hub.kill()
  await waitFor(async () => (await redis.ask('INFO', 'firebreak')).includes('firebreak_hub:lost'))
  await direct.ask('SET', 'hot', '2')
  await waitFor(async () => (await redis.ask('GET', 'hot')) === '$1\r\n2\r\n')
  expect(await redis.ask('GET', 'another')).toBe('$-1\r\n')
  await hub.listen()
})

test('nothing is served from memory once the watcher is lost', async () => {
  const redis = await client()
  await redis.ask('SET', 'hot', '1')
  hub.heat('main', ['hot'], { strategy: { ...defaultLocalCache, expireTime: 600 } })
  await served(redis, 'GET', 'hot')
  // The watcher is killed; a write that it cannot tell of must be seen by the very next read.
  await direct.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await direct.ask('SET', 'hot', '2')
  await waitFor(async () => (await redis.ask('GET', 'hot')) === '$1\r\n2\r\n', { timeoutMs: 2000, everyMs: 1 })
})

test('of very many keys each access is reported, the last ones when the proxy closes', async () => {
  const redis = await client()
  const names = Array.from({ length: 6000 }, (_, index) => `key:${index}`)
  const requests = names.map((name) => `*2\r\n$3\r\nGET\r\n$${name.length}\r\n${name}\r\n`).join('')
  const counts = () => {
    const sums = new Map(names.map((name) => [name, 0]))
    for (const { key, count } of hub.reports.flatMap(({ sections }) => sections.flatMap(({ entries }) => entries)))
      sums.set(key, sums.get(key)! + count)
    return [...sums.values()]
  }
  const passes = 5
  for (let pass = 1; pass <= passes; pass++) {
    redis.write(requests)
    for (const _ of names) expect(await redis.next()).toBe('$-1\r\n')
    // Cold keys of so many are told of by halves: those of a pass may come with the next one.
    if (pass < passes) await waitFor(() => counts().includes(pass))
  }
  await proxy.close()
  await waitFor(() => counts().every((count) => count === passes))
})

test.each([2, 3] as const)('the same request again is answered as often as it came, in RESP%i', async (version) => {
  const redis = await client(version)
  const value = 'value '.repeat(17).slice(0, 100)
  const nil = version === 2 ? '$-1\r\n' : '_\r\n'
  await redis.ask('SET', 'hot', value)
  hub.heat('main', ['hot', 'nil'])
  await served(redis, 'GET', 'hot')
  const counted = hub.counted('hot').count
  const expected: string[] = []
  const bytes: string[] = []
  const ask = (request: string, reply: string, count: number) => {
    for (let nth = 0; nth < count; nth++) {
      bytes.push(request)
      expected.push(reply)
    }
  }
  const get = '*2\r\n$3\r\nGET\r\n$3\r\nhot\r\n'
  ask(get, `$100\r\n${value}\r\n`, 500)
  ask(get.replace('hot', 'nil'), nil, 3000)
  ask(get, `$100\r\n${value}\r\n`, 2)
  for (const count of [1, 2, 3, 700, 64, 1]) {
    ask(get, `$100\r\n${value}\r\n`, count)
    ask('*2\r\n$3\r\nGET\r\n$3\r\ncold\r\n'.replace('$3\r\ncold', '$4\r\ncold'), nil, 1)
    ask('*1\r\n$4\r\nPING\r\n', '+PONG\r\n', 2)
    ask(get, `$100\r\n${value}\r\n`, 1)
    // What the proxy answers by itself, twice.
    ask('*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n', '+OK\r\n', 2)
    ask(get, `$100\r\n${value}\r\n`, 2)
    ask('*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n', '+OK\r\n', 2)
  }
  // Behind a request that Redis has to answer, those of the same batch take their turn one by one, from memory too. On a
  // machine that stands still for longer than a lease some go to Redis: then once more.
  await waitFor(async () => {
    await served(redis, 'GET', 'hot')
    await served(redis, 'GET', 'nil')
    const hits = await localHits(redis)
    redis.write(bytes.join(''))
    for (const reply of expected) expect(await redis.next()).toBe(reply)
    return (await localHits(redis)) === hits + 3502 + 771 + 18
  })
  await waitFor(() => hub.counted('hot').count >= counted + 502 + 771 + 18)
})
