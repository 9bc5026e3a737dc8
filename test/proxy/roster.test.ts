import type { FirebreakProxy } from '@firebreak/proxy'
import { freePort, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ProxyStage } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
  await stage.server.cli('ACL', 'SETUSER', 'alice', 'on', '>pass', '~*', '+@all')
  await stage.server.cli('ACL', 'SETUSER', 'mallory', 'on', '>pass', '~*', '+@all', '-client|kill')
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

const threadOf = async (redis: RawClient) => /firebreak_thread:(\d+)/.exec(await redis.ask('FIREBREAK', 'INFO'))?.[1]
const addressOf = ({ socket }: RawClient) => `127.0.0.1:${socket.localPort}`

/** Clients of a proxy, the first on one thread, all others on another where there are several. */
async function clients(proxy: FirebreakProxy, count: number, threads: number): Promise<RawClient[]> {
  const first = await stage.client(proxy)
  const thread = await threadOf(first)
  const others: RawClient[] = []
  await waitFor(async () => {
    const next = await stage.client(proxy)
    if (threads === 1 || (await threadOf(next)) !== thread) others.push(next)
    else await next.close()
    return others.length === count - 1
  })
  return [first, ...others]
}

interface Line {
  readonly id: string
  readonly addr: string
  readonly laddr: string
  readonly name: string
  readonly user: string
}

async function list(redis: RawClient, ...filter: string[]): Promise<Line[]> {
  return rowsOf(await redis.ask('CLIENT', 'LIST', ...filter))
}

function rowsOf(text: string): Line[] {
  const body = text.slice(text.indexOf('\n') + 1, -2)
  expect(text).toMatch(new RegExp(`^\\$${body.length}\r\n`))
  const lines = body.split('\n').filter((line) => line !== '')
  return lines.map((line) => Object.fromEntries(line.split(' ').map((field) => field.split('='))) as unknown as Line)
}

const lineOf = (lines: Line[], redis: RawClient) => lines.find(({ addr }) => addr === addressOf(redis))
const isOpen = async (redis: RawClient) => (await redis.ask('PING')) === '+PONG\r\n'

describe.each([
  ['one thread', { workers: 1, transport: 'net' }],
  ['one thread, raw handles', { workers: 1, transport: 'raw' }],
  ['two threads', { workers: 2, transport: 'net' }],
] as const)('%s', (_, options) => {
  const make = async (count: number) => clients(await stage.start(options), count, options.workers)

  test('CLIENT LIST has every client with an id of its own, its name, address and user', async () => {
    const [asker, named, user, plain] = await make(4)
    await named!.ask('CLIENT', 'SETNAME', 'other')
    await user!.ask('AUTH', 'alice', 'pass')
    const lines = await list(asker!)
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length)
    expect(lineOf(lines, named!)).toMatchObject({ name: 'other', user: 'default' })
    expect(lineOf(lines, user!)).toMatchObject({ user: 'alice', name: '' })
    expect(lineOf(lines, plain!)?.laddr).toBe(`127.0.0.1:${plain!.socket.remotePort}`)
    const { id } = lineOf(lines, plain!)!
    expect((await list(asker!, 'ID', id, '77777777')).map(({ addr }) => addr)).toEqual([addressOf(plain!)])
    expect(lineOf(await list(asker!, 'TYPE', 'normal'), plain!)?.id).toBe(id)
    expect(lineOf(await list(asker!, 'TYPE', 'pubsub'), plain!)).toBeUndefined()
    // Behind the list, in a pipeline, comes what was asked for behind it.
    asker!.send('CLIENT', 'LIST')
    asker!.send('ECHO', 'next')
    expect(await asker!.next()).toContain('name=other')
    expect(await asker!.next()).toBe('$4\r\nnext\r\n')
    await named!.close()
    await waitFor(async () => lineOf(await list(asker!), named!) === undefined)
  })

  test('CLIENT KILL by id and by address closes that client and no other', async () => {
    const [asker, one, two, blocked, left] = await make(5)
    const { id } = lineOf(await list(asker!), one!)!
    expect(await asker!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':1\r\n')
    await one!.closed
    expect(await asker!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':0\r\n')
    expect(await asker!.ask('CLIENT', 'KILL', addressOf(two!))).toBe('+OK\r\n')
    await two!.closed
    expect(await asker!.ask('CLIENT', 'KILL', addressOf(two!))).toBe('-ERR No such client\r\n')
    // One with a connection to Redis for itself is known by its own address too.
    blocked!.send('BLPOP', 'nothing', '0')
    await waitFor(async () => (await stage.server.cli('INFO', 'clients')).includes('blocked_clients:1'))
    expect(await asker!.ask('CLIENT', 'KILL', 'ADDR', addressOf(blocked!), 'TYPE', 'pubsub')).toBe(':0\r\n')
    expect(await asker!.ask('CLIENT', 'KILL', 'ADDR', addressOf(blocked!), 'TYPE', 'normal')).toBe(':1\r\n')
    await blocked!.closed
    expect([await isOpen(left!), await isOpen(asker!)]).toEqual([true, true])
  })

  test('CLIENT KILL by user closes all of that user, but for the asker unless it says so', async () => {
    const [asker, one, two, left] = await make(4)
    for (const redis of [asker!, one!, two!]) expect(await redis.ask('AUTH', 'alice', 'pass')).toBe('+OK\r\n')
    // The server counts the connections of that user, too.
    expect(Number((await asker!.ask('CLIENT', 'KILL', 'USER', 'alice')).slice(1))).toBeGreaterThanOrEqual(2)
    await Promise.all([one!.closed, two!.closed])
    expect([await isOpen(left!), await isOpen(asker!)]).toEqual([true, true])
    asker!.send('CLIENT', 'KILL', 'USER', 'alice', 'SKIPME', 'no')
    expect(await asker!.next()).toMatch(/^:[1-9]/)
    await asker!.closed
    expect(await isOpen(left!)).toBe(true)
  })

  test("a client's own row is its own, whatever connections its requests go over", async () => {
    const [asker, other] = await make(2)
    await asker!.ask('CLIENT', 'SETNAME', 'me')
    const hello = /\$2\r\nid\r\n:(\d+)/.exec(await asker!.ask('HELLO', '2'))![1]!
    const own = { id: hello, addr: addressOf(asker!), laddr: `127.0.0.1:${asker!.socket.remotePort}`, name: 'me' }
    expect(rowsOf(await asker!.ask('CLIENT', 'INFO'))).toMatchObject([own])
    expect(lineOf(await list(asker!), asker!)).toMatchObject(own)
    // With a connection to Redis for itself it stands in that connection's row, as others see it too.
    await asker!.ask('WATCH', 'w')
    expect(rowsOf(await asker!.ask('CLIENT', 'INFO'))).toMatchObject([own])
    const seen = await list(other!)
    expect(seen.filter(({ name }) => name === 'me')).toMatchObject([own])
    await asker!.ask('UNWATCH')
    // The id that it can be redirected to is the server's; it is the one in its row from then on.
    const id = (await asker!.ask('CLIENT', 'ID')).slice(1, -2)
    expect(rowsOf(await asker!.ask('CLIENT', 'INFO'))).toMatchObject([{ ...own, id }])
    expect(lineOf(await list(other!), asker!)).toMatchObject({ ...own, id })
    expect(await asker!.ask('HELLO')).toContain(`id\r\n:${id}\r\n`)
    expect(await list(other!, 'ID', id)).toMatchObject([{ ...own, id }])
  })

  test.each(['CLIENT ID', 'CLIENT INFO', 'HELLO'])('CLIENT KILL by the id in %s ends that client only', async (how) => {
    const [asker, victim, ...others] = await make(6)
    for (const redis of [asker!, ...others]) await redis.ask('SET', 'k', 'v')
    const reply = await victim!.ask(...how.split(' '))
    const id = /^:(\d+)|\bid=(\d+)|id\r\n:(\d+)/
      .exec(reply)!
      .slice(1)
      .find((part) => part !== undefined)!
    // Others get the connections that it has used.
    for (const redis of others) await redis.ask('CLIENT', 'INFO')
    for (const redis of others) await redis.ask('WATCH', 'w')
    expect(await victim!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':0\r\n')
    expect(await asker!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':1\r\n')
    await victim!.closed
    for (const redis of [asker!, ...others]) expect(await redis.ask('SET', 'k', 'v')).toBe('+OK\r\n')
  })

  test('a client that ends itself by its row gets the answer, and what it has sent behind is not done', async () => {
    const [asker, left] = await make(2)
    const [{ id, addr }] = rowsOf(await asker!.ask('CLIENT', 'INFO')) as [Line]
    expect(await asker!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':0\r\n')
    asker!.send('CLIENT', 'KILL', addr)
    asker!.send('SET', 'behind', '1')
    expect(await asker!.next()).toBe('+OK\r\n')
    expect(await asker!.next()).toBe('CLOSED')
    expect(await left!.ask('EXISTS', 'behind')).toBe(':0\r\n')
  })

  test("by an address that is also another's at Redis, the proxy's client is ended and not that one", async () => {
    const asker = await stage.client(await stage.start(options))
    const localPort = await freePort()
    const connectTo = async (port: number) => {
      const redis = await RawClient.connect({ port, host: '127.0.0.1', localPort })
      stage.onClear(() => redis.close())
      return redis
    }
    const [victim, stranger] = [await connectTo(asker.socket.remotePort!), await connectTo(stage.server.port)]
    const address = addressOf(victim)
    expect(await isOpen(victim)).toBe(true)
    expect(await stranger.ask('CLIENT', 'INFO')).toContain(` addr=${address} `)
    expect(await asker.ask('CLIENT', 'KILL', 'ADDR', address)).toBe(':1\r\n')
    await victim.closed
    expect(await isOpen(stranger)).toBe(true)
    // Nobody of the proxy has it now.
    expect(await asker.ask('CLIENT', 'KILL', 'ADDR', address)).toBe(':1\r\n')
    await stranger.closed
    expect(await isOpen(asker)).toBe(true)
  })

  test('who may not kill closes nobody', async () => {
    const [asker, one] = await make(2)
    await asker!.ask('AUTH', 'mallory', 'pass')
    expect(await asker!.ask('CLIENT', 'KILL', addressOf(one!))).toMatch(/^-NOPERM/)
    expect(await asker!.ask('CLIENT', 'KILL', 'ADDR', addressOf(one!), 'NONSENSE', '1')).toMatch(/^-/)
    expect([await isOpen(one!), await isOpen(asker!)]).toEqual([true, true])
  })
})

test("an id seen at one proxy is no client's at another before the same Redis", async () => {
  const proxies = await Promise.all([stage.start(), stage.start()])
  const [here, there] = await Promise.all(proxies.map((proxy) => clients(proxy, 4, 1)))
  const [asker, ...others] = there!
  for (const { id } of await list(here![0]!)) {
    // The rows of connections are the server's, which both see.
    if (Number(id) >= 10 ** 15) expect(await asker!.ask('CLIENT', 'KILL', 'ID', id)).toBe(':0\r\n')
  }
  expect(await Promise.all([...others, ...here!].map(isOpen))).toEqual([...others, ...here!].map(() => true))
  const ids = (await Promise.all([here![0]!, asker!].map((redis) => list(redis))))
    .flat()
    .map(({ id }) => Number(id))
    .filter((id) => id >= 10 ** 15)
  expect(new Set(ids).size).toBe(8)
  expect(ids.every(Number.isSafeInteger)).toBe(true)
})

test('clients of all threads together are bounded, however the kernel spreads them', async () => {
  const proxy = await stage.start({ workers: 3, maxClients: 12 })
  const all = await Promise.all(Array.from({ length: 12 }, () => stage.client(proxy)))
  expect(await Promise.all(all.map(isOpen))).toEqual(all.map(() => true))
  const refused = await stage.client(proxy)
  expect(await refused.next()).toBe('-ERR max number of clients reached\r\n')
  await refused.closed
  await all[0]!.close()
  await waitFor(async () => isOpen(await stage.client(proxy)))
})
