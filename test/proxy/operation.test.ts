import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { FaultProxy, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let server: RedisServer
const proxies: FirebreakProxy[] = []
const clients: RawClient[] = []

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()))
})

async function start(options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
  const proxy = await startProxy({ upstream: server.url, port: 0, drainMs: 200, ...options })
  proxies.push(proxy)
  return proxy
}

async function client(port: number): Promise<RawClient> {
  const made = await RawClient.connect(port)
  clients.push(made)
  return made
}

const field = (info: string, name: string) => Number(new RegExp(`firebreak_${name}:(\\d+)`).exec(info)?.[1])

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test('requests, pipelines, values of many megabytes and a closed peer', async () => {
    const proxy = await start({ transport })
    const redis = await client(proxy.port)
    expect(await redis.ask('SET', 'k', 'v')).toBe('+OK\r\n')
    for (let index = 0; index < 5000; index++) redis.send('INCR', `n-${transport}`)
    for (let index = 1; index <= 5000; index++) expect(await redis.next()).toBe(`:${index}\r\n`)
    const big = Buffer.alloc(20_000_000, 'abc\r\n')
    expect(await redis.ask('SET', 'big', big)).toBe('+OK\r\n')
    const reply = await redis.ask('GET', 'big')
    expect(reply.length).toBe(big.length + 13)
    expect(Buffer.from(reply.slice(11, -2), 'latin1').equals(big)).toBe(true)
    await redis.ask('DEL', 'big')
    expect(await redis.ask('QUIT')).toBe('+OK\r\n')
    await redis.closed
    const other = await client(proxy.port)
    expect(await other.ask('PING')).toBe('+PONG\r\n')
  })

  test('a client that does not read makes its sender wait, and nobody else', async () => {
    const proxy = await start({ transport, maxOutputBytes: 200_000, slowReaderMs: 60_000 })
    const writer = await client(proxy.port)
    await writer.ask('SET', 'large', Buffer.alloc(1_500_000, 'x'))
    const slow = connect(proxy.port, '127.0.0.1')
    let received = 0
    slow.on('data', (chunk) => (received += chunk.length))
    // Who gets large replies has a connection to Redis for itself from the next request on.
    slow.write('GET large\r\n')
    await waitFor(() => received === 1_500_012)
    slow.pause()
    for (let index = 0; index < 100; index++) slow.write('GET large\r\n')
    const memory = () => process.memoryUsage().arrayBuffers
    const before = memory()
    for (let index = 0; index < 200; index++) expect(await writer.ask('GET', 'small')).toBe('$-1\r\n')
    // 150 megabytes were asked for; what the proxy holds is far below.
    expect(memory() - before).toBeLessThan(40_000_000)
    slow.resume()
    await waitFor(() => received === 101 * 1_500_012, { what: () => `all bytes, have ${received}` })
    slow.destroy()
  })
})

test('a reader that holds up a shared connection for too long is closed and counted', async () => {
  const proxy = await start({ maxOutputBytes: 100_000, slowReaderMs: 100 })
  const writer = await client(proxy.port)
  await writer.ask('SET', 'large', Buffer.alloc(2_000_000, 'x'))
  const slow = connect(proxy.port, '127.0.0.1')
  slow.pause()
  slow.on('error', () => {})
  for (let index = 0; index < 50; index++) slow.write('GET large\r\n')
  await waitFor(async () => field(await writer.ask('FIREBREAK', 'INFO'), 'slow_readers_closed') === 1)
  expect(await writer.ask('GET', 'small')).toBe('$-1\r\n')
  slow.destroy()
})

test('all clients together are bounded too', async () => {
  const proxy = await start({ maxTotalOutputBytes: 3_000_000, maxOutputBytes: 50_000_000 })
  const writer = await client(proxy.port)
  await writer.ask('SET', 'large', Buffer.alloc(500_000, 'x'))
  const slow = Array.from({ length: 10 }, () => connect(proxy.port, '127.0.0.1'))
  let received = 0
  const before = process.memoryUsage().arrayBuffers
  for (const socket of slow) {
    socket.pause()
    socket.on('data', (chunk) => (received += chunk.length))
  }
  for (const socket of slow) socket.write('GET large\r\n'.repeat(30))
  await waitFor(async () => field(await writer.ask('FIREBREAK', 'INFO'), 'output_full') === 1)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(120_000_000)
  for (const socket of slow) socket.resume()
  await waitFor(() => received === 300 * 500_011, { what: () => `all bytes, have ${received}` })
  for (const socket of slow) socket.destroy()
})

test('clients beyond the bound are refused in the words of Redis', async () => {
  const proxy = await start({ maxClients: 2 })
  const [one, two] = [await client(proxy.port), await client(proxy.port)]
  expect(await one.ask('PING')).toBe('+PONG\r\n')
  expect(await two.ask('PING')).toBe('+PONG\r\n')
  const three = await client(proxy.port)
  expect(await three.next()).toBe('-ERR max number of clients reached\r\n')
  await three.closed
  await two.close()
  await waitFor(async () => {
    const again = await client(proxy.port)
    return (await again.ask('PING')) === '+PONG\r\n'
  })
})

test.each(['net', 'raw'] as const)(
  'a client whose host is gone is found out by the kernel, over %s',
  async (transport) => {
    const proxy = await start({ transport })
    const redis = await client(proxy.port)
    await redis.ask('PING')
    const port = (number: number) => `0100007F:${number.toString(16).toUpperCase().padStart(4, '0')}`
    const pair = `${port(proxy.port)} ${port(redis.socket.localPort!)} 01`
    const timerOf = () => new RegExp(`${pair} \\S+ (\\d\\d):`).exec(readFileSync('/proc/net/tcp', 'latin1'))?.[1]
    // While something is on its way another timer runs; 02 is that of keep-alive.
    await waitFor(() => timerOf() === '02', { what: () => `the timer, is ${timerOf()}` })
  },
)

test('idle clients are closed, those that wait for something are not', async () => {
  const proxy = await start({ idleTimeoutMs: 150 })
  const idle = await client(proxy.port)
  const waiting = await client(proxy.port)
  expect(await idle.ask('PING')).toBe('+PONG\r\n')
  waiting.send('BLPOP', 'nothing', '0.6')
  await idle.closed
  expect(await waiting.next()).toBe('*-1\r\n')
})

test('a pinned connection is given back when a transaction, a blocking pop or a subscription has ended', async () => {
  const proxy = await start()
  const redis = await client(proxy.port)
  const watcher = await client(proxy.port)
  const owned = async () => field(await watcher.ask('FIREBREAK', 'INFO'), 'upstream_owned')
  for (const steps of [
    [['MULTI'], ['EXEC']],
    [['WATCH', 'k'], ['UNWATCH']],
    [
      ['SUBSCRIBE', 'a', 'b'],
      ['UNSUBSCRIBE', 'a', 'b'],
    ],
    [['BLPOP', 'none', '0.01']],
    [['CLIENT', 'TRACKING', 'OFF']],
  ]) {
    for (const [index, step] of steps.entries()) {
      await redis.ask(...step)
      if (step[0]!.endsWith('SUBSCRIBE')) await redis.next()
      if (steps.length > 1 && index === 0) expect(await owned(), step[0]).toBe(1)
    }
    expect(await owned(), steps[0]![0]).toBe(0)
  }
  // A client that goes in the middle takes its connection with it.
  await redis.ask('MULTI')
  await redis.close()
  await waitFor(async () => (await owned()) === 0)
  expect(await watcher.ask('PING')).toBe('+PONG\r\n')
})

test('a shared connection that nobody uses any more is closed, and made again for who needs it', async () => {
  const proxy = await start({ idleConnectionMs: 300 })
  const redis = await client(proxy.port)
  const shared = async () => field(await redis.ask('FIREBREAK', 'INFO'), 'upstream_shared')
  for (let database = 0; database < 6; database++) {
    expect(await redis.ask('SELECT', String(database))).toBe('+OK\r\n')
    expect(await redis.ask('SET', 'here', String(database))).toBe('+OK\r\n')
  }
  await waitFor(async () => (await shared()) === 0)
  expect(await redis.ask('GET', 'here')).toBe('$1\r\n5\r\n')
  // One that owes an answer is in use, however long that takes.
  await server.cli('CLIENT', 'PAUSE', '1000', 'ALL')
  expect(await redis.ask('GET', 'here')).toBe('$1\r\n5\r\n')
  await server.cli('FLUSHALL')
})

test('a client that goes while it blocks leaves nothing blocked behind', async () => {
  const proxy = await start()
  const redis = await client(proxy.port)
  const other = await client(proxy.port)
  redis.send('BLPOP', 'queue', '0')
  await waitFor(async () => (await server.cli('INFO', 'clients')).includes('blocked_clients:1'))
  await redis.close()
  await waitFor(async () => (await server.cli('INFO', 'clients')).includes('blocked_clients:0'))
  await other.ask('RPUSH', 'queue', 'x')
  expect(await other.ask('LLEN', 'queue')).toBe(':1\r\n')
  await other.ask('DEL', 'queue')
})

test('threads share one port and all work', async () => {
  const proxy = await start({ workers: 2 })
  const all = await Promise.all(Array.from({ length: 40 }, () => client(proxy.port)))
  const replies = await Promise.all(all.map((one, index) => one.ask('ECHO', String(index))))
  expect(replies).toEqual(all.map((_, index) => `$${String(index).length}\r\n${index}\r\n`))
  const counts = await Promise.all(all.map(async (one) => field(await one.ask('FIREBREAK', 'INFO'), 'clients')))
  // Each thread has its own clients, and together they have all.
  expect(
    new Set(counts).size === 1 ? counts[0] : [...new Set(counts)].reduce((sum, count) => sum + count, 0),
  ).toBeGreaterThanOrEqual(20)
})

test('a unix socket in front, and one behind', async () => {
  const folder = temporaryFolder('proxy')
  const behind = await startRedis({ args: ['--unixsocket', join(folder, 'redis.sock')] })
  const path = join(folder, 'proxy.sock')
  await start({ upstream: `unix://${join(folder, 'redis.sock')}`, path })
  const { stdout } = await promisify(execFile)('redis-cli', ['-s', path, 'ECHO', 'hello'])
  expect(stdout.trim()).toBe('hello')
  await behind.stop()
})

test('TLS in front and behind', async () => {
  const folder = temporaryFolder('proxy')
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', ...subject],
    { stdio: 'ignore' },
  )
  const pem = { key: readFileSync(key), cert: readFileSync(cert) }
  // This Redis may be built without TLS: a proxy with TLS in front stands in for one that has it.
  const secure = await start({ tls: pem })
  const front = await start({ upstream: `rediss://localhost:${secure.port}`, upstreamTls: { ca: pem.cert }, tls: pem })
  const socket = connectTls({ port: front.port, host: '127.0.0.1', ca: pem.cert, servername: 'localhost' })
  let received = ''
  socket.on('data', (chunk) => (received += chunk.toString('latin1')))
  const value = 'y'.repeat(300_000)
  socket.write(`SET tls ${'x'}\r\nGET tls\r\n*3\r\n$3\r\nSET\r\n$3\r\ntls\r\n$300000\r\n${value}\r\nGET tls\r\n`)
  await waitFor(() => received.endsWith(`$300000\r\n${value}\r\n`))
  expect(received.startsWith('+OK\r\n$1\r\nx\r\n+OK\r\n')).toBe(true)
  // Who ends its side is still answered.
  received = ''
  socket.end('PING\r\nMULTI\r\nEXEC\r\n')
  await waitFor(() => socket.closed)
  expect(received).toBe('+PONG\r\n+OK\r\n*0\r\n')
  const wrong = await start({ upstream: `rediss://localhost:${secure.port}`, mode: 'single', connectWaitMs: 1500 })
  const redis = await client(wrong.port)
  expect(await redis.ask('PING')).toMatch(/^-ERR Firebreak: no connection to Redis .*self-signed/)
})

test('closing lets requests on their way end', async () => {
  const proxy = await start({ drainMs: 5000 })
  const [idle, busy] = [await client(proxy.port), await client(proxy.port)]
  await idle.ask('PING')
  busy.send('BLPOP', 'drained', '0')
  await waitFor(async () => (await server.cli('INFO', 'clients')).includes('blocked_clients:1'))
  const closed = proxy.close()
  await idle.closed
  await server.cli('RPUSH', 'drained', 'x')
  expect(await busy.next()).toContain('drained')
  await busy.closed
  await closed
  await expect(RawClient.connect(proxy.port)).rejects.toThrow()
})

test('slow requests and the times of each command are told', async () => {
  const fault = await FaultProxy.start(server.port)
  const proxy = await start({ upstream: `redis://127.0.0.1:${fault.port}`, slowLogMs: 20 })
  const redis = await client(proxy.port)
  await redis.ask('CLIENT', 'SETNAME', 'me')
  await redis.ask('GET', 'fast')
  // A busy machine may be slow by itself.
  await redis.ask('FIREBREAK', 'SLOWLOG', 'RESET')
  fault.faults.serverDelayMs = 40
  await redis.ask('GET', 'slow')
  fault.faults.serverDelayMs = 0
  const log = await redis.ask('FIREBREAK', 'SLOWLOG')
  expect(log).toContain('GET')
  expect(log).toContain('me')
  expect(log).toContain(`127.0.0.1:${fault.port}`)
  expect(log.startsWith('*1\r\n')).toBe(true)
  const times = await redis.ask('FIREBREAK', 'LATENCY')
  expect(times).toMatch(/\$3\r\nGET\r\n.*\$5\r\ncount\r\n:2\r\n/s)
  expect(await redis.ask('FIREBREAK', 'SLOWLOG', 'RESET')).toBe('+OK\r\n')
  expect(await redis.ask('FIREBREAK', 'SLOWLOG')).toBe('*0\r\n')
  expect(await redis.ask('FIREBREAK', 'NOSUCH')).toMatch(/^-ERR unknown subcommand/)
  await redis.close()
  await proxy.close()
  proxies.length = 0
  await fault.close()
})

test('the slow log has what goes over a connection of one’s own, but not what waits for others', async () => {
  const fault = await FaultProxy.start(server.port)
  const proxy = await start({ upstream: `redis://127.0.0.1:${fault.port}`, slowLogMs: 20 })
  const [redis, other] = [await client(proxy.port), await client(proxy.port)]
  await redis.ask('MULTI')
  await other.ask('FIREBREAK', 'SLOWLOG', 'RESET')
  fault.faults.serverDelayMs = 40
  expect(await redis.ask('INCR', 'slow')).toBe('+QUEUED\r\n')
  expect(await redis.ask('EXEC')).toMatch(/^\*1/)
  fault.faults.serverDelayMs = 0
  expect(await redis.ask('BLPOP', 'nothing', '0.1')).toMatch(/^[*$]-1/)
  const log = await other.ask('FIREBREAK', 'SLOWLOG')
  expect(log).toContain('INCR')
  expect(log).toContain('EXEC')
  expect(log).not.toContain('BLPOP')
  await Promise.all([redis.close(), other.close()])
  await proxy.close()
  proxies.length = 0
  await fault.close()
})

test('users of the proxy’s own', async () => {
  const users = [
    { name: 'default', password: 'first' },
    { name: 'app', password: 'second' },
  ]
  const proxy = await start({ users })
  const redis = await client(proxy.port)
  expect(await redis.ask('GET', 'k')).toBe('-NOAUTH Authentication required.\r\n')
  expect(await redis.ask('HELLO', '3')).toMatch(/^-NOAUTH/)
  expect(await redis.ask('AUTH', 'wrong')).toMatch(/^-WRONGPASS/)
  expect(await redis.ask('AUTH', 'app', 'first')).toMatch(/^-WRONGPASS/)
  expect(await redis.ask('AUTH', 'nobody', 'first')).toMatch(/^-WRONGPASS/)
  expect(await redis.ask('AUTH', 'first')).toBe('+OK\r\n')
  expect(await redis.ask('SET', 'k', 'v')).toBe('+OK\r\n')
  expect(await redis.ask('RESET')).toBe('+RESET\r\n')
  expect(await redis.ask('GET', 'k')).toMatch(/^-NOAUTH/)
  expect(await redis.ask('HELLO', '3', 'AUTH', 'app', 'second', 'SETNAME', 'x')).toMatch(/^%7/)
  expect(await redis.ask('GET', 'none')).toBe('_\r\n')
  expect(await redis.ask('CLIENT', 'GETNAME')).toBe('$1\r\nx\r\n')
})

test('passwords of Redis are passed on, and each client is who it says it is', async () => {
  const locked = await startRedis({ args: ['--requirepass', 'main'] })
  const proxy = await start({ upstream: locked.url })
  const redis = await client(proxy.port)
  expect(await redis.ask('GET', 'k')).toBe('-NOAUTH Authentication required.\r\n')
  expect(await redis.ask('HELLO', '3')).toMatch(/^-NOAUTH HELLO must be called/)
  expect(await redis.ask('AUTH', 'wrong')).toMatch(/^-WRONGPASS/)
  expect(await redis.ask('AUTH', 'main')).toBe('+OK\r\n')
  expect(await redis.ask('ACL', 'SETUSER', 'app', 'on', '>app', '~app:*', '+@all')).toBe('+OK\r\n')
  expect(await redis.ask('ACL', 'WHOAMI')).toBe('$7\r\ndefault\r\n')
  const app = await client(proxy.port)
  expect(await app.ask('HELLO', '3', 'AUTH', 'app', 'app')).toMatch(/^%7/)
  expect(await app.ask('ACL', 'WHOAMI')).toBe('$3\r\napp\r\n')
  expect(await app.ask('GET', 'k')).toMatch(/^-NOPERM/)
  expect(await app.ask('SET', 'app:1', 'x')).toBe('+OK\r\n')
  expect(await redis.ask('GET', 'app:1')).toBe('$1\r\nx\r\n')
  const service = await start({ upstream: `redis://app:app@127.0.0.1:${locked.port}` })
  const plain = await client(service.port)
  expect(await plain.ask('GET', 'app:1')).toBe('$1\r\nx\r\n')
  await locked.stop()
})

test('a subscriber that only listens does not hold up the end', async () => {
  const proxy = await start({ drainMs: 600_000 })
  const subscriber = await client(proxy.port)
  expect(await subscriber.ask('SUBSCRIBE', 'news')).toContain('news')
  await proxies.pop()!.close()
  await subscriber.closed
})

test('with Redis away requests wait, then fail with an error, and work again when it is back', async () => {
  let own = await startRedis()
  const proxy = await start({ upstream: own.url, connectWaitMs: 400 })
  const redis = await client(proxy.port)
  expect(await redis.ask('SET', 'k', 'v')).toBe('+OK\r\n')
  await own.stop()
  expect(await redis.ask('GET', 'k')).toMatch(/^-ERR Firebreak: /)
  own = await own.restart()
  expect(await waitFor(async () => (await redis.ask('SET', 'k', 'v')) === '+OK\r\n')).toBe(true)
  await own.stop()
})
