import type { RateLimitStrategy } from '@firebreak/core'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import {
  answersRefusedAuth,
  isFullRun,
  type RedisServer,
  redisKind,
  scale,
  startRedis,
  TestHub,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

// Nobody gets what another may read, whatever it sends behind what, whatever breaks meanwhile.

let server: RedisServer
let hub: TestHub
let direct: RawClient
const closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  server = await startRedis()
  direct = await RawClient.connect(server.port)
})

afterAll(async () => {
  await direct.close()
  await server.stop()
})

beforeEach(async () => {
  await direct.ask('FLUSHALL')
  hub = await TestHub.start()
  closers.push(() => hub.kill())
})

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  const proxy = await startProxy({ upstream: server.url, port: 0, shield, ...options })
  closers.push(() => proxy.close())
  await waitFor(() => hub.hellos.length >= (options.workers ?? 1))
  return proxy
}

async function connect(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port)
  closers.push(() => client.close())
  return client
}

const fiveThenStale: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 5,
  windowMs: 600_000,
  onLimit: 'stale',
  scope: 'process',
}

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`

test.each(['AUTH nobody no', 'HELLO 3 AUTH nobody no'])(
  '%s is answered in a pipeline, also where the server leaves it out',
  async (line) => {
    const proxy = await start()
    const isAnswered: boolean[] = []
    for (const port of [server.port, proxy.port]) {
      const client = await connect(port)
      client.write(`PING\r\n${line}\r\nECHO end\r\n`)
      expect(await client.next()).toBe('+PONG\r\n')
      const reply = await client.next()
      isAnswered.push(reply.startsWith('-WRONGPASS'))
      expect(reply.startsWith('-WRONGPASS') ? await client.next() : reply).toBe(bulk('end'))
    }
    expect(isAnswered).toEqual([answersRefusedAuth(redisKind()), true])
  },
)

test('what is sent behind AUTH and HELLO is carried out as the user, database and protocol that they leave', async () => {
  await direct.ask('ACL', 'SETUSER', 'limited', 'on', '>pass', '~open*', '+@all')
  const proxy = await start()
  const lines = [
    ...['SET secret 1', 'SELECT 5', 'AUTH limited pass', 'SET open 1', 'GET open', 'ACL WHOAMI', 'GET secret'],
    ...['AUTH limited wrong', 'ACL WHOAMI', 'GET secret', 'GET open', 'HELLO 3 AUTH limited wrong', 'HGETALL open:h'],
    ...['HELLO 9', 'GET secret', 'ACL WHOAMI', 'GET open', 'HELLO 3 AUTH default wrong SETNAME x', 'CLIENT GETNAME'],
    ...['MULTI', 'AUTH limited wrong', 'GET open', 'EXEC', 'AUTH nobody no', 'DBSIZE', 'SELECT 0', 'DBSIZE', 'RESET'],
    ...[
      'ACL WHOAMI',
      'GET secret',
      'AUTH',
      'AUTH a b c',
      'AUTH limited pass',
      'SELECT 5',
      'GET open',
      'CLIENT GETNAME',
    ],
  ].filter((line) => answersRefusedAuth(redisKind()) || !/ (wrong|no)\b/.test(line))
  const expected: string[] = []
  for (const port of [server.port, proxy.port]) {
    await direct.ask('FLUSHALL')
    const client = await connect(port)
    client.write(lines.map((line) => `${line}\r\n`).join(''))
    for (const [index, line] of lines.entries()) {
      const reply = (await client.next()).replace(/id\r\n:\d+/, 'id')
      if (port === server.port) expected.push(reply)
      else expect(reply, `${index} ${line}`).toBe(expected[index])
    }
  }
})

test('a limit that gives the last reply gives nobody what another user has read', async () => {
  await direct.ask('ACL', 'SETUSER', 'stranger', 'on', '>pass', '~other', '+@all')
  await direct.ask('SET', 'hot', 'secret')
  const proxy = await start()
  hub.heat('main', ['hot'], { strategy: fiveThenStale })
  const reader = await connect(proxy.port)
  await waitFor(async () => {
    expect(await reader.ask('GET', 'hot')).toBe(bulk('secret'))
    return /limited_stale:[1-9]/.test(await reader.ask('INFO', 'firebreak'))
  })
  const stranger = await connect(proxy.port)
  expect(await stranger.ask('AUTH', 'stranger', 'pass')).toBe('+OK\r\n')
  for (let count = 0; count < 20; count++) expect(await stranger.ask('GET', 'hot')).toMatch(/^-(LIMITED|NOPERM)/)
  expect(await reader.ask('GET', 'hot')).toBe(bulk('secret'))
})

test('a right that is taken away ends for keys in memory: at once through the proxy, else within seconds', async () => {
  await direct.ask('ACL', 'SETUSER', 'guest', 'on', '>pass', '~hot', '+@all')
  await direct.ask('SET', 'hot', 'secret')
  const proxy = await start()
  hub.heat('main', ['hot'])
  const admin = await connect(proxy.port)
  const guest = await connect(proxy.port)
  expect(await guest.ask('AUTH', 'guest', 'pass')).toBe('+OK\r\n')
  const peeked = () =>
    waitFor(async () => (await guest.ask('GET', 'hot')) && (await guest.ask('FIREBREAK', 'PEEK', 'hot')) !== '*0\r\n')
  for (let round = 0; round < scale(20, 200); round++) {
    await peeked()
    expect(await admin.ask('ACL', 'SETUSER', 'guest', 'resetkeys')).toBe('+OK\r\n')
    expect(await guest.ask('GET', 'hot')).toMatch(/^-NOPERM/)
    expect(await admin.ask('ACL', 'SETUSER', 'guest', '~hot')).toBe('+OK\r\n')
  }
  await peeked()
  await direct.ask('ACL', 'SETUSER', 'guest', 'resetkeys')
  await waitFor(async () => (await guest.ask('GET', 'hot')).startsWith('-NOPERM'), { timeoutMs: 30_000 })
})

test('a right that is taken away ends what a limit gives again', async () => {
  await direct.ask('ACL', 'SETUSER', 'guest', 'on', '>pass', '~hot', '+@all')
  await direct.ask('SET', 'hot', 'secret')
  const proxy = await start()
  hub.heat('main', ['hot'], { strategy: fiveThenStale })
  const admin = await connect(proxy.port)
  const guest = await connect(proxy.port)
  expect(await guest.ask('AUTH', 'guest', 'pass')).toBe('+OK\r\n')
  await waitFor(async () => {
    expect(await guest.ask('GET', 'hot')).toBe(bulk('secret'))
    return /limited_stale:[1-9]/.test(await guest.ask('INFO', 'firebreak'))
  })
  expect(await admin.ask('ACL', 'SETUSER', 'guest', 'resetkeys')).toBe('+OK\r\n')
  for (let count = 0; count < 5; count++) expect(await guest.ask('GET', 'hot')).toMatch(/^-(LIMITED|NOPERM)/)
})

test('a user who may no longer SELECT is given nothing of another database, however many reads it sends at once', async () => {
  await direct.ask('ACL', 'SETUSER', 'guest', 'on', '>pass', '~*', '+@all')
  await direct.ask('MSET', 'a', 'a0', 'b', 'b0')
  const proxy = await start()
  hub.heat('main', ['a', 'b'])
  const [first, second] = [await connect(proxy.port), await connect(proxy.port)]
  for (const client of [first, second]) expect(await client.ask('AUTH', 'guest', 'pass')).toBe('+OK\r\n')
  expect(await second.ask('SELECT', '1')).toBe('+OK\r\n')
  await waitFor(async () => (await first.ask('GET', 'a')) && (await first.ask('FIREBREAK', 'PEEK', 'a')) !== '*0\r\n')
  await direct.ask('ACL', 'SETUSER', 'guest', '-select')
  for (let round = 0; round < 10; round++) {
    for (const key of ['a', 'b', 'a', 'b']) second.send('GET', key)
    for (let index = 0; index < 4; index++) expect(await second.next()).toBe('$-1\r\n')
  }
})

test('threads know of each other’s CLIENT PAUSE and changes of rights', async () => {
  await direct.ask('ACL', 'SETUSER', 'guest', 'on', '>pass', '~hot', '+@all')
  await direct.ask('SET', 'hot', 'secret')
  const proxy = await start({ workers: 2 })
  const threadOf = async (client: RawClient) => /firebreak_thread:(\d+)/.exec(await client.ask('FIREBREAK', 'INFO'))![1]
  const admin = await connect(proxy.port)
  const [guest, other] = await waitFor(async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => connect(proxy.port)))
    const threads = await Promise.all([admin, ...all].map(threadOf))
    const elsewhere = all.filter((_, index) => threads[index + 1] !== threads[0])
    return elsewhere.length > 1 ? elsewhere : undefined
  })
  expect(await guest!.ask('AUTH', 'guest', 'pass')).toBe('+OK\r\n')
  hub.heat('main', ['hot'])
  const startedAt = performance.now()
  for (let round = 0; round < 12; round++) {
    await waitFor(
      async () => (await guest!.ask('GET', 'hot')) && (await guest!.ask('FIREBREAK', 'PEEK', 'hot')) !== '*0\r\n',
    )
    expect(await admin.ask('ACL', 'SETUSER', 'guest', 'resetkeys')).toBe('+OK\r\n')
    await waitFor(async () => (await guest!.ask('GET', 'hot')).startsWith('-NOPERM'), { everyMs: 5 })
    expect(await admin.ask('ACL', 'SETUSER', 'guest', '~hot')).toBe('+OK\r\n')
  }
  // Without a word from the other thread each round takes as long as a reply is kept, five seconds.
  expect(performance.now() - startedAt).toBeLessThan(40_000)

  expect(await admin.ask('CLIENT', 'PAUSE', '600000', 'WRITE')).toBe('+OK\r\n')
  await waitFor(async () => (await other!.ask('INFO', 'firebreak')).includes('firebreak_paused:1'))
  guest!.send('SET', 'hot', 'later')
  expect(await other!.ask('GET', 'cold')).toBe('$-1\r\n')
  expect(await admin.ask('CLIENT', 'UNPAUSE')).toBe('+OK\r\n')
  expect(await guest!.next()).toBe('+OK\r\n')
  await waitFor(async () => (await other!.ask('INFO', 'firebreak')).includes('firebreak_paused:0'))
})

test('users of the proxy’s own are never shown to Redis, on a connection of one’s own neither', async () => {
  await direct.ask('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '+@all')
  const users = [
    { name: 'app', password: 'secret' },
    { name: 'other', password: 'word' },
  ]
  const proxy = await start({ users })
  const client = await connect(proxy.port)
  expect(await client.ask('GET', 'k')).toMatch(/^-NOAUTH/)
  expect(await client.ask('AUTH', 'other', 'word')).toBe('+OK\r\n')
  expect(await client.ask('CLIENT', 'ID')).toMatch(/^:/)
  expect(await client.ask('AUTH', 'app', 'secret')).toMatch(/^-ERR Firebreak: a client cannot change its user/)
  expect(await client.ask('HELLO', '3', 'AUTH', 'app', 'secret')).toMatch(
    /^-ERR Firebreak: a client cannot change its user/,
  )
  expect(await client.ask('ACL', 'WHOAMI')).toBe(bulk('default'))
  expect(await client.ask('RESET')).toBe('+RESET\r\n')
  expect(await client.ask('GET', 'k')).toMatch(/^-NOAUTH/)
  expect(await client.ask('AUTH', 'app', 'secret')).toBe('+OK\r\n')
  expect(await client.ask('ACL', 'WHOAMI')).toBe(bulk('default'))
})

interface Mind {
  user: string
  database: number
}

const users = ['one', 'two', 'three']

/** Requests at random with what each reply may be, given who the client is when its turn comes. */
function randomRequest(random: () => number): {
  readonly args: string[]
  readonly isRight: (reply: string, mind: Mind) => boolean
} {
  const pick = <Item>(list: readonly Item[]) => list[Math.floor(random() * list.length)]!
  const user = pick(users)
  const isOk = (reply: string) => reply.startsWith('+') || reply.startsWith('%') || reply.startsWith('*14')
  const becomes = (args: string[], change: (mind: Mind) => void) => ({
    args,
    isRight: (reply: string, mind: Mind) => {
      if (isOk(reply)) change(mind)
      return true
    },
  })
  const never = (args: string[]) => ({ args, isRight: (reply: string) => !isOk(reply) })
  const dice = random()
  if (dice < 0.08) return becomes(['AUTH', user, 'pass'], (mind) => void (mind.user = user))
  if (dice < 0.12) return never(['AUTH', user, 'wrong'])
  if (dice < 0.16) return becomes(['HELLO', pick(['2', '3']), 'AUTH', user, 'pass'], (mind) => void (mind.user = user))
  if (dice < 0.19) return never(['HELLO', '3', 'AUTH', user, 'wrong'])
  if (dice < 0.22) {
    return becomes(['RESET'], (mind) => {
      mind.user = 'default'
      mind.database = 0
    })
  }
  if (dice < 0.28) {
    const database = pick([0, 1])
    return becomes(['SELECT', String(database)], (mind) => void (mind.database = database))
  }
  if (dice < 0.36) return { args: ['ACL', 'WHOAMI'], isRight: (reply, mind) => reply === bulk(mind.user) }
  const isLength = random() < 0.3
  return {
    args: [isLength ? 'STRLEN' : 'GET', `key:${user}`],
    isRight: (reply, mind) => {
      const mayRead = mind.user === 'default' || mind.user === user
      if (!mayRead) return reply.startsWith('-NOPERM')
      const value = `${user}'s in ${mind.database}`
      // Of one user it may not even be asked how long it is.
      if (isLength) return mind.user === 'three' ? reply.startsWith('-NOPERM') : reply === `:${value.length}\r\n`
      return reply === bulk(value)
    },
  }
}

describe.each([
  ['one thread', {}],
  ['public sockets', { transport: 'net' }],
  ['two threads', { workers: 2 }],
] as const)('%s', (_name, options) => {
  test.each(isFullRun ? [1, 2, 3, 4] : [1])(
    'clients that change who they are while connections are cut (seed %i)',
    async (seed) => {
      for (const user of users) await direct.ask('ACL', 'SETUSER', user, 'on', '>pass', `~key:${user}`, '+@all')
      await direct.ask('ACL', 'SETUSER', 'three', '-strlen')
      for (const database of [0, 1]) {
        await direct.ask('SELECT', String(database))
        for (const user of users) await direct.ask('SET', `key:${user}`, `${user}'s in ${database}`)
      }
      await direct.ask('SELECT', '0')
      const proxy = await start(options)
      hub.heat(
        'main',
        users.map((user) => `key:${user}`),
      )
      const wrong: string[] = []
      let right = 0
      let isOver = false
      const one = async (index: number) => {
        let state = (seed * 7919 + index * 104_729) >>> 0
        const random = () => {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0
          return state / 2 ** 32
        }
        let client = await RawClient.connect(proxy.port)
        let mind: Mind = { user: 'default', database: 0 }
        for (let round = 0; round < scale(60, 3000); round++) {
          if (client.isClosed) {
            client = await RawClient.connect(proxy.port)
            mind = { user: 'default', database: 0 }
          }
          const requests = Array.from({ length: 1 + Math.floor(random() * 12) }, () => randomRequest(random))
          for (const { args } of requests) client.send(...args)
          for (const { args, isRight } of requests) {
            const reply = await client.next()
            if (reply === 'CLOSED') break
            const isLost = reply.startsWith('-ERR Firebreak: the connection to Redis')
            if (isLost || isRight(reply, mind)) right += isLost ? 0 : 1
            else wrong.push(`${index}.${round} ${args.join(' ')} as ${mind.user}/${mind.database}: ${reply}`)
          }
        }
        await client.close()
      }
      const cutter = async () => {
        while (!isOver) {
          await direct.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
          const until = right + 300
          await waitFor(() => isOver || right > until, { everyMs: 5, timeoutMs: 60_000 })
        }
      }
      const cutting = cutter()
      await Promise.all(Array.from({ length: 6 }, (_, index) => one(index)))
      isOver = true
      await cutting
      expect(wrong).toEqual([])
      expect(right).toBeGreaterThan(500)
    },
  )
})
