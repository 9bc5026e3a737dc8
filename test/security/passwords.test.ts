import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { makeAuthority, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { RawClient } from '../proxy/raw-client.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 300_000 })

const users = [
  { name: 'ann', password: 'correct-horse' },
  { name: 'bob', password: 'battery-staple' },
]
const token = 'a-token-that-nobody-guesses'
const { certFile, keyFile, ca } = issued()
const authTimeoutMs = 1000

let redis: RedisServer
let proxy: Victim
let secured: Victim
let ids: Victim
beforeAll(async () => {
  redis = await startRedis()
  const options = { upstream: `redis://127.0.0.1:${redis.port}`, port: 0, users, authTimeoutMs }
  ;[proxy, secured, ids] = await Promise.all([
    startVictim('proxy', options),
    startVictim('proxy', { ...options, tlsFiles: { cert: certFile, key: keyFile }, maxClients: 3 }),
    startVictim('ids', { token, respConnections: { authTimeoutMs, maxConnections: 3 } }),
  ])
})
afterAll(async () => {
  for (const { child } of [proxy, secured, ids]) await child.stop()
  await redis.stop()
})

function issued() {
  const authority = makeAuthority(join(temporaryFolder('passwords'), 'ours'))
  return { ...authority.issue('proxy'), ca: authority.ca }
}

const closed = (socket: Socket) => {
  socket.on('error', () => {}).resume()
  return new Promise<void>((resolve) => socket.on('close', () => resolve()))
}

test('a proxy with users closes clients that do not log in, however they drip, and no others', async () => {
  const [silent, asking, known] = await Promise.all([1, 2, 3].map(() => RawClient.connect(proxy.ports.resp)))
  expect(await known!.ask('AUTH', 'ann', 'correct-horse')).toBe('+OK\r\n')
  const drip = setInterval(() => asking!.write('PING\r\n'), 50)
  await Promise.all([silent!.closed, asking!.closed])
  clearInterval(drip)
  expect(await known!.ask('PING')).toBe('+PONG\r\n')
  expect(await known!.ask('INFO', 'firebreak')).toContain('firebreak_strangers_closed:2')
  await known!.close()
})

test('ids over RESP does too', async () => {
  const silent = connectTcp(ids.ports.resp, '127.0.0.1')
  const known = await RawClient.connect(ids.ports.resp)
  expect(await known.ask('AUTH', token)).toBe('+OK\r\n')
  await closed(silent)
  expect(await known.ask('PING')).toBe('+PONG\r\n')
  await known.close()
})

test('ids over RESP takes no more connections than it may', async () => {
  const held = await Promise.all([1, 2, 3].map(() => RawClient.connect(ids.ports.resp)))
  await closed(connectTcp(ids.ports.resp, '127.0.0.1'))
  for (const client of held) expect(await client.ask('AUTH', token)).toBe('+OK\r\n')
  for (const client of held) await client.close()
})

test('before a Redis that asks for a password FIREBREAK tells strangers nothing, and changes nothing', async () => {
  const closedRedis = await startRedis({ args: ['--requirepass', 'of-the-server'] })
  const { child, ports } = await startVictim('proxy', { upstream: `redis://127.0.0.1:${closedRedis.port}`, port: 0 })
  const stranger = await RawClient.connect(ports.resp)
  const known = await RawClient.connect(ports.resp)
  expect(await known.ask('AUTH', 'of-the-server')).toBe('+OK\r\n')
  for (const words of [['INFO'], ['SLOWLOG'], ['SLOWLOG', 'RESET'], ['LATENCY'], ['PEEK', 'k'], ['HELP']]) {
    expect(await stranger.ask('FIREBREAK', ...words)).toMatch(/^-NOAUTH/)
    expect(await known.ask('FIREBREAK', ...words)).not.toMatch(/^-/)
  }
  // Also on a connection of its own.
  expect(await stranger.ask('MULTI')).toMatch(/^-NOAUTH/)
  expect(await stranger.ask('FIREBREAK', 'INFO')).toMatch(/^-NOAUTH/)
  expect(await stranger.ask('AUTH', 'of-the-server')).toBe('+OK\r\n')
  expect(await stranger.ask('FIREBREAK', 'INFO')).toContain('firebreak_version')
  await child.stop()
  await closedRedis.stop()
})

test('sockets that never finish a TLS handshake are counted and closed', async () => {
  const silent = [1, 2, 3].map(() => connectTcp(secured.ports.resp, '127.0.0.1'))
  const ends = Promise.all(silent.map(closed))
  for (const socket of silent) await waitFor(() => socket.readyState === 'open')
  let isOver = false
  void ends.then(() => (isOver = true))
  // A fourth socket is closed at once, with nothing read from it.
  await closed(connectTcp(secured.ports.resp, '127.0.0.1'))
  expect(isOver).toBe(false)
  await ends
  const client = connectTls({ port: secured.ports.resp, host: '127.0.0.1', servername: 'localhost', ca })
  let text = ''
  client.on('error', () => {})
  client.on('data', (chunk) => (text += chunk)).write('AUTH ann correct-horse\r\nPING\r\n')
  await waitFor(() => text === '+OK\r\n+PONG\r\n')
  client.destroy()
})

test('wrong passwords are limited by address and user, and logged without the password', async () => {
  const guess = async (...words: string[]) => {
    const client = await RawClient.connect(proxy.ports.resp)
    const reply = await client.ask(...words)
    await client.close()
    return reply
  }
  for (let nth = 0; nth < 10; nth++) {
    const words = nth % 2 === 0 ? ['AUTH', 'ann', `guess-${nth}`] : ['HELLO', '3', 'AUTH', 'ann', `guess-${nth}`]
    expect(await guess(...words)).toMatch(/^-WRONGPASS /)
  }
  // The right one would show now, if it were looked at.
  expect(await guess('AUTH', 'ann', 'correct-horse')).toMatch(
    /^-ERR too many wrong passwords .* try again in \d+ s\r\n$/,
  )
  expect(await guess('HELLO', '3', 'AUTH', 'ann', 'correct-horse')).toMatch(/^-ERR too many/)
  expect(await guess('AUTH', 'bob', 'battery-staple')).toBe('+OK\r\n')
  // A name that nobody has may be somebody's password.
  expect(await guess('AUTH', 'my-password', 'x')).toMatch(/^-WRONGPASS /)
  const logged = () => proxy.child.output()
  await waitFor(() => logged().includes('further attempts are refused'))
  expect(logged()).toMatch(/wrong password .*"address":"127.0.0.1","user":"ann"/)
  expect(logged()).not.toMatch(/guess-|my-password/)
})

test('wrong tokens at ids over RESP are limited by address, over many connections', async () => {
  let refused = ''
  for (let nth = 0; nth < 100 && !refused.startsWith('-ERR'); nth++) {
    const client = await RawClient.connect(ids.ports.resp)
    refused = await client.ask('AUTH', `guess-${nth}`)
    await client.close()
  }
  expect(refused).toMatch(/^-ERR too many wrong passwords from your address/)
  expect(ids.child.output()).toContain('sent the id service a wrong password')
  expect(ids.child.output()).not.toContain('guess-')
})
