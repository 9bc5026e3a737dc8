import type { RateLimitStrategy } from '@firebreak/core'
import type { FirebreakProxy, ProxyOptions } from '@firebreak/proxy'
import { type RedisServer, startRedis, type TestHub, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'
import { ShieldedProxies } from './shielded-proxies.ts'

// A client's requests take effect in their order, also where some are answered from memory and others change what is
// kept without saying so.

let server: RedisServer
let direct: RawClient
let hub: TestHub
let proxies: ShieldedProxies

beforeAll(async () => {
  server = await startRedis({ args: ['--enable-debug-command', 'yes'] })
  direct = await RawClient.connect(server.port)
})
afterAll(async () => {
  await direct.close()
  await server.stop()
})
beforeEach(async () => {
  await direct.ask('FLUSHALL')
  proxies = await ShieldedProxies.open()
  hub = proxies.hub
})
afterEach(() => proxies.close())

const start = (options: Partial<ProxyOptions> = {}) => proxies.start(server.url, options)
const connect = (proxy: FirebreakProxy) => proxies.connect(proxy)

const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`
const isKept = async (client: RawClient, key: string) => (await client.ask('FIREBREAK', 'PEEK', key)) !== '*0\r\n'

/** Waits until a key's value is in memory. */
async function kept(client: RawClient, key: string): Promise<void> {
  await waitFor(async () => {
    await client.ask('GET', key)
    return isKept(client, key)
  })
}

/** Sends all in one piece and gives the last reply. */
async function lastOf(client: RawClient, ...requests: string[][]): Promise<string> {
  client.socket.cork()
  for (const words of requests) client.send(...words)
  client.socket.uncork()
  let reply = ''
  for (const _ of requests) reply = await client.next()
  return reply
}

function limitOf(onLimit: 'wait' | 'stale', limit: number, windowMs: number): { strategy: RateLimitStrategy } {
  return { strategy: { strategy: 'RateLimit', algorithm: 'tokenBucket', limit, windowMs, onLimit, scope: 'process' } }
}

test('a script that names no key is seen by the reads behind it', async () => {
  const client = await connect(await start())
  hub.heat('main', ['hot'])
  for (let round = 0; round < 20; round++) {
    await client.ask('SET', 'hot', 'old')
    await kept(client, 'hot')
    const value = `new ${round}`
    const script = ['EVAL', `return redis.call('set', 'hot', '${value}')`, '0']
    expect(await lastOf(client, script, ['GET', 'hot'])).toBe(bulk(value))
  }
})

test('a write that was sent before its key was hot is seen by the reads behind it', async () => {
  const proxy = await start()
  const [client, other] = [await connect(proxy), await connect(proxy)]
  for (let round = 0; round < 10; round++) {
    await client.ask('SET', 'hot', 'old')
    hub.heat('main', ['marker'])
    await kept(other, 'marker')
    server.child.signal('SIGSTOP')
    const value = `${'x'.repeat(900_000)}${round}`
    client.send('SET', 'hot', value)
    hub.heat('main', ['hot'])
    hub.cool('main', ['marker'])
    await waitFor(async () => !(await isKept(other, 'marker')), { everyMs: 1 })
    client.send('GET', 'hot')
    await other.ask('FIREBREAK', 'HELP')
    server.child.signal('SIGCONT')
    expect(await client.next()).toBe('+OK\r\n')
    expect((await client.next()) === bulk(value)).toBe(true)
    hub.cool('main', ['hot'])
  }
})

test('a flush is seen by the reads behind it, also of a key that only a limit keeps', async () => {
  const client = await connect(await start())
  hub.heat('main', ['limited'], limitOf('stale', 1_000_000, 1000))
  hub.heat('main', ['marker'])
  await kept(client, 'marker')
  for (let round = 0; round < 20; round++) {
    await client.ask('SET', 'limited', 'value')
    for (let read = 0; read < 3; read++) expect(await client.ask('GET', 'limited')).toBe(bulk('value'))
    expect(await lastOf(client, ['FLUSHALL'], ['GET', 'limited'])).toBe('$-1\r\n')
  }
})

test('behind a request that had to wait for a limit nothing is served that has expired meanwhile', async () => {
  const client = await connect(await start())
  await direct.ask('DEBUG', 'SET-ACTIVE-EXPIRE', '0')
  hub.heat('main', ['limited'], limitOf('wait', 1, 400))
  hub.heat('main', ['hot'])
  await client.ask('SET', 'hot', 'value')
  await kept(client, 'hot')
  await client.ask('GET', 'limited')
  await client.ask('SET', 'hot', 'value', 'PX', '200')
  await client.ask('GET', 'hot')
  expect(await lastOf(client, ['GET', 'limited'], ['GET', 'hot'])).toBe('$-1\r\n')
  await direct.ask('DEBUG', 'SET-ACTIVE-EXPIRE', '1')
})

test('a write before a subscription does not keep its key from memory for ever', async () => {
  const proxy = await start()
  const client = await connect(proxy)
  hub.heat('main', ['hot'])
  await client.ask('SET', 'hot', 'old')
  await kept(client, 'hot')
  const subscriber = await connect(proxy)
  await lastOf(subscriber, ['WATCH', 'other'], ['SET', 'hot', 'new'], ['SUBSCRIBE', 'channel'])
  await kept(client, 'hot')
  const other = await connect(proxy)
  await lastOf(other, ['HELLO', '3'], ['SUBSCRIBE', 'channel'])
  other.send('FLUSHDB')
  other.send('SUBSCRIBE', 'more')
  await other.next()
  await kept(client, 'hot')
})

test('SWAPDB through one thread is seen through the others', async () => {
  const proxy = await start({ workers: 2 })
  const threadOf = async (client: RawClient) =>
    /firebreak_thread:(\d+)/.exec(await client.ask('FIREBREAK', 'INFO'))![1]!
  const clients = new Map<string, RawClient>()
  await waitFor(async () => {
    const client = await connect(proxy)
    clients.set(await threadOf(client), client)
    return clients.size === 2
  })
  const [one, two] = [...clients.values()] as [RawClient, RawClient]
  await direct.ask('SET', 'hot', 'zero')
  await direct.ask('SELECT', '1')
  await direct.ask('SET', 'hot', 'one')
  await direct.ask('SELECT', '0')
  hub.heat('main', ['hot'])
  await kept(one, 'hot')
  await kept(two, 'hot')
  await one.ask('SWAPDB', '0', '1')
  // Told by a message between threads: at once, where a reply would be kept for seconds.
  await waitFor(async () => (await two.ask('GET', 'hot')) === bulk('one'), { timeoutMs: 1000 })
})
