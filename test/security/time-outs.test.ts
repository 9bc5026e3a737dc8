import { connect, type Socket } from 'node:net'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 })

const maxConnections = 4
const connections = { headersTimeoutMs: 600, requestTimeoutMs: 1200, idleTimeoutMs: 600, maxConnections }
const token = 'a-token-that-nobody-guesses'

interface Held {
  readonly socket: Socket
  readonly closed: Promise<void>
  text: string
}

async function open(port: number, head = ''): Promise<Held> {
  const socket = connect(port, '127.0.0.1')
  const held: Held = { socket, closed: new Promise((resolve) => socket.on('close', () => resolve())), text: '' }
  socket.on('error', () => {}).on('data', (chunk) => (held.text += chunk.toString('latin1')))
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  if (head !== '') socket.write(head)
  return held
}

/** Sends a byte again and again until the port closes the connection. */
async function drip({ socket, closed }: Held): Promise<void> {
  const timer = setInterval(() => socket.write('a'), 50)
  await closed
  clearInterval(timer)
}

describe.each([
  ['hub', '/v1/reports', { tokens: { apps: [{ name: 'shop', token }], people: [] } }],
  ['limits', '/v1/limits/policy', { token }],
  ['ids', '/v1/limits/policy', { token }],
] as const)('%s', (kind, path, access) => {
  let victim: Victim
  beforeAll(async () => {
    victim = await startVictim(kind, { connections, ...access })
  })
  afterAll(() => victim.child.stop())
  const port = () => victim.ports.http

  test('a head that drips in byte by byte ends the connection', async () => {
    const held = await open(port(), 'GET / HTTP/1.1\r\nX: ')
    await drip(held)
    expect(held.text).toMatch(/^HTTP\/1.1 408 /)
  })

  test('a body that drips in byte by byte ends it', async () => {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`
    await drip(await open(port(), `${head}Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\n`))
  })

  test('so does silence after an answer, and before a word', async () => {
    const spoken = await open(port(), 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    const silent = await open(port())
    await waitFor(() => spoken.text.startsWith('HTTP/1.1'))
    await Promise.all([spoken.closed, silent.closed])
  })

  test('one connection more than there may be is closed at once, and the others go on', async () => {
    const held = await Promise.all(Array.from({ length: maxConnections }, () => open(port())))
    const refused = await open(port(), 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await refused.closed
    expect(refused.text).toBe('')
    held[0]!.socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await waitFor(() => held[0]!.text.startsWith('HTTP/1.1'))
    for (const { socket } of held) socket.destroy()
  })
})

describe('ids over RESP', () => {
  let victim: Victim
  beforeAll(async () => {
    victim = await startVictim('ids', {
      token,
      respConnections: { maxConnections, authTimeoutMs: 800, idleTimeoutMs: 1000 },
    })
  })
  afterAll(() => victim.child.stop())
  const signIn = `*2\r\n$4\r\nAUTH\r\n$${token.length}\r\n${token}\r\n`

  test('a command that drips in byte by byte ends the connection before a password, silence after it', async () => {
    await drip(await open(victim.ports.resp, '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000\r\n'))
    const known = await open(victim.ports.resp, signIn)
    await waitFor(() => known.text === '+OK\r\n')
    await known.closed
  })

  test('one client more than there may be is closed at once, and the others go on', async () => {
    const held = await Promise.all(Array.from({ length: maxConnections }, () => open(victim.ports.resp, signIn)))
    await waitFor(() => held.every(({ text }) => text === '+OK\r\n'))
    const refused = await open(victim.ports.resp, signIn)
    await refused.closed
    expect(refused.text).toBe('')
    held[0]!.socket.write('*1\r\n$4\r\nPING\r\n')
    await waitFor(() => held[0]!.text.endsWith('+PONG\r\n'))
    for (const { socket } of held) socket.destroy()
  })
})

describe('a proxy', () => {
  let redis: RedisServer
  let victim: Victim
  beforeAll(async () => {
    redis = await startRedis()
    const upstream = `redis://127.0.0.1:${redis.port}`
    victim = await startVictim('proxy', { upstream, port: 0, metricsPort: 0, maxClients: 3, idleTimeoutMs: 1500 })
  })
  afterAll(async () => {
    await victim.child.stop()
    await redis.stop()
  })

  test('one client more than there may be is told and closed, and idle ones make room', async () => {
    const held = await Promise.all([1, 2, 3].map(() => open(victim.ports.resp, 'PING\r\n')))
    await waitFor(() => held.every(({ text }) => text === '+PONG\r\n'))
    const refused = await open(victim.ports.resp)
    await refused.closed
    expect(refused.text).toBe('-ERR max number of clients reached\r\n')
    await Promise.all(held.map(({ closed }) => closed))
    const next = await open(victim.ports.resp, 'PING\r\n')
    await waitFor(() => next.text === '+PONG\r\n')
    next.socket.destroy()
  })

  test('its metrics take 256 connections, and no more', async () => {
    const held = await Promise.all(Array.from({ length: 256 }, () => open(victim.ports.http)))
    const refused = await open(victim.ports.http, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await refused.closed
    expect(refused.text).toBe('')
    for (const { socket } of held) socket.destroy()
  })
})
