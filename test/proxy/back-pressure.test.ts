import type { Socket } from 'node:net'
import { encodeCommand } from '@firebreak/core/resp'
import { waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { slotsOf } from './fake-redis.ts'
import { letWork, ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

test('a connection that its client was slow to read from is not held up for the next client', async () => {
  await stage.direct.ask('SET', 'middle', Buffer.alloc(60_000, 'x'))
  const proxy = await stage.start({ maxOutputBytes: 65_536, slowReaderMs: 300_000 })
  const slow = await stage.client(proxy)
  const other = await stage.client(proxy)
  slow.socket.pause()
  const commands = [['MULTI'], ['GET', 'middle'], ['EXEC']]
  const request = Buffer.concat(commands.map((command) => encodeCommand(command)))
  const rounds = 300
  for (let round = 0; round < rounds; round++) {
    slow.write(request)
    // One transaction has ended before the next begins, until so much is unread that no more is taken.
    await letWork(other, 10)
  }
  for (let round = 0; round < 5; round++) {
    other.write(request)
    expect([await other.next(), await other.next()]).toEqual(['+OK\r\n', '+QUEUED\r\n'])
    expect((await other.next()).length).toBeGreaterThan(60_000)
  }
  slow.socket.resume()
  for (let count = 0; count < rounds * 3; count++) await slow.next()
})

test('a bound below what a socket takes without a word is kept too', async () => {
  await stage.direct.ask('SET', 'small', Buffer.alloc(5000, 'x'))
  const proxy = await stage.start({ maxOutputBytes: 1000, slowReaderMs: 300_000 })
  const slow = await stage.client(proxy)
  slow.socket.pause()
  const request = encodeCommand(['GET', 'small'])
  for (let round = 0; round < 4000; round++) slow.write(request)
  await letWork(await stage.client(proxy), 300)
  slow.socket.resume()
  for (let count = 0; count < 4000; count++) await slow.next()
})

test('a subscriber that does not read makes Redis wait, however small the messages are', async () => {
  await stage.direct.ask('CONFIG', 'SET', 'client-output-buffer-limit', 'pubsub 0 0 0')
  const proxy = await stage.start({ maxOutputBytes: 200_000 })
  const slow = await stage.client(proxy)
  const other = await stage.client(proxy)
  const address = `127.0.0.1:${slow.socket.localPort}`
  const id = new RegExp(`id=(\\d+) addr=${address} `).exec(await other.ask('CLIENT', 'LIST'))![1]!
  await slow.ask('SUBSCRIBE', 'news')
  slow.socket.pause()
  const message = 'm'.repeat(1000)
  const count = 60_000
  const publish = encodeCommand(['PUBLISH', 'news', message])
  for (let index = 0; index < count; index += 1000) {
    stage.direct.write(Buffer.concat(Array.from({ length: 1000 }, () => publish)))
    for (let nth = 0; nth < 1000; nth++) await stage.direct.next()
  }
  await letWork(other, 300)
  // Sixty megabytes are on their way; the kernel has some of them, Redis most.
  const unread = Number(/omem=(\d+)/.exec(await other.ask('CLIENT', 'LIST', 'ID', id))![1])
  expect(unread).toBeGreaterThan(0)
  expect(unread).toBeLessThan(1_000_000)
  slow.socket.resume()
  const expected = `*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1000\r\n${message}\r\n`
  for (let index = 0; index < count; index++) if ((await slow.next()) !== expected) expect.fail(`message ${index}`)
})

test('what a client sends behind CLIENT REPLY OFF comes no faster than Redis takes it', async () => {
  let taken = 0
  const redis = await stage.fake((words, socket) => {
    if (words[0] === 'INFO') return '$0\r\n\r\n'
    // Asked by the proxy before it tells clients without a password of others.
    if (words[0] === 'PING') return '+PONG\r\n'
    if (words[0] === 'SET') taken++
    if (words[0] === 'CLIENT') socket.pause()
    return undefined
  })
  const proxy = await stage.start({ upstream: `127.0.0.1:${redis.port}`, mode: 'single' })
  const loader = await stage.client(proxy)
  const other = await stage.client(proxy)
  loader.send('CLIENT', 'REPLY', 'OFF')
  await waitFor(() => [...redis.sockets].some((socket) => socket.isPaused()))
  const set = encodeCommand(['SET', 'k', Buffer.alloc(100_000, 'v')])
  for (let index = 0; index < 640; index++) loader.write(set)
  await letWork(other)
  expect(loader.socket.writableLength).toBeGreaterThan(30_000_000)
  for (const socket of redis.sockets) socket.resume()
  await waitFor(() => taken === 640, { what: () => `all requests, have ${taken}` })
})

test('a Redis that takes nothing makes the clients of a shared connection wait', async () => {
  let taken = 0
  const redis = await stage.fake((words, socket) => {
    if (words[0] === 'SET') taken++
    if (words[0] === 'GET') socket.pause()
    return words[0] === 'SET' ? '+OK\r\n' : '$-1\r\n'
  })
  const proxy = await stage.start({ upstream: `127.0.0.1:${redis.port}`, mode: 'single', maxQueuedBytes: 1_000_000 })
  const writer = await stage.client(proxy)
  const other = await stage.client(proxy)
  await writer.ask('GET', 'k')
  const set = encodeCommand(['SET', 'k', Buffer.alloc(100_000, 'v')])
  let written = 0
  const write = () => {
    while (written < 1500 && writer.socket.writableLength < 1_000_000) {
      writer.write(set)
      written++
    }
  }
  writer.socket.on('drain', write)
  write()
  await letWork(other)
  expect(written).toBeLessThan(1500)
  for (const socket of redis.sockets) socket.resume()
  for (let index = 0; index < 1500; index++) expect(await writer.next()).toBe('+OK\r\n')
  expect(taken).toBe(1500)
})

test('KEYS over a cluster comes no faster than its reader reads', async () => {
  const item = `$1000\r\n${'k'.repeat(1000)}\r\n`
  const itemCount = 64_000
  const streams: Socket[] = []
  const ports: number[] = []
  const nodes = await Promise.all(
    [0, 1].map(() =>
      stage.fake((words, socket) => {
        if (words[0] === 'CLUSTER') return slotsOf(ports)
        if (words[0] !== 'KEYS') return '+OK\r\n'
        streams.push(socket)
        return `*${itemCount}\r\n${item.repeat(itemCount)}`
      }),
    ),
  )
  ports.push(...nodes.map(({ port }) => port))
  const proxy = await stage.start({ upstream: `127.0.0.1:${ports[0]}`, mode: 'cluster', maxOutputBytes: 500_000 })
  const slow = await stage.client(proxy)
  const other = await stage.client(proxy)
  slow.socket.pause()
  slow.send('KEYS', '*')
  await waitFor(() => streams.length === 2)
  await letWork(other)
  for (const socket of streams) expect(socket.writableLength).toBeGreaterThan(30_000_000)
  slow.socket.resume()
  expect((await slow.next()).length).toBe(`*${itemCount * 2}\r\n`.length + item.length * itemCount * 2)
})
