import { type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

// In a pipe replies are not matched to requests. Who a client is to Redis is the proxy's matter there too.

let server: RedisServer
const closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  server = await startRedis()
  await server.cli('ACL', 'SETUSER', 'limited', 'on', '>pass', '~*', '&*', '+@all', '-flushall')
})

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

afterAll(() => server.stop())

async function connect(options: Partial<ProxyOptions>): Promise<RawClient> {
  const proxy = await startProxy({ upstream: server.url, port: 0, drainMs: 1, ...options })
  closers.push(() => proxy.close())
  const client = await RawClient.connect(proxy.port)
  closers.push(() => client.close())
  return client
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const ways = ['in one packet', 'one after another', 'byte by byte'] as const

async function heard(client: RawClient, lines: readonly string[], way: (typeof ways)[number]): Promise<string[]> {
  const silent = (line: string) => /REPLY (OFF|SKIP)$/.test(line) || line.startsWith('!')
  const replies: string[] = []
  const text = (line: string) => `${line.replace('!', '')}\r\n`
  if (way === 'in one packet') client.write(lines.map(text).join(''))
  for (const line of lines) {
    if (way === 'one after another') client.write(text(line))
    else if (way === 'byte by byte') {
      for (const byte of text(line)) {
        client.write(byte)
        await turn()
      }
    }
    if (!silent(line)) replies.push(await client.next())
  }
  return replies
}

const pipes: [string, string[], string[]][] = [
  ['CLIENT REPLY ON', ['CLIENT REPLY ON'], ['+OK\r\n']],
  ['CLIENT REPLY OFF', ['CLIENT REPLY OFF', '!PING'], []],
  ['MONITOR', ['MONITOR'], ['+OK\r\n']],
  ['an open transaction', ['CLIENT REPLY ON', 'MULTI', 'GET k'], ['+OK\r\n', '+OK\r\n', '+QUEUED\r\n']],
]
const user = '$7\r\nlimited\r\n'

describe.each(ways)('sent %s', (way) => {
  describe.each(pipes)('RESET behind %s', (name, lines, before) => {
    const isMonitor = name === 'MONITOR'
    test.each(['net', 'raw'] as const)('leaves a client who the upstream’s address says (%s)', async (transport) => {
      const client = await connect({ upstream: `redis://limited:pass@127.0.0.1:${server.port}/3`, transport })
      const after = ['PING', 'ACL WHOAMI', 'FLUSHALL', 'SET k 3', 'MULTI', 'ACL WHOAMI', 'EXEC']
      const replies = await heard(client, [...lines, isMonitor ? '!RESET' : 'RESET'], way)
      expect(replies).toEqual(isMonitor ? before : [...before, '+RESET\r\n'])
      if (isMonitor) while ((await client.next()) !== '+RESET\r\n');
      // Newer servers name the user.
      const noRight = expect.stringMatching(/^-NOPERM .* has no permissions to run the 'flushall' command\r\n$/)
      expect(await heard(client, after, way)).toEqual(
        ['+PONG\r\n', user, noRight, '+OK\r\n', '+OK\r\n', '+QUEUED\r\n'].concat(`*1\r\n${user}`),
      )
      expect(await server.cli('-n', '3', 'GET', 'k')).toBe('3')
    })
  })

  test('what comes behind RESET in a pipe is carried out as the client that it leaves', async () => {
    const client = await connect({ upstream: `redis://limited:pass@127.0.0.1:${server.port}/3` })
    const lines = [
      'CLIENT REPLY ON',
      'ECHO a',
      'RESET',
      'ACL WHOAMI',
      'CLIENT REPLY SKIP',
      '!RESET',
      'ACL WHOAMI',
      'PING',
    ]
    expect(await heard(client, lines, way)).toEqual(['+OK\r\n', '$1\r\na\r\n', '+RESET\r\n', user, user, '+PONG\r\n'])
  })

  test('a subscription out of a transaction ends with RESET, and the client is who it was', async () => {
    const client = await connect({ upstream: `redis://limited:pass@127.0.0.1:${server.port}` })
    const replies = await heard(client, ['MULTI', 'SUBSCRIBE c', '!EXEC', '!RESET', '!ACL WHOAMI'], way)
    while (replies.at(-1) !== user && replies.at(-1) !== 'CLOSED') replies.push(await client.next())
    expect(replies.slice(-2)).toEqual(['+RESET\r\n', user])
  })

  test('users of the proxy’s own: RESET asks for a password again, and no password goes to Redis', async () => {
    const users = [{ name: 'app', password: 'pw', upstreamUsername: 'limited', upstreamPassword: 'pass' }]
    const client = await connect({ users })
    const refused = "-ERR wrong number of arguments for 'auth' command\r\n"
    const lines = [
      ...['AUTH app pw', 'CLIENT REPLY ON', 'AUTH default any', 'HELLO 3 AUTH default any', 'ACL WHOAMI', 'RESET'],
      ...['ACL WHOAMI', 'AUTH default any', 'AUTH app pw', 'ACL WHOAMI'],
    ]
    const replies = await heard(client, lines, way)
    expect(replies.slice(0, 6)).toEqual(['+OK\r\n', '+OK\r\n', refused, refused, user, '+RESET\r\n'])
    expect(replies[6]).toMatch(/^-NOAUTH/)
    expect(replies[7]).toMatch(/^-WRONGPASS/)
    expect(replies.slice(8)).toEqual(['+OK\r\n', user])
  })
})

test('large requests and broken ones pass a pipe that is read along', async () => {
  const client = await connect({ upstream: `redis://limited:pass@127.0.0.1:${server.port}` })
  const value = 'RESET\r\n'.repeat(300_000)
  expect(await client.type('CLIENT REPLY ON')).toBe('+OK\r\n')
  for (let round = 0; round < 3; round++) expect(await client.ask('SET', 'large', value)).toBe('+OK\r\n')
  expect(await client.ask('STRLEN', 'large')).toBe(`:${value.length}\r\n`)
  expect(await client.ask(value, 'large')).toMatch(/^-ERR unknown command/)
  expect(await client.ask('ECHO', 'RESET')).toBe('$5\r\nRESET\r\n')
  client.write('*1\r\n?\r\n*1\r\n$5\r\nRESET\r\n')
  expect(await client.next()).toMatch(/^-ERR Protocol error/)
  expect(await client.next()).toBe('CLOSED')
})

test('a client that is in the middle of a large request when its connection becomes a pipe is closed', async () => {
  const client = await connect({ upstream: `redis://limited:pass@127.0.0.1:${server.port}` })
  client.write(`MULTI\r\nSUBSCRIBE c\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n${'x'.repeat(1000)}`)
  expect(await client.next()).toBe('+OK\r\n')
  expect(await client.next()).toBe('+QUEUED\r\n')
  client.write(`${'x'.repeat(1_999_000)}\r\nDISCARD\r\nRESET\r\nFLUSHALL\r\n`)
  const replies: string[] = []
  while (replies.at(-1) !== 'CLOSED') replies.push(await client.next())
  expect(replies.join('')).not.toContain('RESET')
})
