import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { FaultProxy, type RedisServer, scale, startRedis, startSource, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

// Every request carries a stamp (client, number) that its reply must give back: a reply that was lost, doubled, cut or
// given to somebody else cannot go unseen. Where a connection is lost an error or a closed client is right, never
// another's bytes.

let server: RedisServer
let fault: FaultProxy
let proxy: Pick<FirebreakProxy, 'port' | 'close'>

beforeAll(async () => {
  server = await startRedis({ args: ['--maxclients', '20000'] })
})
afterAll(() => server.stop())
afterEach(async () => {
  await proxy.close()
  await fault.close()
})

async function start(transport: 'net' | 'raw'): Promise<void> {
  fault = await FaultProxy.start(server.port)
  const upstream = `redis://127.0.0.1:${fault.port}`
  proxy = await startProxy({ upstream, port: 0, transport, maxClients: 20_000, maxInFlight: 512, mode: 'single' })
}

interface Tally {
  right: number
  errors: number
  readonly wrong: string[]
}

/** One client with a pipeline of all kinds of requests, until `isOver`; every reply is checked. */
async function stampedClient(name: string, isOver: () => boolean, tally: Tally): Promise<void> {
  let client = await RawClient.connect(proxy.port)
  for (let round = 0; !isOver(); round++) {
    if (client.isClosed) client = await RawClient.connect(proxy.port)
    const expected: { is: (reply: string) => boolean; what: string }[] = []
    const ask = (args: string[], is: (reply: string) => boolean) => {
      client.send(...args)
      expected.push({ is, what: args[0]! })
    }
    for (let index = 0; index < 20; index++) {
      const stamp = `${name}-${round}-${index}`
      const bulk = `$${stamp.length}\r\n${stamp}\r\n`
      const isStamp = (reply: string) => reply === bulk
      if (index === 7) {
        ask(['MULTI'], (reply) => reply === '+OK\r\n')
        ask(['ECHO', stamp], (reply) => reply === '+QUEUED\r\n')
        ask(['EXEC'], (reply) => reply === `*1\r\n${bulk}`)
      } else if (index === 11) ask(['EVAL', 'return ARGV[1]', '0', stamp], isStamp)
      else if (index === 13) {
        ask(['RPUSH', `list-${name}`, stamp], (reply) => reply === ':1\r\n')
        ask(['BLPOP', `list-${name}`, '1'], (reply) => reply.endsWith(bulk))
      } else if (index === 15) {
        const large = stamp.padEnd(30_000, '.')
        ask(['ECHO', large], (reply) => reply === `$30000\r\n${large}\r\n`)
      } else ask(['ECHO', stamp], isStamp)
    }
    for (const { is, what } of expected) {
      const reply = await client.next()
      if (reply === 'CLOSED') {
        tally.errors++
        break
      }
      if (is(reply)) tally.right++
      else if (reply.startsWith('-') || isAftermath(reply, what)) tally.errors++
      else tally.wrong.push(`${name} ${round} ${what}: ${reply.slice(0, 100)}`)
    }
    if (tally.errors > 0) {
      // After a fault the list may hold what an unanswered push left.
      const cleaner = await RawClient.connect(server.port)
      await cleaner.ask('DEL', `list-${name}`)
      await cleaner.close()
    }
  }
  await client.close()
}

/** A lost connection between a push and its pop leaves a longer list or an older element: this client's own, always. */
function isAftermath(reply: string, what: string): boolean {
  return (
    (what === 'RPUSH' && /^:\d+\r\n$/.test(reply)) ||
    (what === 'BLPOP' && (reply === '*-1\r\n' || reply.includes('list-')))
  )
}

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test('connections cut in the middle of replies: no wrong, doubled or swapped reply', async () => {
    await start(transport)
    const tally: Tally = { right: 0, errors: 0, wrong: [] }
    let isOver = false
    const clients = Array.from({ length: 20 }, (_, index) => stampedClient(`c${index}`, () => isOver, tally))
    for (let cut = 0; cut < scale(8, 60); cut++) {
      const before = tally.right
      await waitFor(() => tally.right > before + 300, { timeoutMs: 30_000 })
      fault.cut()
    }
    isOver = true
    await Promise.all(clients)
    expect(tally.wrong).toEqual([])
    expect(tally.right).toBeGreaterThan(2000)
  })

  test('a server that delays, and clients that come and go: every reply is its own', async () => {
    await start(transport)
    const tally: Tally = { right: 0, errors: 0, wrong: [] }
    let isOver = false
    const clients = Array.from({ length: 10 }, (_, index) => stampedClient(`d${index}`, () => isOver, tally))
    for (let wave = 0; wave < scale(5, 40); wave++) {
      fault.faults.serverDelayMs = wave % 2 === 0 ? 5 : 0
      const visitors = await Promise.all(Array.from({ length: 20 }, () => RawClient.connect(proxy.port)))
      // They ask for much and leave without reading it.
      for (const visitor of visitors) for (let index = 0; index < 50; index++) visitor.send('ECHO', 'x'.repeat(2000))
      await waitFor(() => tally.right > (wave + 1) * 100, { timeoutMs: 30_000 })
      for (const visitor of visitors) visitor.socket.resetAndDestroy()
    }
    isOver = true
    await Promise.all(clients)
    expect(tally.wrong).toEqual([])
    expect(tally.errors).toBe(0)
  })
})

test('thousands of connections at once, each with its own replies, over a handful of connections to Redis', async () => {
  // In a process of its own, through the command: both ends of ten thousand connections are more files than one may have.
  fault = await FaultProxy.start(server.port)
  const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
  const upstream = `redis://127.0.0.1:${fault.port}`
  const child = startSource(main, ['proxy', '--upstream', upstream, '--port', '0', '--max-clients', '20000'])
  const port = Number((await child.printed(/listens on 127\.0\.0\.1:(\d+)/))[1])
  proxy = { port, close: () => child.stop() }
  const count = scale(1500, 10_000)
  const clients: RawClient[] = []
  for (let index = 0; index < count; index += 250) {
    clients.push(...(await Promise.all(Array.from({ length: 250 }, () => RawClient.connect(proxy.port)))))
  }
  for (let round = 0; round < 3; round++) {
    const replies = await Promise.all(clients.map((client, index) => client.ask('ECHO', `${round}-${index}`)))
    const wrong = replies.filter((reply, index) => !reply.endsWith(`\r\n${round}-${index}\r\n`))
    expect(wrong).toEqual([])
  }
  expect(fault.openConnections).toBeLessThan(10)
  await Promise.all(clients.map((client) => client.close()))
})
