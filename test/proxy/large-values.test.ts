import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { keySlot } from '@firebreak/core'
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

/** Sends a request whose last argument is `bytes` long, piece by piece, as fast as it is taken. */
async function sendLarge({ socket }: RawClient, head: readonly string[], bytes: number, tail: readonly string[] = []) {
  const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
  const begin = `*${head.length + 1 + tail.length}\r\n${head.map(bulk).join('')}$${bytes}\r\n`
  socket.write(begin)
  const piece = Buffer.alloc(256 * 1024, 'abcdefgh')
  for (let sent = 0; sent < bytes; sent += piece.length) {
    if (!socket.write(piece.subarray(0, Math.min(piece.length, bytes - sent)))) await once(socket, 'drain')
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
      expect(peakBytes(proxy.pid) - before).toBeLessThan(96 * 1024 * 1024)
      await server.cli('DEL', 'huge')
    },
    120_000,
  )

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
