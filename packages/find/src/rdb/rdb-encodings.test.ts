import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RedisServer, startRedis, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FoundKey } from '../keys/found-key.ts'
import { length, listpack, RdbBuilder, text, ziplist, zipmap } from '../testing/rdb-builder.ts'
import { readRdbFile } from './read-rdb.ts'

const names = (count: number, prefix = 'item') => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const pairs = (count: number, value: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => [`field-${index}`, value(index)]).flat()

/** Every key of every type list, by name. */
async function readAll(file: string): Promise<Map<string, FoundKey>> {
  const result = await readRdbFile(file, { top: 1000 })
  expect(result.error).toBeUndefined()
  expect(result.isComplete).toBe(true)
  return new Map(result.types.flatMap(({ byBytes }) => byBytes).map((key) => [key.key, key]))
}

const countCommand: Record<string, string> = {
  list: 'LLEN',
  set: 'SCARD',
  zset: 'ZCARD',
  hash: 'HLEN',
  stream: 'XLEN',
}

/** Elements, type and (within `tolerance`) memory of every key equal the live server's. */
async function compareWithServer(server: RedisServer, found: Map<string, FoundKey>, tolerance: number): Promise<void> {
  const keys = (await server.cli('KEYS', '*')).split('\n').sort()
  expect([...found.keys()].sort()).toEqual(keys)
  for (const name of keys) {
    const key = found.get(name)!
    expect(key.type, name).toBe(await server.cli('TYPE', name))
    const command = countCommand[key.type!]
    expect(key.elements, name).toBe(command === undefined ? 1 : Number(await server.cli(command, name)))
    const usage = Number(await server.cli('MEMORY', 'USAGE', name, 'SAMPLES', '0'))
    // The server's figure for pending entries is an estimate that depends on how similar their IDs are.
    const allowed = name === 'stream' ? 2 * tolerance : tolerance
    expect(Math.abs(key.bytes! - usage) / usage, `${name}: ${key.bytes} but the server says ${usage}`).toBeLessThan(
      allowed,
    )
  }
}

describe.each(['yes', 'no'])('the encodings that Redis 7 writes, rdbcompression %s', (compression) => {
  let server: RedisServer
  let found: Map<string, FoundKey>
  beforeAll(async () => {
    server = await startRedis({ args: ['--rdbcompression', compression, '--maxmemory-policy', 'allkeys-lfu'] })
    const run = (...args: string[]) => server.cli(...args)
    await run('SET', 'int8', '12')
    await run('SET', 'int16', '-3000')
    await run('SET', 'int32', '123456789')
    await run('SET', 'int64', '1234567890123456789')
    await run('SET', 'nearly-int', '99999999999999999999')
    await run('SET', 'embstr', 'short')
    await run('SET', 'raw', 'x1y2z3'.repeat(30))
    await run('SET', 'compressible', 'lorem ipsum '.repeat(1000))
    await run('SET', 'expiring', 'soon', 'EX', '5000')
    await run('RPUSH', 'list-small', ...names(10))
    await run('RPUSH', 'list-large', ...names(5000))
    await run('DEBUG', 'QUICKLIST-PACKED-THRESHOLD', '200b')
    await run('RPUSH', 'list-plain', 'p'.repeat(300), 'q'.repeat(400), 'small')
    await run('SADD', 'set-ints', ...Array.from({ length: 300 }, (_, index) => String(index * 1000)))
    await run('SADD', 'set-table', ...names(3000))
    await run('SADD', 'set-table-of-numbers', ...Array.from({ length: 700 }, (_, index) => String(index)))
    await run('HSET', 'hash-small', ...pairs(20, String))
    await run('HSET', 'hash-large', ...pairs(2000, (index) => 'v'.repeat(index % 100)))
    await run('ZADD', 'zset-small', ...names(20).flatMap((name, index) => [String(index * 1.5), name]))
    await run('ZADD', 'zset-large', ...names(2000).flatMap((name, index) => [String(index), name]))
    const fill = "for i=1,ARGV[1] do redis.call('XADD',KEYS[1],'*','a',i,'b',string.rep('t',i%50)) end"
    await run('EVAL', fill, '1', 'stream', '250')
    await run('EVAL', fill, '1', 'stream-large', '20000')
    await run('XADD', 'stream-small', '1-1', 'a', '1')
    await run('XGROUP', 'CREATE', 'stream', 'readers', '0')
    await run('XREADGROUP', 'GROUP', 'readers', 'one', 'COUNT', '30', 'STREAMS', 'stream', '>')
    await run('XDEL', 'stream', (await run('XRANGE', 'stream', '-', '+', 'COUNT', '1')).split('\n')[0]!)
    await run('EVAL', "for i=1,2000 do redis.call('GET',KEYS[1]) end", '1', 'embstr')
    await run('EVAL', "for i=1,2000 do redis.call('GET',KEYS[1]) end", '1', 'embstr')
    expect(await run('SAVE')).toBe('OK')
    found = await readAll(join(server.folder, 'dump.rdb'))
  })
  afterAll(() => server.stop())

  test('types, elements and memory are those of the live server', async () => {
    await compareWithServer(server, found, 0.15)
  })

  test('encodings are those of OBJECT ENCODING', async () => {
    for (const [name, key] of found) expect(key.encoding, name).toBe(await server.cli('OBJECT', 'ENCODING', name))
  })

  test('TTL and access counter are read with the key', async () => {
    expect(found.get('expiring')!.ttlMs).toBeGreaterThan(4_900_000)
    expect(found.get('expiring')!.ttlMs).toBeLessThanOrEqual(5_001_000)
    expect(found.get('raw')!.ttlMs).toBeUndefined()
    expect(found.get('embstr')!.frequency).toBeGreaterThan(found.get('raw')!.frequency!)
  })
})

/** Dumps of older servers, loaded by a real one, which must report the same counts. */
test('the encodings of older versions are counted as a real server counts them after loading', async () => {
  const fields = names(5).map((name) => [name, 'value'] as const)
  const score = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  const streamNode = listpack([2n, 0n, 1n, 'f', 0n, 2n, 0n, 0n, 'v1', 4n, 2n, 1n, 0n, 'v2', 4n])
  const streamId = Buffer.from('0000000000000001000000000000000100', 'hex').subarray(0, 16)
  const dumps: Record<string, RdbBuilder> = {
    v2: new RdbBuilder(2)
      .raw([254, 0])
      .key(0, 'string', text('hello'))
      .key(1, 'linkedlist', length(50), ...names(50).map((name) => text(name)))
      .key(2, 'set', length(40), ...names(40).map((name) => text(name)))
      .key(3, 'zset-text', length(30), ...names(30).flatMap((name, index) => [text(name), score(String(index / 4))]))
      .key(3, 'zset-infinite', length(2), text('a'), [254], text('b'), [255])
      .key(4, 'hash', length(5), ...fields.flat().map((part) => text(part)))
      .raw([253, 0, 0, 0, 0x7f])
      .key(0, 'old-ttl', text('value'))
      .key(9, 'zipmap', text(zipmap(fields))),
    v6: new RdbBuilder(6)
      .raw([254, 0])
      .key(10, 'list-ziplist', text(ziplist(names(100, 'long-enough-to-make-entries-longer'.repeat(3)))))
      .key(11, 'intset', text(Buffer.from('0200000003000000010002000300', 'hex')))
      .key(12, 'zset-ziplist', text(ziplist(['a', '1', 'b', '2', 'c', '3'])))
      .key(13, 'hash-ziplist', text(ziplist(fields.flat()))),
    v7: new RdbBuilder(7)
      .raw([254, 0, 251, 1, 0])
      .key(14, 'quicklist', length(2), text(ziplist(names(60))), text(ziplist(names(70)))),
    v9: new RdbBuilder(9)
      .raw([254, 0])
      .key(5, 'zset-2', length(2), text('a'), Buffer.alloc(8), text('b'), Buffer.alloc(8))
      .key(15, 'stream-1', length(1), text(streamId), text(streamNode), [2, 1, 3, 0]),
  }
  for (const [name, builder] of Object.entries(dumps)) {
    const folder = temporaryFolder('rdb')
    await writeFile(join(folder, 'dump.rdb'), builder.build())
    const server = await startRedis({ folder })
    const found = await readAll(join(folder, 'dump.rdb'))
    const keys = (await server.cli('KEYS', '*')).split('\n').sort()
    expect([...found.keys()].sort(), name).toEqual(keys)
    for (const key of keys) {
      const command = countCommand[found.get(key)!.type!]
      expect(found.get(key)!.type, key).toBe(await server.cli('TYPE', key))
      if (command !== undefined) expect(found.get(key)!.elements, key).toBe(Number(await server.cli(command, key)))
    }
    if (name === 'v2') expect(found.get('old-ttl')!.ttlMs).toBeGreaterThan(0)
    await server.stop()
  }
})
