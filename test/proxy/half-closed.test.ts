import { connect, type Socket } from 'node:net'
import { keySlot } from '@firebreak/core/commands'
import { type CommandArgument, encodeCommand } from '@firebreak/core/resp'
import { waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { slotsOf } from './fake-redis.ts'
import { letWork, ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
beforeEach(() => stage.direct.ask('FLUSHALL'))
afterEach(() => stage.clear())

const packet = (...commands: CommandArgument[][]) => Buffer.concat(commands.map((command) => encodeCommand(command)))
const words = (text: string) => text.split('; ').map((command) => command.split(' '))

const mixed = Array.from({ length: 10_000 }, (_, index) =>
  index % 2 === 0 ? ['SET', `key ${index % 97}`, String(index)] : ['GET', `key ${(index * 7) % 97}`],
)
const large = encodeCommand(['SET', 'large', Buffer.alloc(3_000_000, 'v')])

const sent: [string, Buffer][] = [
  ...[
    'SET a 1; QUIT',
    'MULTI; INCR n; EXEC; QUIT',
    'GET a; MULTI; SET a 1; EXEC',
    'WATCH a; MULTI; SET a 1; EXEC',
    'MULTI; SET a 1',
    'SELECT 1; SET a 1; GET a',
    'HELLO 3; SET a 1; HGETALL a',
    'AUTH default x; SET a 1; GET a',
    'RPUSH l 1 2; BLPOP l 0; CLIENT SETNAME x; SET a 1; BLPOP l 0; SELECT 1; SET b 1; BLPOP l 0; SET c 1',
    'SET a 1; BLPOP l 0; SET b 1',
    'BLPOP l 0; QUIT',
    'MULTI; BLPOP l 0; SELECT 1; SET a 1; EXEC; GET a',
    'SUBSCRIBE c; PING; UNSUBSCRIBE; SET a 1',
    'SUBSCRIBE c',
    'MULTI; SUBSCRIBE c; EXEC; PING',
    'CLIENT REPLY OFF; SET a 1; SET b 1',
    'CLIENT REPLY ON; SET a 1; GET a',
    'RPUSH l 1; BLPOP l 0; CLIENT REPLY ON; GET a; BLPOP l 0',
  ].map((text): [string, Buffer] => [text, packet(...words(text))]),
  ['PING fifty times', packet(...Array.from({ length: 50 }, () => ['PING']))],
  ['typed lines', Buffer.from('SET n 1\r\nGET n\r\n')],
  ['ten thousand reads and writes', packet(...mixed)],
  [
    'a request that is not all there',
    Buffer.concat([packet(['SET', 'a', '1'], ['GET', 'a']), Buffer.from('*2\r\n$3')]),
  ],
  ['what is no request', Buffer.concat([packet(['SET', 'a', '1']), Buffer.from('*x\r\n')])],
  ['a large value', Buffer.concat([large, packet(['STRLEN', 'large'])])],
  ['a part of a large value', Buffer.concat([packet(['SET', 'a', '1']), large.subarray(0, 2_000_000)])],
  ['nothing', Buffer.alloc(0)],
]

/** All that comes back from a peer that is sent bytes and their end. */
function answersOf(socket: Socket, bytes: Buffer): Promise<string> {
  const chunks: Buffer[] = []
  stage.onClear(() => socket.destroy())
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => {})
  socket.end(bytes)
  return new Promise((resolve) => {
    const text = () => Buffer.concat(chunks).toString('latin1')
    // Each connection has its own number.
    socket.on('close', () => resolve(text().replace(/id\r\n:\d+/, 'id\r\n:0')))
  })
}

/** What the keys of two databases hold. */
async function dataset(): Promise<string> {
  const script = `local all = {}
    for database = 0, 1 do
      redis.call('SELECT', database)
      local keys = redis.call('KEYS', '*')
      table.sort(keys)
      for _, key in ipairs(keys) do table.insert(all, database .. key .. redis.sha1hex(redis.call('DUMP', key))) end
    end
    return all`
  return stage.direct.ask('EVAL', script, '0')
}

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test.each(sent)('a client that ends its side is answered as by Redis: %s', async (_name, bytes) => {
    const proxy = await stage.start({ transport })
    const expected = await answersOf(connect(stage.server.port), bytes)
    const state = await dataset()
    await stage.direct.ask('FLUSHALL')
    expect(await answersOf(connect(proxy.port), bytes)).toBe(expected)
    expect(await dataset()).toBe(state)
    const other = await stage.client(proxy)
    await waitFor(async () => (await other.ask('FIREBREAK', 'INFO')).includes('firebreak_clients:1\r\n'))
    expect(await other.ask('FIREBREAK', 'INFO')).toContain('firebreak_upstream_owned:0\r\n')
  })

  test('more than may be on its way is answered behind a command that might have waited', async () => {
    const proxy = await stage.start({ transport, maxInFlight: 10 })
    const other = await stage.client(proxy)
    await stage.direct.ask('RPUSH', 'l', '1')
    // Redis comes to all of it only after the client's end.
    stage.direct.send('DEBUG', 'SLEEP', '0.3')
    const socket = connect(proxy.port)
    const pings = packet(...Array.from({ length: 20 }, () => ['PING']))
    for (const bytes of [packet(['BLPOP', 'l', '0']), pings, pings]) {
      socket.write(bytes)
      await letWork(other, 5)
    }
    const answers = await answersOf(socket, pings)
    expect(answers).toBe(`*2\r\n$1\r\nl\r\n$1\r\n1\r\n${'+PONG\r\n'.repeat(60)}`)
    expect(await stage.direct.next()).toBe('+OK\r\n')
  })

  test.each([
    'SET a 1',
    'HELLO 3; SET a 1',
    'AUTH default x; SET a 1',
    'GET a; MULTI; SET a 1; EXEC',
    'MULTI; SET a 1; EXEC',
    'CLIENT REPLY OFF; SET b 1; SET a 1',
  ])('what a client has sent that closes at once is carried out: %s', async (text) => {
    const proxy = await stage.start({ transport })
    const client = await stage.client(proxy)
    client.socket.write(packet(...words(text)), () => client.socket.destroy())
    await waitFor(async () => (await stage.direct.ask('GET', 'a')) === '$1\r\n1\r\n')
  })

  test('what waits for the reply before it is carried out although its client is reset', async () => {
    const proxy = await stage.start({ transport })
    const client = await stage.client(proxy)
    const other = await stage.client(proxy)
    await stage.direct.ask('CLIENT', 'PAUSE', '100000', 'WRITE')
    client.write(packet(['SET', 'b', '1'], ['SELECT', '1'], ['SET', 'a', '1']))
    await waitFor(async () => (await stage.direct.ask('INFO', 'clients')).includes('blocked_clients:1'))
    client.socket.resetAndDestroy()
    await client.closed
    await other.ask('FIREBREAK', 'HELP')
    await stage.direct.ask('CLIENT', 'UNPAUSE')
    await waitFor(async () => /db1:keys=1/.test(await stage.direct.ask('INFO', 'keyspace')))
    await waitFor(async () => (await other.ask('FIREBREAK', 'INFO')).includes('firebreak_clients:1\r\n'))
  })

  test('a client that has ended its side and reads nothing is closed', async () => {
    await stage.direct.ask('SETRANGE', 'huge', '32000000', 'x')
    const proxy = await stage.start({ transport, slowReaderMs: 50 })
    const slow = connect(proxy.port)
    stage.onClear(() => slow.destroy())
    slow.on('error', () => {})
    slow.pause()
    slow.end(packet(['GET', 'huge']))
    const other = await stage.client(proxy)
    await waitFor(async () => (await other.ask('FIREBREAK', 'INFO')).includes('firebreak_slow_readers_closed:1\r\n'))
    await waitFor(async () => (await other.ask('FIREBREAK', 'INFO')).includes('firebreak_clients:1\r\n'))
  })
})

test('a command that waits is given up on the node of a cluster that it was sent on to, too', async () => {
  const ports: number[] = []
  const ended: number[] = []
  const nodes = await Promise.all(
    [0, 1].map((index) =>
      stage.fake((words, socket) => {
        if (words[0] === 'CLUSTER') return slotsOf(ports)
        if (words[0] !== 'BLPOP') return '+OK\r\n'
        socket.allowHalfOpen = true
        socket.once('end', () => {
          ended.push(index)
          if (index === 0) socket.write(`-MOVED ${keySlot('a')} 127.0.0.1:${nodes[1]!.port}\r\n`)
          else socket.end()
        })
        return undefined
      }),
    ),
  )
  // The proxy takes the first for the node of all keys.
  ports.push(nodes[0]!.port)
  const proxy = await stage.start({ upstream: `127.0.0.1:${ports[0]}`, mode: 'cluster' })
  expect(await answersOf(connect(proxy.port), packet(['BLPOP', 'a', '0']))).toBe('')
  expect(ended).toEqual([0, 1])
})
