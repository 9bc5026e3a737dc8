import { request } from 'node:http'
import { connect } from 'node:net'
import { type RedisServer, startRedis, startSource, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

let limits: Victim
let ids: Victim
beforeAll(async () => {
  ;[limits, ids] = await Promise.all([startVictim('limits', {}), startVictim('ids', {})])
})
afterAll(async () => {
  for (const { child } of [limits, ids]) await child.stop()
})

interface Answer {
  readonly status: number
  readonly body: string
}

function ask(
  { ports: { http: port } }: Victim,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  payload = '',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, path, method, headers }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode!, body }))
    })
    sent.on('error', reject).end(payload)
  })
}

describe('what another site makes a browser send is refused', () => {
  const foreign = [
    ['a name that points here', { host: 'evil.example' }],
    ['a request that names its page', { origin: 'https://evil.example' }],
    ['an image or a form', { 'sec-fetch-site': 'cross-site' }],
    ['an image in a page of another port', { 'sec-fetch-site': 'same-site' }],
  ] as const

  test.each(foreign)('ids: %s uses up no id', async (_, headers) => {
    const before = Number((await ask(ids, '/api/segment/get/orders')).body)
    for (const query of ['', '?count=5']) {
      const { status, body } = await ask(ids, `/api/segment/get/orders${query}`, headers)
      expect(status).toBe(403)
      expect(JSON.parse(body).code).toMatch(/^FB_(HOST|ORIGIN)_REFUSED$/)
    }
    expect(Number((await ask(ids, '/api/segment/get/orders')).body)).toBe(before + 1)
  })

  test.each(foreign)('limits: %s replaces no policy', async (_, headers) => {
    const policy = '[rules]\nrule : [count] [act=ask; uid=+] [time=60; count=1] [result=2; return=1]\n'
    const type = { 'content-type': 'text/plain' }
    const before = JSON.parse((await ask(limits, '/v1/limits/alive')).body).Version
    expect((await ask(limits, '/v1/limits/policy', { ...type, ...headers }, 'POST', policy)).status).toBe(403)
    expect(JSON.parse((await ask(limits, '/v1/limits/alive')).body).Version).toBe(before)
    expect((await ask(limits, '/v1/limits/policy', type, 'POST', policy)).status).toBe(200)
  })
})

test('limits: a GET never counts', async () => {
  const policy = '[rules]\nrule : [count] [act=get; uid=+] [time=60; count=9] [result=2; return=7]\n'
  await ask(limits, '/v1/limits/policy', { 'content-type': 'text/plain' }, 'POST', policy)
  const jobs = encodeURIComponent(JSON.stringify([{ ID: 1, Arg: 'act=get&uid=1&_writeThrough=yes' }]))
  for (const call of [
    'update?act=get&uid=1',
    'feedback?act=get&uid=1',
    'browse?act=get&uid=1&_writeThrough=yes',
    'browse_complete?act=get&uid=1&_writeThrough=yes',
    `multi_browse?argsJson=${jobs}`,
  ]) {
    expect(await ask(limits, `/v1/limits/${call}`)).toMatchObject({ status: 405 })
  }
  const value = async () => JSON.parse((await ask(limits, '/v1/limits/value?rule_no=7&act=get&uid=1')).body).cache_val
  expect(await value()).toBe(0)
  expect((await ask(limits, '/v1/limits/update?act=get&uid=1', {}, 'POST')).status).toBe(200)
  expect(await value()).toBe(1)
})

test('ids: HTTP on the port for Redis clients carries no command out', async () => {
  const form = 'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 15\r\n\r\nINCR orders\r\n\r\n'
  for (const text of [
    form,
    'GET / HTTP/1.1\r\nINCR orders\r\n',
    'Host: x\r\nINCR orders\r\n',
    'incr orders http/1.1\r\nINCR orders\r\n',
  ]) {
    const reply = await said(ids.ports.resp, text)
    expect(reply).toBe('-ERR Protocol error: this port speaks RESP, not HTTP\r\n')
  }
})

/** All that a port answers to a text until it closes the connection. */
function said(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk) => (reply += chunk.toString('latin1')))
    socket.on('error', reject)
    socket.on('close', () => resolve(reply))
  })
}

describe('the metrics of a proxy', () => {
  let redis: RedisServer
  let open: Victim
  let closed: Victim
  const metricsToken = 'a-token-for-prometheus'
  beforeAll(async () => {
    redis = await startRedis()
    const options = { upstream: `redis://127.0.0.1:${redis.port}`, port: 0, metricsPort: 0 }
    ;[open, closed] = await Promise.all([
      startVictim('proxy', options),
      startVictim('proxy', { ...options, metricsToken }),
    ])
  })
  afterAll(async () => {
    for (const { child } of [open, closed]) await child.stop()
    await redis.stop()
  })

  test.each([
    ['a name that points here', { host: 'evil.example' }],
    ['a name that points here, with a port', { host: 'evil.example:9121' }],
    ['a request that names its page', { origin: 'https://evil.example' }],
    ['a script of another port', { 'sec-fetch-site': 'same-site' }],
  ])('are not told to %s', async (_, headers) => {
    for (const path of ['/metrics', '/readyz']) {
      const { status, body } = await ask(open, path, headers)
      expect([status, body]).toEqual([403, expect.not.stringContaining(String(redis.port))])
    }
  })

  test.each(['localhost', '127.0.0.1:9121', '[::1]:9121', '10.1.2.3', 'proxy:9121'])(
    'are told to a scrape of %s',
    async (host) => {
      const { status, body } = await ask(open, '/metrics', { host })
      expect([status, body]).toEqual([200, expect.stringContaining('firebreak_proxy_clients')])
    },
  )

  test('are told with a token only, where there is one; health checks need none', async () => {
    for (const authorization of ['', 'Bearer wrong', metricsToken]) {
      expect((await ask(closed, '/metrics', { authorization })).status).toBe(401)
    }
    expect((await ask(closed, '/metrics', { authorization: `Bearer ${metricsToken}` })).status).toBe(200)
    expect((await ask(closed, '/livez')).status).toBe(200)
    // It is ready once Redis has answered it.
    const ready = await waitFor(async () => {
      const answer = await ask(closed, '/readyz')
      return answer.status === 200 && answer
    })
    expect(ready.body).toBe('ok\n')
  })
})

describe('a proxy beyond loopback', () => {
  let open: RedisServer
  let closed: RedisServer
  beforeAll(async () => {
    ;[open, closed] = await Promise.all([startRedis(), startRedis({ args: ['--requirepass', 'secret'] })])
  })
  afterAll(async () => {
    await open.stop()
    await closed.stop()
  })

  const start = (options: object) =>
    startSource(new URL('./victim.ts', import.meta.url), [
      'proxy',
      JSON.stringify({ host: '0.0.0.0', port: 0, ...options }),
    ])
  const at = ({ port }: RedisServer, credentials = '') => `redis://${credentials}127.0.0.1:${port}`

  test.each([
    ['a Redis without a password', () => ({ upstream: at(open) }), 'Redis requires no password'],
    ['a password that it lends', () => ({ upstream: at(closed, ':secret@') }), 'the password of its upstream'],
    ['a Redis that cannot be asked', () => ({ upstream: 'redis://127.0.0.1:1' }), 'could not find out'],
    [
      'certificates that it does not check',
      () => ({ upstream: at(open), tls: { requestCert: true, rejectUnauthorized: false } }),
      'Redis requires no password',
    ],
  ])('does not start with %s', async (_, options, reason) => {
    const child = start(options())
    expect(await child.exited).not.toBe(0)
    expect(child.output()).toContain(reason)
    expect(child.output()).toContain('--allow-anyone')
  })

  test.each([
    ['a Redis that asks for a password', () => ({ upstream: at(closed) })],
    ['users of its own', () => ({ upstream: at(open), users: [{ name: 'ann', password: 'secret' }] })],
    ['--allow-anyone', () => ({ upstream: at(open), allowAnyone: true })],
    ['workers and a Redis that asks', () => ({ upstream: at(closed), workers: 2 })],
  ])('starts with %s', async (_, options) => {
    const child = start(options())
    await child.printed(/listening/, 60_000)
    await child.stop()
  })
})
