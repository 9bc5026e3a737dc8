import { connect } from 'node:net'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { RawClient } from '../proxy/raw-client.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 20_000, hookTimeout: 180_000 })

/** What a page can make a browser send to any port: `fetch(url, { method: 'POST', mode: 'no-cors', body })`. */
const form = 'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n'
const body = 'FLUSHALL\r\n'
const refusal = '-ERR Protocol error: this port speaks RESP, not HTTP\r\n'

let redis: RedisServer
let admin: RawClient
beforeAll(async () => {
  redis = await startRedis()
  admin = await RawClient.connect(redis.port)
})
afterAll(async () => {
  await admin.close()
  await redis.stop()
})
beforeEach(async () => {
  await admin.ask('FLUSHALL')
  for (const key of ['kept', '/kept']) await admin.ask('SET', key, '1')
})

const left = () => admin.ask('DBSIZE')

/** Sends pieces, each once the port has answered or closed after the last, and returns all that it answered until it closed. */
function said(port: number, pieces: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = ''
    const rest = [...pieces]
    const socket = connect(port, '127.0.0.1', () => socket.write(rest.shift()!))
    socket.setNoDelay(true)
    socket.on('data', (chunk) => {
      reply += chunk.toString('latin1')
      const piece = rest.shift()
      if (piece !== undefined) socket.write(piece)
    })
    // A port that closes while more is on its way.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => resolve(reply))
  })
}

describe.each([
  ['raw handles', { transport: 'raw' }],
  ['public sockets', { transport: 'net' }],
  ['a cluster', { mode: 'cluster' }],
  ['users', { users: [{ name: 'ann', password: 'correct-horse' }] }],
])('a proxy with %s', (_, options) => {
  let proxy: Victim
  beforeAll(async () => {
    proxy = await startVictim('proxy', { upstream: `redis://127.0.0.1:${redis.port}`, port: 0, ...options })
  })
  afterAll(() => proxy.child.stop())

  test.each([
    ['a form', form],
    ['a form in lower case', form.toLowerCase()],
    ['a request for a page', form.replace('POST', 'GET')],
    ['another method', form.replace('POST', 'PUT')],
    ['a method that is a command', form.replace('POST /', 'DEL /kept')],
    ['a head without a Host', 'OPTIONS * HTTP/1.0\r\n'],
    ['a header alone', 'Host: 127.0.0.1\r\n'],
    ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a word of it in an array', '*2\r\n$4\r\nPoSt\r\n$1\r\n/\r\n'],
  ])('ends the connection with the first line of %s', async (_, head) => {
    expect(await said(proxy.ports.resp, [head + body])).toBe(refusal)
    expect(await said(proxy.ports.resp, [head, body])).toBe(refusal)
    expect(await left()).toBe(':2\r\n')
  })

  test('however it is cut into segments', async () => {
    const client = await RawClient.connect(proxy.ports.resp)
    for (const letter of form + body) {
      client.write(letter)
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    // Where more was on its way the answer may be lost.
    await client.closed
    expect(await left()).toBe(':2\r\n')
  })

  test('a value that holds such words is a value', async () => {
    const client = await RawClient.connect(proxy.ports.resp)
    if ('users' in options) await client.ask('AUTH', 'ann', 'correct-horse')
    expect(await client.ask('SET', 'POST', 'HTTP/1.1')).toBe('+OK\r\n')
    expect(await client.type('GET POST')).toBe('$8\r\nHTTP/1.1\r\n')
    await client.close()
  })
})

test('a form behind commands, and one in a transaction, ends the connection in its turn', async () => {
  const proxy = await startVictim('proxy', { upstream: `redis://127.0.0.1:${redis.port}`, port: 0 })
  expect(await said(proxy.ports.resp, [`PING\r\n${form}${body}`])).toBe(`+PONG\r\n${refusal}`)
  expect(await said(proxy.ports.resp, ['MULTI\r\n', `${form}EXEC\r\n${body}`])).toBe(`+OK\r\n${refusal}`)
  expect(await left()).toBe(':2\r\n')
  await proxy.child.stop()
})
