import { startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeRedis } from './fake-redis.ts'
import { RawClient } from './raw-client.ts'

// Commands that are refused and have changed the connection nevertheless, or are refused and have not: who a client is,
// what it is called, and whether its transaction is open are as with Redis itself, and nobody's but its own.

interface Place {
  readonly server: RedisServer
  readonly proxied: number
  close(): Promise<unknown>
}

async function place(...rights: string[][]): Promise<Place> {
  const server = await startRedis()
  const proxy = await startProxy({ upstream: server.url, port: 0, drainMs: 1 })
  for (const words of rights) await server.cli('ACL', 'SETUSER', ...words)
  return { server, proxied: proxy.port, close: () => proxy.close().then(() => server.stop()) }
}

let open: Place
let locked: Place

beforeAll(async () => {
  const user = ['u', 'on', '>p', '~*', '&*', '+@all']
  const mute = ['mute', 'on', '>p', '~*', '&*', '+@all', '-client', '-discard']
  ;[open, locked] = await Promise.all([place(user, mute), place(user, mute, ['default', 'resetpass', '>sesame'])])
})

afterAll(() => Promise.all([open?.close(), locked?.close()]))

/** Lines of `A: …` and `B: …`, each answered before the next is sent; gives who got what. */
async function talk(port: number, dialogue: string): Promise<string[]> {
  const clients = new Map<string, RawClient>()
  const heard: string[] = []
  for (const line of dialogue.split('; ')) {
    const [who, what] = line.split(': ') as [string, string]
    if (!clients.has(who)) clients.set(who, await RawClient.connect(port))
    const reply = await clients.get(who)!.type(what)
    heard.push(`${line} -> ${reply.replace(/(\$2\r\nid\r\n):\d+/, '$1:ID')}`)
  }
  for (const client of clients.values()) await client.close()
  return heard
}

/** The same requests of one client in one packet. */
async function pipeline(port: number, dialogue: string): Promise<string[]> {
  const client = await RawClient.connect(port)
  const lines = dialogue.split('; ').map((line) => line.replace(/^A: /, ''))
  client.write(lines.map((line) => `${line}\r\n`).join(''))
  const heard: string[] = []
  for (const line of lines) heard.push(`${line} -> ${(await client.next()).replace(/(\$2\r\nid\r\n):\d+/, '$1:ID')}`)
  await client.close()
  return heard
}

async function isAlike({ server, proxied }: Place, dialogue: string): Promise<void> {
  expect(await talk(proxied, dialogue)).toEqual(await talk(server.port, dialogue))
  if (!dialogue.includes('B: ')) {
    expect(await pipeline(proxied, dialogue)).toEqual(await pipeline(server.port, dialogue))
  }
}

describe('a connection that was another user’s is nobody else’s', () => {
  test.each([
    'A: WATCH q; A: HELLO 3 AUTH u p FOO; A: UNWATCH; B: WATCH z; B: ACL WHOAMI',
    'A: WATCH q; A: HELLO 2 AUTH u p SETNAME "a b"; A: UNWATCH; B: MULTI; B: ACL WHOAMI; B: EXEC',
    'A: WATCH q; A: HELLO 2 AUTH u p AUTH u bad; A: UNWATCH; B: MULTI; B: ACL WHOAMI; B: EXEC',
    'A: MULTI; A: HELLO 2 AUTH u p FOO; A: EXEC; B: MULTI; B: ACL WHOAMI; B: EXEC',
    'A: MULTI; A: HELLO 2 AUTH u p; A: DISCARD; B: MULTI; B: ACL WHOAMI; B: EXEC',
    'A: WATCH q; A: HELLO 2 SETNAME nm FOO; A: UNWATCH; B: MULTI; B: CLIENT GETNAME; B: EXEC',
    'A: SUBSCRIBE c; A: HELLO 2 AUTH u p FOO; A: UNSUBSCRIBE; B: MULTI; B: ACL WHOAMI; B: EXEC',
  ])('%s', (dialogue) => isAlike(open, dialogue))

  test.each([
    'A: AUTH u p; A: WATCH x; A: HELLO 2 AUTH default sesame FOO; A: UNWATCH; B: AUTH u p; B: WATCH x; B: ACL WHOAMI',
    'A: AUTH u p; A: WATCH x; A: HELLO 2 AUTH default sesame FOO; A: UNWATCH; B: PING; B: WATCH x; B: ACL WHOAMI',
  ])('behind a password: %s', (dialogue) => isAlike(locked, dialogue))
})

describe('what Redis has carried out of a HELLO before it refuses the rest stays in force', () => {
  const whoAndName = 'A: ACL WHOAMI; A: CLIENT GETNAME; A: SET k v; A: GET k; A: MULTI; A: ACL WHOAMI; A: EXEC'
  test.each([
    'A: HELLO 3 AUTH u p SETNAME "a b"',
    'A: HELLO 3 AUTH u p FOO',
    'A: HELLO 3 AUTH u p AUTH u bad',
    'A: HELLO 3 AUTH u p SETNAME',
    'A: HELLO 2 AUTH u p AUTH default any',
    'A: HELLO 3 SETNAME nm FOO',
    'A: HELLO 3 SETNAME nm AUTH u bad',
    'A: HELLO 3 SETNAME nm AUTH u p',
    'A: HELLO 3 SETNAME nm SETNAME other',
    'A: HELLO 9 AUTH u p',
    'A: HELLO x SETNAME nm',
    'A: HELLO 3 AUTH u',
    'A: SELECT 2; A: HELLO 3; A: HELLO 2 AUTH u p FOO; A: SELECT 0',
    'A: HELLO 3 AUTH u p FOO; A: HELLO 3 AUTH default any; A: HELLO 2 SETNAME x',
    'A: HELLO 3 AUTH u p FOO; A: RESET',
    'A: WATCH q; A: HELLO 3 AUTH u p FOO; A: UNWATCH',
  ])('%s', (dialogue) => isAlike(open, `${dialogue}; ${whoAndName}`))

  test.each([
    'A: HELLO 3 AUTH u p FOO',
    'A: HELLO 3 AUTH u p SETNAME "a b"',
    'A: HELLO 3 AUTH default bad FOO; A: AUTH sesame',
    'A: HELLO 3; A: HELLO 3 SETNAME nm AUTH u p',
    'A: HELLO 3 SETNAME nm FOO; A: AUTH u p',
  ])('behind a password: %s', (dialogue) => isAlike(locked, `${dialogue}; ${whoAndName}`))
})

describe('a transaction that was not opened, or not ended, is none, or still one', () => {
  test.each([
    'A: WATCH k; A: MULTI x; A: CLIENT SETNAME leaked; A: UNWATCH; B: MULTI; B: CLIENT GETNAME; B: EXEC',
    'A: WATCH k; A: MULTI x; A: CLIENT SETNAME n; A: CLIENT GETNAME; A: UNWATCH; A: CLIENT GETNAME',
    'A: WATCH k; A: MULTI x; A: CLIENT ID x; A: GET k; A: EXEC; A: UNWATCH; A: DISCARD',
    'A: MULTI; A: DISCARD x; A: CLIENT SETNAME n; A: CLIENT GETNAME; A: EXEC; A: CLIENT GETNAME',
    'A: MULTI; A: SET k 1; A: DISCARD x; A: CLIENT SETNAME n; A: DISCARD; A: GET k; A: CLIENT GETNAME',
    'A: MULTI; A: EXEC x; A: CLIENT SETNAME n; A: CLIENT GETNAME; A: EXEC',
    'A: MULTI; A: MULTI; A: CLIENT SETNAME n; A: EXEC; A: CLIENT GETNAME',
    'A: MULTI; A: EXEC; A: MULTI; A: EXEC x; A: MULTI; A: DISCARD x; A: CLIENT SETNAME n; A: EXEC; A: CLIENT GETNAME',
    'A: AUTH mute p; A: MULTI; A: DISCARD; A: SET k 1; A: PING; A: EXEC; A: GET k',
  ])('%s', (dialogue) => isAlike(open, dialogue))
})

describe('a client’s name is the server’s matter', () => {
  const dialogues = [
    'A: CLIENT SETNAME a; A: CLIENT GETNAME; A: AUTH u p; A: CLIENT GETNAME; A: CLIENT SETNAME b; A: CLIENT GETNAME',
    'A: AUTH mute p; A: CLIENT SETNAME a; A: CLIENT GETNAME; A: CLIENT SETNAME "a b"; A: AUTH u p; A: CLIENT GETNAME',
    'A: AUTH u p; A: CLIENT SETNAME a; A: AUTH mute p; A: CLIENT GETNAME; A: CLIENT SETNAME b',
    'A: AUTH u p; A: CLIENT SETNAME a; A: CLIENT SETNAME ""; A: CLIENT GETNAME; A: CLIENT SETNAME "a b"; A: CLIENT SETNAME',
    'A: AUTH u p; A: CLIENT SETNAME a; A: HELLO 3; A: CLIENT GETNAME; A: CLIENT SETNAME ""; A: CLIENT GETNAME x; A: CLIENT GETNAME',
  ]
  test.each(dialogues)('%s', (dialogue) => isAlike(open, dialogue))
  test.each(dialogues)('behind a password: %s', (dialogue) => isAlike(locked, dialogue))
})

describe('the server knows a client’s name on a connection of its own, and forgets it with that', () => {
  test.each([
    'A: CLIENT SETNAME foo; A: MULTI; A: CLIENT GETNAME; A: EXEC; B: MULTI; B: CLIENT GETNAME; B: EXEC',
    'A: CLIENT SETNAME foo; A: MULTI; A: SELECT 1; A: EXEC; A: CLIENT GETNAME',
    'A: CLIENT SETNAME foo; A: WATCH k; A: CLIENT GETNAME; A: CLIENT SETNAME bar; A: UNWATCH; A: CLIENT GETNAME; B: MULTI; B: CLIENT GETNAME; B: EXEC',
    'A: CLIENT SETNAME foo; A: HELLO 3 FOO; A: CLIENT GETNAME',
    'A: CLIENT SETNAME foo; A: SUBSCRIBE c; A: CLIENT GETNAME; A: UNSUBSCRIBE; A: CLIENT GETNAME',
    'A: HELLO 3 SETNAME foo; A: SUBSCRIBE c; A: CLIENT GETNAME; A: CLIENT SETNAME bar; A: UNSUBSCRIBE; A: CLIENT GETNAME',
    'A: CLIENT SETNAME foo; A: BLPOP k 0.01; B: BLPOP k 0.01; B: MULTI; B: CLIENT GETNAME; B: EXEC',
    'A: CLIENT SETNAME foo; A: CLIENT NO-EVICT off; A: CLIENT SETNAME bar; A: CLIENT GETNAME; A: RESET; A: CLIENT GETNAME',
    'A: CLIENT SETNAME foo; A: CLIENT REPLY ON; A: CLIENT GETNAME',
  ])('%s', (dialogue) => isAlike(open, dialogue))

  test('and CLIENT LIST shows it of one that waits or is subscribed', async () => {
    const { server, proxied } = open
    const [waiting, subscribed] = await Promise.all([1, 2].map(() => RawClient.connect(proxied)))
    await waiting!.ask('CLIENT', 'SETNAME', 'waiting')
    await subscribed!.ask('CLIENT', 'SETNAME', 'subscribed')
    waiting!.send('BLPOP', 'never', '0')
    await subscribed!.ask('SUBSCRIBE', 'c')
    await waitFor(async () => /name=waiting .*cmd=blpop/.test(await server.cli('CLIENT', 'LIST')))
    expect(await server.cli('CLIENT', 'LIST')).toMatch(/name=subscribed .*cmd=subscribe/)
    for (const client of [waiting, subscribed]) await client!.close()
  })

  test('and named clients one after another use the same connection', async () => {
    const { server, proxied } = open
    const connections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await server.cli('INFO', 'stats'))![1])
    const client = await RawClient.connect(proxied)
    await client.ask('CLIENT', 'SETNAME', 'foo')
    const before = await connections()
    for (let round = 0; round < 50; round++) {
      await client.ask('MULTI')
      await client.ask('EXEC')
      await client.ask('PING')
    }
    expect((await connections()) - before).toBeLessThan(10)
    await client.close()
  })
})

test('of users of the proxy’s own no password goes to Redis, whatever HELLO is refused for', async () => {
  const fake = await FakeRedis.start(([name, version]) =>
    name === 'HELLO' && version === '9' ? '-NOPROTO unsupported protocol version\r\n' : '+OK\r\n',
  )
  const proxy = await startProxy({
    upstream: `redis://127.0.0.1:${fake.port}`,
    port: 0,
    users: [{ name: 'app', password: 'secret' }],
  })
  const client = await RawClient.connect(proxy.port)
  const noName = '-ERR Client names cannot contain spaces, newlines or special characters.\r\n'
  expect(await client.ask('CLIENT', 'SETNAME', 'early')).toMatch(/^-NOAUTH/)
  expect(await client.ask('CLIENT', 'GETNAME')).toMatch(/^-NOAUTH/)
  expect(await client.ask('HELLO', '9', 'AUTH', 'app', 'secret')).toMatch(/^-NOPROTO/)
  expect(await client.ask('HELLO', '3', 'FOO')).toBe("-ERR Syntax error in HELLO option 'FOO'\r\n")
  expect(await client.ask('HELLO', '3', 'SETNAME', 'nm', 'AUTH', 'app', 'wrong')).toMatch(/^-WRONGPASS/)
  expect(await client.ask('GET', 'k')).toMatch(/^-NOAUTH/)
  expect(await client.ask('HELLO', '3', 'AUTH', 'app', 'secret', 'SETNAME', 'a b')).toBe(noName)
  expect(await client.ask('GET', 'k')).toBe('+OK\r\n')
  expect(await client.ask('CLIENT', 'GETNAME')).toBe('+OK\r\n')
  expect(fake.requests).toContainEqual(['CLIENT', 'SETNAME', 'nm'])
  await client.close()
  await proxy.close()
  await fake.close()
  expect(fake.requests.filter((words) => words.includes('secret'))).toEqual([])
})
