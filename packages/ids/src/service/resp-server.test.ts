import { connect } from 'node:net'
import { redisCli } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SnowflakeNode } from '../node/snowflake-node.ts'
import { SegmentIds } from '../segment/segment-ids.ts'
import { sqliteSegmentStore } from '../segment/sqlite-store.ts'
import { IdService } from './id-service.ts'
import { RespIdServer } from './resp-server.ts'

let snowflake: SnowflakeNode
let segments: SegmentIds
let service: IdService
let server: RespIdServer
beforeAll(async () => {
  snowflake = await SnowflakeNode.start({ workerId: 9 })
  segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
  for (const tag of ['a', 'b', 'c', 'd', 'e']) await segments.addTag(tag, { step: 10 })
  await segments.addTag('huge', { step: 10, maxId: 9_007_199_254_740_993n })
  service = new IdService({ snowflake, segments, maxCount: 5000 })
  server = await RespIdServer.start({ service })
})
afterAll(async () => {
  await server.close()
  await segments.close()
  await snowflake.close()
})

/** Sends raw bytes and returns the reply once it matches, or once the server hangs up. */
function raw(bytes: string, until: RegExp | 'closed', port = server.port): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => {
      answer += chunk.toString()
      if (until !== 'closed' && until.test(answer)) socket.destroy()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

describe('any Redis client is an id client', () => {
  test('redis-cli', async () => {
    expect(await redisCli(server.port, 'INCR', 'a')).toBe('1')
    expect(await redisCli(server.port, 'LPOP', 'a', '3')).toBe('2\n3\n4')
    expect(snowflake.decode(await redisCli(server.port, 'INCR', 'snowflake')).workerId).toBe(9)
  })

  test('ioredis', async () => {
    const client = new Ioredis(server.port)
    expect(await client.incr('b')).toBe(1)
    expect(await client.lpop('b')).toBe('2')
    expect(await client.lpop('b', 2)).toEqual(['3', '4'])
    expect(await client.lpop('huge')).toBe('9007199254740993')
    expect(snowflake.decode((await client.lpop('snowflake:orders'))!).workerId).toBe(9)
    client.disconnect()
  })

  test.each([2, 3] as const)('node-redis over RESP%i', async (version) => {
    const client = createClient({ url: `redis://127.0.0.1:${server.port}`, RESP: version })
    await client.connect()
    const tag = version === 2 ? 'c' : 'd'
    expect(await client.incr(tag)).toBe(1)
    expect(await client.lPop(tag)).toBe('2')
    expect(await client.lPopCount(tag, 2)).toEqual(['3', '4'])
    client.destroy()
  })
})

test('pipelined requests are answered in order, even when some must wait for the database', async () => {
  const client = new Ioredis(server.port)
  const pipeline = client.pipeline()
  for (let index = 0; index < 2000; index++) pipeline.incr('e')
  const replies = (await pipeline.exec())!
  expect(replies.map(([, id]) => id)).toEqual(Array.from({ length: 2000 }, (_, index) => index + 1))
  client.disconnect()
})

test('a request may arrive byte by byte, and inline', async () => {
  const socket = connect(server.port, '127.0.0.1')
  socket.setNoDelay(true)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  const before = BigInt(await segments.next('a'))
  for (const byte of '*2\r\n$4\r\nINCR\r\n$1\r\na\r\nincr "a"\r\n') {
    await new Promise((resolve) => socket.write(byte, resolve))
  }
  await expect.poll(() => answer).toBe(`:${before + 1n}\r\n:${before + 2n}\r\n`)
  socket.destroy()
})

test('integers keep all digits on the wire', async () => {
  expect(await raw('INCR snowflake\r\n', /\r\n$/)).toMatch(/^:\d{19}\r\n$/)
})

test('errors say what is wrong and leave the connection open', async () => {
  const client = new Ioredis(server.port)
  await expect(client.incr('nobody')).rejects.toThrow('ERR FB_IDS_TAG_UNKNOWN: unknown tag "nobody"')
  await expect(client.lpop('a', 5001)).rejects.toThrow('from 1 to 5000')
  await expect(client.lpop('snowflake', 0)).rejects.toThrow('from 1 to 5000')
  await expect(client.get('a')).rejects.toThrow("unknown command 'GET'; ids come from INCR and LPOP")
  await expect(client.call('INCR')).rejects.toThrow('wrong number of arguments')
  expect(await client.ping()).toBe('PONG')
  expect(await client.info()).toContain('snowflake_worker:9')
  client.disconnect()
})

test('anything but RESP is answered with an error and the connection ends', async () => {
  expect(await raw('*1\r\n!3\r\n', 'closed')).toMatch(/^-ERR Protocol error/)
  expect(await raw('*1\r\n$99999999\r\n', 'closed')).toMatch(/^-ERR Protocol error/)
  expect(await raw('QUIT\r\nINCR a\r\n', 'closed')).toBe('+OK\r\n')
})

test('a client that asks for much and reads nothing gets only a bounded number of answers', async () => {
  const socket = connect(server.port, '127.0.0.1')
  socket.pause()
  const before = service.given
  socket.write('LPOP snowflake 5000\r\n'.repeat(3000))
  // A few batches fill the buffers of both sides; then the server waits.
  await expect.poll(() => service.given).toBeGreaterThan(before)
  let seen = -1
  await expect
    .poll(
      () => {
        const isStill = service.given === seen
        seen = service.given
        return isStill
      },
      { interval: 300, timeout: 20_000 },
    )
    .toBe(true)
  expect(service.given - before).toBeLessThan(3000 * 5000)
  let received = 0
  socket.on('data', (chunk) => {
    received += chunk.length
  })
  socket.resume()
  await expect.poll(() => received, { timeout: 30_000 }).toBeGreaterThan(20_000_000)
  socket.destroy()
})

test('with a token nothing is served before AUTH', async () => {
  const guarded = await RespIdServer.start({ service, token: 'secret' })
  expect(await raw('INCR a\r\nLPOP snowflake\r\nPING\r\nQUIT\r\n', 'closed', guarded.port)).toMatch(
    /^(-NOAUTH [^\r]+\r\n){3}\+OK\r\n$/,
  )
  const friend = new Ioredis(guarded.port, { password: 'secret' })
  expect(await friend.incr('a')).toBeGreaterThan(0)
  const node = createClient({ url: `redis://:secret@127.0.0.1:${guarded.port}`, RESP: 3 })
  await node.connect()
  expect(await node.incr('a')).toBeGreaterThan(0)
  const hello = 'HELLO 3 AUTH default guess\r\nAUTH guess\r\nQUIT\r\n'
  expect(await raw(hello, 'closed', guarded.port)).toMatch(/^(-WRONGPASS [^\r]+\r\n){2}\+OK\r\n$/)
  node.destroy()
  friend.disconnect()
  await guarded.close()
})
