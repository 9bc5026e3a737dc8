import { connect, type Socket } from 'node:net'
import { FaultProxy, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'

const hugeBytes = 64 * 1024 * 1024
const hugeReplyBytes = `$${hugeBytes}\r\n`.length + hugeBytes + 2

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
  await stage.direct.ask('SETRANGE', 'huge', String(hugeBytes - 1), 'x')
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

/** A client that reads no more once it has so many bytes. */
class SlowReader {
  readonly socket: Socket
  readonly hasStopped: Promise<void>
  received = 0

  constructor(port: number, untilBytes: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.hasStopped = new Promise((resolve) => {
      this.socket.on('data', (chunk) => {
        const before = this.received
        this.received += chunk.length
        if (before >= untilBytes || this.received < untilBytes) return
        this.socket.pause()
        resolve()
      })
    })
    stage.onClear(() => this.socket.destroy())
  }
}

const connections = async () =>
  Number(/total_connections_received:(\d+)/.exec(await stage.direct.ask('INFO', 'stats'))![1])

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test('behind a huge value that is read slowly nobody has to wait who comes after it', async () => {
    const proxy = await stage.start({ transport, maxOutputBytes: 4_000_000, slowReaderMs: 300_000 })
    const other = await stage.client(proxy)
    await other.ask('PING')
    const slow = new SlowReader(proxy.port, 2_000_000)
    slow.socket.write('GET huge\r\n')
    await slow.hasStopped
    for (let index = 1; index <= 200; index++) expect(await other.ask('INCR', `n ${transport}`)).toBe(`:${index}\r\n`)
    // Of a reply that is held up nobody keeps more than the bound and what the kernel has.
    expect(slow.received).toBeLessThan(hugeReplyBytes)
    slow.socket.resume()
    await waitFor(() => slow.received === hugeReplyBytes, { what: () => `all bytes, have ${slow.received}` })
    expect(await other.ask('PING')).toBe('+PONG\r\n')
  })
})

test('who asks for more than it reads holds up nobody who shares its connection', async () => {
  const proxy = await stage.start({ maxOutputBytes: 1_000_000, slowReaderMs: 300_000 })
  await stage.direct.ask('SETRANGE', 'large', '9999', 'x')
  const other = await stage.client(proxy)
  await other.ask('PING')
  const slow = new SlowReader(proxy.port, 500_000)
  slow.socket.write('GET large\r\n'.repeat(20_000))
  await slow.hasStopped
  for (let index = 1; index <= 200; index++) expect(await other.ask('INCR', 'n beside')).toBe(`:${index}\r\n`)
  slow.socket.resume()
  const bytes = 20_000 * ('$10000\r\n'.length + 10_000 + 2)
  await waitFor(() => slow.received === bytes, { what: () => `all bytes, have ${slow.received}` })
})

test('who has something owed behind a huge value stays on its connection, so that its order holds', async () => {
  const proxy = await stage.start({ maxOutputBytes: 1_000_000, slowReaderMs: 300_000 })
  const other = await stage.client(proxy)
  await other.ask('PING')
  const slow = new SlowReader(proxy.port, 2_000_000)
  slow.socket.write('PING\r\n')
  await waitFor(() => slow.received > 0)
  // Both are on their way before Redis answers the first.
  await stage.direct.ask('CLIENT', 'PAUSE', '300', 'ALL')
  slow.socket.write('GET huge\r\n')
  for (let index = 0; index < 3; index++) await other.ask('FIREBREAK', 'HELP')
  other.send('INCR', 'ordered')
  await slow.hasStopped
  await waitFor(async () => (await stage.direct.ask('GET', 'ordered')) === '$1\r\n1\r\n')
  const before = await connections()
  for (let index = 2; index <= 50; index++) other.send('INCR', 'ordered')
  await waitFor(async () => (await stage.direct.ask('GET', 'ordered')) === '$2\r\n50\r\n')
  expect(await connections()).toBe(before)
  slow.socket.resume()
  for (let index = 1; index <= 50; index++) expect(await other.next()).toBe(`:${index}\r\n`)
})

test('a slow reader whom nobody waits behind may take its time', async () => {
  const proxy = await stage.start({ maxOutputBytes: 1_000_000, slowReaderMs: 1 })
  const slow = new SlowReader(proxy.port, 2_000_000)
  slow.socket.write('GET huge\r\n')
  await slow.hasStopped
  const other = await stage.client(proxy)
  for (let index = 0; index < 100; index++) await other.ask('PING')
  slow.socket.resume()
  await waitFor(() => slow.received === hugeReplyBytes || slow.socket.closed)
  expect(slow.received).toBe(hugeReplyBytes)
  expect(await other.ask('FIREBREAK', 'INFO')).toContain('firebreak_slow_readers_closed:0')
})

test('a proxy that closes leaves no connection behind that a slow reader has held up', async () => {
  const between = await FaultProxy.start(stage.server.port)
  stage.onClear(() => between.close())
  const proxy = await stage.start({ upstream: `127.0.0.1:${between.port}`, mode: 'single', maxOutputBytes: 100_000 })
  const slow = new SlowReader(proxy.port, 2_000_000)
  slow.socket.write('GET huge\r\n')
  await slow.hasStopped
  between.faults.isBlackHole = true
  await proxy.close()
  await waitFor(() => between.openConnections === 0)
})
