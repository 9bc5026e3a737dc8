import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { keySlot } from '@firebreak/core/commands'
import {
  type GuardedChild,
  type RedisCluster,
  type RedisServer,
  redisCli,
  scale,
  sourceArgs,
  startChild,
  startCluster,
  startRedis,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

const valueBytes = scale(160, 512) * 1024 * 1024
// What is put aside for one of them at least where it is held; garbage that waits for the collector is well below.
const heldBytes = 152 * 1024 * 1024
const children: GuardedChild[] = []
const clients: RawClient[] = []

async function start(settings: object): Promise<{ port: number; pid: number }> {
  const file = fileURLToPath(new URL('./proxy-process.ts', import.meta.url))
  const child = startChild(process.execPath, [...sourceArgs, file, JSON.stringify({ port: 0, ...settings })])
  children.push(child)
  const [, port] = await child.printed(/listening (\d+)/)
  return { port: Number(port), pid: child.pid }
}

async function connect(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port)
  clients.push(client)
  return client
}

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  await Promise.all(children.splice(0).map((child) => child.stop(500)))
})

/** The most memory that a process ever had, in bytes. */
function peakBytes(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

const pattern = Buffer.alloc(256 * 1024, 'abcdefgh')

/** Reads replies of one bulk string each without keeping them; true where each is the pattern, `bytes` long. */
async function readLarge({ socket }: RawClient, bytes: number, replies: number): Promise<boolean> {
  const head = `$${bytes}\r\n`
  const replyBytes = head.length + bytes + 2
  socket.removeAllListeners('data')
  let seen = 0
  let pausedAt = 0
  let isRight = true
  await new Promise<void>((resolve, reject) => {
    socket.on('close', () => reject(new Error(`closed after ${seen} bytes`)))
    socket.on('data', (chunk: Buffer) => {
      for (let at = 0; at < chunk.length; ) {
        const place = seen % replyBytes
        const inValue = place - head.length
        if (inValue >= 0 && inValue < bytes) {
          const from = inValue % 8
          const length = Math.min(chunk.length - at, bytes - inValue, pattern.length - 8)
          isRight &&= chunk.compare(pattern, from, from + length, at, at + length) === 0
          at += length
          seen += length
        } else {
          const expected = inValue < 0 ? head.charCodeAt(place) : inValue === bytes ? 13 : 10
          isRight &&= chunk[at] === expected
          at++
          seen++
        }
      }
      if (seen === replyBytes * replies) resolve()
      // Now and then it is slower than its replies come.
      if (seen - pausedAt < 4 * 1024 * 1024) return
      pausedAt = seen
      socket.pause()
      setTimeout(() => socket.resume(), 1)
    })
  })
  return isRight
}

/** Waits until more can be written; a connection that was closed meanwhile never drains. */
async function drained(socket: Socket): Promise<void> {
  const waiting = new AbortController()
  const { signal } = waiting
  const ended = () => {
    throw new Error('the connection was closed')
  }
  if (socket.destroyed) ended()
  await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal }).then(ended)]).finally(() =>
    waiting.abort(),
  )
}

/** Sends a request with one argument that is `bytes` long, piece by piece, as fast as it is taken. */
async function sendLarge({ socket }: RawClient, head: readonly string[], bytes: number, tail: readonly string[] = []) {
  const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
  const begin = `*${head.length + 1 + tail.length}\r\n${head.map(bulk).join('')}$${bytes}\r\n`
  socket.write(begin)
  for (let sent = 0; sent < bytes; sent += pattern.length) {
    if (!socket.write(pattern.subarray(0, Math.min(pattern.length, bytes - sent)))) await drained(socket)
  }
  socket.write(`\r\n${tail.map(bulk).join('')}`)
}

describe('before one Redis', () => {
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  test.each(['net', 'raw'])(
    'a huge value goes through without being held, over %s',
    async (transport) => {
      const proxy = await start({ upstream: server.url, transport })
      const client = await connect(proxy.port)
      await client.ask('SET', 'warm', 'up')
      const before = peakBytes(proxy.pid)
      client.send('INCR', 'before')
      const sent = sendLarge(client, ['SET', 'huge'], valueBytes)
      const others = await connect(proxy.port)
      for (let count = 0; count < 50; count++) expect(await others.ask('PING')).toBe('+PONG\r\n')
      await sent
      client.send('STRLEN', 'huge')
      expect([await client.next(), await client.next(), await client.next()]).toEqual([
        expect.stringMatching(/^:\d+\r\n$/),
        '+OK\r\n',
        `:${valueBytes}\r\n`,
      ])
      expect(peakBytes(proxy.pid) - before).toBeLessThan(heldBytes)
      await server.cli('DEL', 'huge')
    },
    120_000,
  )

  test('a huge value is read as it comes, whole or a part of it, and by somebody who takes its time', async () => {
    const proxy = await start({ upstream: server.url })
    const client = await connect(proxy.port)
    await sendLarge(await connect(server.port), ['SET', 'huge'], valueBytes)
    await waitFor(async () => (await client.ask('STRLEN', 'huge')) === `:${valueBytes}\r\n`, { timeoutMs: 60_000 })
    const before = peakBytes(proxy.pid)
    const reader = await connect(proxy.port)
    reader.send('GET', 'huge')
    reader.send('GETRANGE', 'huge', '0', '-1')
    expect(await readLarge(reader, valueBytes, 2)).toBe(true)
    const part = await connect(proxy.port)
    part.send('GETRANGE', 'huge', String(valueBytes / 2), '-1')
    expect(await readLarge(part, valueBytes / 2, 1)).toBe(true)
    // What it may leave unread on a connection of its own and on a shared one, and as much for the collector.
    expect(peakBytes(proxy.pid) - before).toBeLessThan(288 * 1024 * 1024)
    await server.cli('DEL', 'huge')
  }, 120_000)

  test('every command takes a huge argument without its being held, wherever it stands', async () => {
    const proxy = await start({ upstream: server.url })
    const client = await connect(proxy.port)
    await client.ask('SET', 'warm', 'up')
    const before = peakBytes(proxy.pid)
    const half = valueBytes / 2
    const script = 'return {#ARGV[1], ARGV[2], KEYS[1]}'
    const cases: [head: string[], tail: string[], reply: string, bytes?: number][] = [
      [['MSET', 'a', '1', 'huge'], ['b', '2'], '+OK\r\n'],
      [['MSETNX', 'c', '1', 'huge2'], ['d', '2'], ':1\r\n'],
      [['EVAL', script, '1', 'k'], ['more'], `*3\r\n:${valueBytes}\r\n$4\r\nmore\r\n$1\r\nk\r\n`],
      [['SET', 'huge'], ['GET', 'PX', '100000'], '$-1\r\n'],
      [['SETRANGE', 'ranged', String(half)], [], `:${valueBytes}\r\n`, half],
      [['APPEND', 'appended'], [], `:${half}\r\n`, half],
      [['RPUSH', 'list', 'x'], ['y'], ':3\r\n'],
      [['HSET', 'hash', 'f', '1', 'g'], ['h', '2'], ':3\r\n'],
      [['PUBLISH', 'nowhere'], [], ':0\r\n'],
      [['NOSUCHCOMMAND', 'x'], ['y'], "-ERR unknown command 'NOSUCHCOMMAND'"],
    ]
    for (const [head, tail, expected, bytes = valueBytes] of cases) {
      await sendLarge(client, head, bytes, tail)
      expect(await client.next(), head.join(' ')).toContain(expected)
      expect(await client.ask('PING'), head.join(' ')).toBe('+PONG\r\n')
      if (head[0] === 'MSET') expect(await client.ask('MGET', 'a', 'b')).toBe('*2\r\n$1\r\n1\r\n$1\r\n2\r\n')
      await client.ask('FLUSHALL')
    }
    expect(peakBytes(proxy.pid) - before).toBeLessThan(heldBytes)
  }, 240_000)

  test('a request of very many small arguments is not held either', async () => {
    const proxy = await start({ upstream: server.url })
    const client = await connect(proxy.port)
    await client.ask('SET', 'warm', 'up')
    const before = peakBytes(proxy.pid)
    const count = scale(160_000, 400_000)
    const item = 'i'.repeat(1000)
    const items = Buffer.from(`$1000\r\n${item}\r\n`.repeat(100))
    client.write(`*${count + 2}\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n`)
    for (let sent = 0; sent < count; sent += 100) {
      // Cut anywhere, also within the line before an argument.
      const cut = (sent * 7919) % items.length
      client.socket.write(items.subarray(0, cut))
      if (!client.socket.write(items.subarray(cut))) await once(client.socket, 'drain')
    }
    expect(await client.next()).toBe(`:${count}\r\n`)
    expect(await client.ask('LINDEX', 'list', '-1')).toBe(`$1000\r\n${item}\r\n`)
    expect(peakBytes(proxy.pid) - before).toBeLessThan(heldBytes)
    await client.ask('DEL', 'list')
  }, 120_000)

  test('a server that takes only smaller ones says so itself, and nobody else gets that connection', async () => {
    const proxy = await start({ upstream: server.url })
    await server.cli('CONFIG', 'SET', 'proto-max-bulk-len', '1mb')
    for (let count = 0; count < 5; count++) {
      const client = await connect(proxy.port)
      const others = await connect(proxy.port)
      const sent = sendLarge(client, ['SET', 'k'], 64 * 1024 * 1024).catch(() => {})
      for (let nth = 0; nth < 20; nth++) {
        others.send('WATCH', 'x')
        others.send('UNWATCH')
        expect([await others.next(), await others.next()]).toEqual(['+OK\r\n', '+OK\r\n'])
      }
      expect(['-ERR Protocol error: invalid bulk length\r\n', 'CLOSED']).toContain(await client.next())
      await client.closed
      await sent
    }
    await server.cli('CONFIG', 'SET', 'proto-max-bulk-len', '512mb')
  })

  test('a client that has not said who it is may send little, as to Redis', async () => {
    const proxy = await start({ upstream: server.url, users: [{ name: 'app', password: 'secret' }] })
    for (const [bytes, error] of [
      ['*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000\r\n', 'bulk'],
      ['*11\r\n', 'multibulk'],
    ]) {
      const client = await connect(proxy.port)
      client.write(bytes!)
      expect(await client.next()).toBe(`-ERR Protocol error: unauthenticated ${error} length\r\n`)
      await client.closed
    }
  })

  test('arguments behind a large one, transactions and errors are as Redis has them', async () => {
    const proxy = await start({ upstream: server.url })
    const client = await connect(proxy.port)
    const bytes = 3 * 1024 * 1024
    await sendLarge(client, ['SET', 'k'], bytes, ['PX', '100000'])
    expect(await client.next()).toBe('+OK\r\n')
    expect(Number(await server.cli('PTTL', 'k'))).toBeGreaterThan(0)
    await sendLarge(client, ['HSET', 'h', 'f'], bytes, ['g', 'small'])
    await sendLarge(client, ['LPUSH', 'k'], bytes)
    client.send('MULTI')
    await sendLarge(client, ['APPEND', 'k'], bytes)
    client.send('STRLEN', 'k')
    client.send('EXEC')
    await sendLarge(client, ['GETSET', 'k'], bytes, ['one', 'too', 'many'])
    client.send('PING')
    const replies: string[] = []
    for (let count = 0; count < 8; count++) replies.push(await client.next())
    expect(replies).toEqual([
      ':2\r\n',
      expect.stringMatching(/^-WRONGTYPE/),
      '+OK\r\n',
      '+QUEUED\r\n',
      '+QUEUED\r\n',
      `*2\r\n:${2 * bytes}\r\n:${2 * bytes}\r\n`,
      expect.stringMatching(/^-ERR wrong number of arguments/),
      '+PONG\r\n',
    ])
    expect(await server.cli('HGET', 'h', 'g')).toBe('small')
  })
})

describe('before a cluster', () => {
  let cluster: RedisCluster

  beforeAll(async () => {
    cluster = await startCluster()
  })
  afterAll(() => cluster.stop())

  test('what need not be seen whole is not held; what is split is, up to a bound', async () => {
    const proxy = await start({
      upstream: `redis://127.0.0.1:${cluster.addresses[0]!.port}`,
      maxHeldBytes: 8 * 1024 * 1024,
    })
    const client = await connect(proxy.port)
    const bytes = 5 * 1024 * 1024
    const other = 10 * 1024 * 1024
    await sendLarge(client, ['MSET', 'a', '1', 'b'], bytes, ['c', '3'])
    expect(await client.next()).toBe('+OK\r\n')
    expect(await client.ask('STRLEN', 'b')).toBe(`:${bytes}\r\n`)
    await sendLarge(client, ['MSET', 'a', '2', 'b'], other, ['c', '4'])
    client.send('GET', 'a')
    expect(await client.next()).toMatch(/^-ERR Firebreak: this request must be held in memory as a whole.*8388608/)
    expect(await client.next()).toBe('$1\r\n1\r\n')
    await sendLarge(client, ['EVAL', 'return #ARGV[1]', '1', 'somewhere'], other)
    await sendLarge(client, ['EVAL', 'return #ARGV[1]', '0'], other)
    await sendLarge(client, ['MSETNX', '{t}1', 'x', '{t}2'], other, ['{t}3', 'y'])
    await sendLarge(client, ['MSETNX', '1', 'x', '2'], other, ['3', 'y'])
    await sendLarge(client, ['SUNIONSTORE', '{t}d', '{t}none'], other)
    await sendLarge(client, ['PUBLISH', 'nowhere'], other)
    client.send('PING')
    const replies: string[] = []
    for (let count = 0; count < 7; count++) replies.push(await client.next())
    expect(replies).toEqual([
      `:${other}\r\n`,
      `:${other}\r\n`,
      ':1\r\n',
      expect.stringMatching(/^-CROSSSLOT/),
      expect.stringMatching(/^-CROSSSLOT/),
      ':0\r\n',
      '+PONG\r\n',
    ])
  })

  test('a large value in a transaction is queued with the rest of it', async () => {
    const proxy = await start({ upstream: `redis://127.0.0.1:${cluster.addresses[0]!.port}` })
    const client = await connect(proxy.port)
    const bytes = 3 * 1024 * 1024
    for (const key of ['x', 'y', 'z']) {
      client.send('MULTI')
      await sendLarge(client, ['SET', key], bytes)
      client.send('STRLEN', key)
      client.send('EXEC')
      const replies: string[] = []
      for (let count = 0; count < 4; count++) replies.push(await client.next())
      expect(replies).toEqual(['+OK\r\n', '+QUEUED\r\n', '+QUEUED\r\n', `*2\r\n+OK\r\n:${bytes}\r\n`])
    }
  })

  test('a large value comes to its node, and to the new one once its slot has moved', async () => {
    const upstream = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    const proxy = await start({ upstream })
    const client = await connect(proxy.port)
    const bytes = 2 * 1024 * 1024
    for (const key of ['a', 'b', 'c']) {
      await sendLarge(client, ['SET', key], bytes)
      expect(await client.next()).toBe('+OK\r\n')
      expect(await client.ask('STRLEN', key)).toBe(`:${bytes}\r\n`)
    }
    const slot = keySlot('moving')
    const owner = cluster.nodes[Math.min(2, Math.floor(slot / 5461))]!
    const next = cluster.nodes.find((node) => node !== owner)!
    const nextId = await next.cli('CLUSTER', 'MYID')
    for (const node of [next, owner, ...cluster.nodes])
      await redisCli(node.port, 'CLUSTER', 'SETSLOT', String(slot), 'NODE', nextId)
    await waitFor(async () => {
      await sendLarge(client, ['SET', 'moving'], bytes)
      const reply = await client.next()
      if (reply === '+OK\r\n') return true
      expect(reply).toMatch(/^-TRYAGAIN/)
      return false
    })
    expect(await next.cli('STRLEN', 'moving')).toBe(String(bytes))
  })
})
