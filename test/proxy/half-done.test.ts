import { startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
