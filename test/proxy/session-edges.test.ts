import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ClusterStage } from './cluster-stage.ts'
import { ProxyStage } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

// What the edges of a session look like, by the side of a bare connection to Redis.

let stage: ProxyStage
let cluster: ClusterStage
beforeAll(async () => {
  ;[stage, cluster] = await Promise.all([ProxyStage.open(), ClusterStage.open([], { maxOutputBytes: 4 << 20 })])
})
afterAll(async () => {
  await Promise.all([stage.close(), cluster.close()])
})
afterEach(async () => {
  await stage.clear()
  await cluster.clear()
})

/** The answers to requests sent in one piece, `CLOSED` for what comes no more. */
async function answers(port: number, lines: string): Promise<string[]> {
  const redis = await RawClient.connect(port)
  const requests = lines.split('|').map((line) => line.split(' '))
  for (const words of requests) redis.send(...words)
  const replies: string[] = []
  const hasQuit = lines.includes('QUIT')
  while (replies.at(-1) !== 'CLOSED' && (replies.length < requests.length || hasQuit)) {
    replies.push((await redis.next()).replace(/(id\r\n):\d+/, '$1:ID'))
  }
  await redis.close()
  return replies
}

describe('QUIT closes with its reply', () => {
  test.each([
    'SUBSCRIBE c|QUIT|PING',
    'SUBSCRIBE c d|PING|QUIT|PING',
    'PSUBSCRIBE c*|QUIT|PING',
    'SSUBSCRIBE c|QUIT|PING',
    'HELLO 3|SUBSCRIBE c|QUIT|PING',
    'MULTI|QUIT|PING',
    'MULTI|SUBSCRIBE c|EXEC|QUIT|PING',
    'CLIENT REPLY ON|QUIT|PING',
  ])('%s', async (lines) => {
    const proxy = await stage.start()
    const expected = await answers(stage.server.port, lines)
    expect(expected.at(-1)).toBe('CLOSED')
    expect(await answers(proxy.port, lines)).toEqual(expected)
  })
})

describe('HELLO with a name before the credentials', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis({ args: ['--requirepass', 'pw'] })
  })
  afterAll(() => server.stop())

  test.each([
    'HELLO 3 SETNAME n AUTH default pw|CLIENT GETNAME|SET a 1|ACL WHOAMI',
    'HELLO 2 SETNAME n SETNAME m AUTH default pw|CLIENT GETNAME|GET a',
    'HELLO 3 SETNAME n AUTH default no|GET a|HELLO 2 AUTH default pw|CLIENT GETNAME|GET a',
    'HELLO 3 SETNAME n|AUTH pw|CLIENT GETNAME|GET a',
    'HELLO 3|GET a|HELLO 3 AUTH default pw SETNAME n|CLIENT GETNAME',
  ])('%s', async (lines) => {
    const proxy = await stage.start({ upstream: server.url })
    expect(await answers(proxy.port, lines)).toEqual(await answers(server.port, lines))
  })
})

describe.each(['net', 'raw'] as const)('a user that is removed, over %s', (transport) => {
  test('is closed at once, who has the user and who waits, and nobody else', async () => {
    const { cli } = stage.server
    await cli('ACL', 'SETUSER', 'gone', 'on', '>pass', '~*', '&*', '+@all')
    const proxy = await stage.start({ transport })
    const [idle, waiting, other] = await Promise.all([0, 1, 2].map(() => stage.client(proxy)))
    for (const redis of [idle!, waiting!]) {
      expect(await redis.ask('AUTH', 'gone', 'pass')).toBe('+OK\r\n')
      await redis.ask('GET', 'a')
    }
    waiting!.send('BLPOP', 'nothing', '0')
    await waitFor(async () => (await cli('INFO', 'clients')).includes('blocked_clients:1'))
    await cli('ACL', 'DELUSER', 'gone')
    await Promise.all([idle!.closed, waiting!.closed])
    expect(await other!.ask('PING')).toBe('+PONG\r\n')
  })

  test('is closed with its next request where it shared no connection', async () => {
    const { cli } = stage.server
    await cli('ACL', 'SETUSER', 'gone', 'on', '>pass', '~*', '&*', '+@all')
    const proxy = await stage.start({ transport, idleConnectionMs: 1 })
    const redis = await stage.client(proxy)
    expect(await redis.ask('AUTH', 'gone', 'pass')).toBe('+OK\r\n')
    await waitFor(async () => !(await cli('CLIENT', 'LIST')).includes('user=gone'))
    await cli('ACL', 'DELUSER', 'gone')
    expect(await redis.ask('GET', 'a')).toMatch(/^-WRONGPASS/)
    await redis.closed
  })

  test('a user who is only cut off goes on', async () => {
    const { cli } = stage.server
    await cli('ACL', 'SETUSER', 'stays', 'on', '>pass', '~*', '&*', '+@all')
    const redis = await stage.client(await stage.start({ transport }))
    expect(await redis.ask('AUTH', 'stays', 'pass')).toBe('+OK\r\n')
    await redis.ask('GET', 'a')
    await cli('CLIENT', 'KILL', 'USER', 'stays')
    expect(await redis.ask('ACL', 'WHOAMI')).toMatch(/stays|lost/)
    expect(await redis.ask('ACL', 'WHOAMI')).toContain('stays')
  })
})

describe('through a cluster', () => {
  // The key b is on another node than a and foo, which are of two slots.
  test.each([
    'MULTI|NOSUCH x|SET a 1|SET foo 1|SET b 1|EXEC|GET a|GET foo|PING',
    'MULTI|CLIENT NOSUCH|SET foo 1|SET a 1|SET b 1|DISCARD|GET a|PING',
    'MULTI|GET|SET a 1|SET foo 1|SET b 1|EXEC|MULTI|PING|EXEC',
    'MULTI|SET a 1|GET|SET foo 1|SET b 1|EXEC|GET a',
  ])('a transaction with a command that Redis refuses is discarded whole: %s', async (lines) => {
    expect(await answers(cluster.proxy.port, lines)).toEqual(await answers(stage.server.port, lines))
  })

  test('after such a transaction the keys of another one must be on one node again', async () => {
    const replies = await answers(cluster.proxy.port, 'MULTI|NOSUCH|DISCARD|MULTI|SET a 1|SET foo 1|SET b 1|EXEC')
    expect(replies.filter((reply) => reply.startsWith('-CROSSSLOT'))).not.toEqual([])
    expect(replies.at(-1)).toMatch(/^-(EXECABORT|CROSSSLOT)/)
  })

  test('a nested MULTI spoils nothing: what cannot be carried out is not said to be queued', async () => {
    const replies = await answers(cluster.proxy.port, 'MULTI|SET a 1|MULTI|SET foo 1|SET b 1|DISCARD')
    expect(replies.filter((reply) => reply.startsWith('-CROSSSLOT'))).not.toEqual([])
  })

  test('a client that waits and has sent much behind is seen to go', async () => {
    const redis = await cluster.connect()
    const blocked = async () => {
      const infos = await Promise.all(cluster.cluster.nodes.map(({ cli }) => cli('INFO', 'clients')))
      return infos.some((info) => info.includes('blocked_clients:1'))
    }
    redis.send('BLPOP', 'nothing', '0')
    await waitFor(blocked)
    for (let count = 0; count < 2000; count++) redis.send('SET', 'q', 'x'.repeat(1000))
    await waitFor(() => redis.socket.writableLength === 0)
    await redis.close()
    await waitFor(async () => !(await blocked()))
  })

  test('SCAN with a huge COUNT finds all, in one call where that fits and in some where it does not', async () => {
    const redis = await cluster.connect()
    const names = Array.from({ length: 30_000 }, (_, index) => `scan:${index}`)
    for (let at = 0; at < names.length; at += 1000) {
      await redis.ask('MSET', ...names.slice(at, at + 1000).flatMap((name) => [name, '']))
    }
    const walk = async (client: RawClient, count: string) => {
      const found = new Set<string>()
      let calls = 0
      for (let cursor = '0'; calls === 0 || cursor !== '0'; calls++) {
        const reply = await client.ask('SCAN', cursor, 'MATCH', 'scan:*', 'COUNT', count)
        cursor = /^\*2\r\n\$\d+\r\n(\d+)/.exec(reply)![1]!
        for (const [name] of reply.matchAll(/scan:\d+/g)) found.add(name)
        largest = Math.max(largest, reply.length)
      }
      return { found: found.size, calls }
    }
    let largest = 0
    for (const count of ['1000000', '1000000000000000000', '9223372036854775807'])
      expect(await walk(redis, count)).toEqual({ found: names.length, calls: 1 })
    largest = 0
    const upstream = cluster.cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    const small = await stage.client(await stage.start({ upstream, maxOutputBytes: 65_536 }))
    const { found, calls } = await walk(small, '9223372036854775807')
    expect([found, calls > 1, largest < 500_000]).toEqual([names.length, true, true])
    expect(await redis.ask('SCAN', '0', 'COUNT', '9223372036854775808')).toBe(
      await stage.direct.ask('SCAN', '0', 'COUNT', '9223372036854775808'),
    )
  })
})
