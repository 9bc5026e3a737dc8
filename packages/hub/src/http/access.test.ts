import { request as httpRequest } from 'node:http'
import { networkInterfaces } from 'node:os'
import { waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { NotLoopbackError } from '../errors.ts'
import { openHubServices } from '../services/hub-services.ts'
import { type Hub, startHub } from '../start-hub.ts'
import { TestSensor } from '../testing/test-sensor.ts'

const app = 'app-token-0123456789'
const tokens = {
  apps: [{ name: 'shop', token: app }],
  people: [
    { name: 'vic', role: 'viewer', token: 'viewer-token-0123456789' },
    { name: 'olga', role: 'operator', token: 'operator-token-0123456789' },
    { name: 'adam', role: 'admin', token: 'admin-token-0123456789' },
  ],
} as const

let open: Hub
let locked: Hub

beforeAll(async () => {
  open = await startHub({ logLevel: 'silent' })
  locked = await startHub({ logLevel: 'silent', tokens, allowedHosts: ['hub.example'] })
})

afterAll(async () => {
  await open.close()
  await locked.close()
})

/** A request with headers that `fetch` would not let us set. */
function ask(
  hub: Hub,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body?: string,
): Promise<{ status: number; body: { code?: string; message?: string }; headers: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${hub.url}${path}`, { method, headers }, (response) => {
      let text = ''
      response.on('data', (chunk) => (text += chunk))
      response.on('end', () => {
        const parsed = /json/.test(response.headers['content-type'] ?? '') ? JSON.parse(text) : {}
        resolve({ status: response.statusCode!, body: parsed as { code?: string }, headers: response.headers })
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** How an attempt to open a WebSocket ends. */
function upgrade(hub: Hub, path: string, headers: Record<string, string>, protocols: string[] = []): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${hub.url.replace('http', 'ws')}${path}`, protocols, { headers })
    socket.on('open', () => {
      socket.close()
      resolve(`open ${socket.protocol}`.trim())
    })
    socket.on('error', (error) => resolve(error.message))
  })
}

const attacks = [
  ['a name that points here (DNS rebinding)', { host: 'evil.example' }, 'FB_HOST_REFUSED'],
  ['the same with a port', { host: 'evil.example:7070' }, 'FB_HOST_REFUSED'],
  ['a name that only begins like loopback', { host: '127.0.0.1.evil.example' }, 'FB_HOST_REFUSED'],
  ['a name with a user before it', { host: 'evil.example@127.0.0.1' }, 'FB_HOST_REFUSED'],
  ['a page of another site', { origin: 'https://evil.example' }, 'FB_ORIGIN_REFUSED'],
  ['a page of another port of this machine', { origin: 'http://127.0.0.1:1' }, 'FB_ORIGIN_REFUSED'],
  ['a sandboxed page', { origin: 'null' }, 'FB_ORIGIN_REFUSED'],
  ['a cross-site request without an origin', { 'sec-fetch-site': 'cross-site' }, 'FB_ORIGIN_REFUSED'],
  ['an image in a page of another port', { 'sec-fetch-site': 'same-site' }, 'FB_ORIGIN_REFUSED'],
] as const

test.each(attacks)('%s is refused on every route', async (_name, headers, code) => {
  const text = '# 1,2,shop,h\n# main\nk:5\n'
  for (const [method, path, body] of [
    ['GET', '/v1/overview', undefined],
    ['GET', '/v1/keys', undefined],
    ['GET', '/metrics', undefined],
    ['GET', '/openapi.json', undefined],
    ['GET', '/', undefined],
    ['POST', '/v1/reports', text],
    ['POST', '/v1/switch', '{"isOff":true}'],
    ['PUT', '/v1/rules/x', '{"key":"a","threshold":1}'],
    ['DELETE', '/v1/rules/x', undefined],
  ] as const) {
    const type = path === '/v1/reports' ? 'text/plain' : 'application/json'
    const answer = await ask(
      open,
      path,
      { ...headers, ...(body !== undefined && { 'content-type': type }) },
      method,
      body,
    )
    expect([path, answer.status, answer.body.code]).toEqual([path, 403, code])
  }
  // By a name that is not ours they learn that the hub is there; a page of another site does not.
  for (const path of ['/livez', '/readyz'])
    expect([path, (await ask(open, path, headers)).body.code]).toEqual([
      path,
      code === 'FB_HOST_REFUSED' ? undefined : code,
    ])
  expect(open.core.rules().rules).toEqual([])
  expect(open.core.delivery.isOff).toBe(false)
})

test.each(attacks)('%s is refused on every WebSocket', async (_name, headers) => {
  for (const path of ['/v1/sensor', '/v1/live']) expect(await upgrade(open, path, headers)).toContain('403')
})

test('a link from elsewhere opens a page of the console, and nothing else', async () => {
  const going = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  for (const site of ['cross-site', 'same-site']) {
    const headers = { ...going, 'sec-fetch-site': site }
    expect((await ask(locked, '/', headers)).status).toBe(200)
    for (const path of ['/v1/overview', '/metrics', '/v1/session', '/openapi.json']) {
      expect([path, (await ask(locked, path, headers)).body.code]).toEqual([path, 'FB_ORIGIN_REFUSED'])
    }
    // In a frame, by a script, or under a name of theirs it is no link.
    for (const more of [
      { 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-mode': 'no-cors' },
      { origin: 'http://evil.example' },
    ]) {
      expect((await ask(locked, '/', { ...headers, ...more })).body.code).toBe('FB_ORIGIN_REFUSED')
    }
    expect((await ask(locked, '/', { ...headers, host: 'evil.example' })).body.code).toBe('FB_HOST_REFUSED')
  }
})

test('loopback names, own addresses and own pages are served', async () => {
  const own = Object.values(networkInterfaces()).flatMap(
    (list) => list?.filter(({ family }) => family === 'IPv4') ?? [],
  )
  const names = ['localhost', '127.0.0.1', '127.8.8.8', '[::1]', ...own.map(({ address }) => address)]
  for (const host of names.map((name) => `${name}:${open.port}`)) {
    expect([host, (await ask(open, '/livez', { host, origin: `http://${host}` })).status]).toEqual([host, 200])
  }
  expect((await ask(locked, '/livez', { host: 'hub.example' })).status).toBe(200)
  expect(await upgrade(open, '/v1/live', { origin: open.url })).toBe('open')
  expect(await upgrade(open, '/v1/none', {})).toContain('404')
})

test('programs with a token reach a hub by any name; browsers, and callers without one, do not', async () => {
  const named = (more: Record<string, string> = {}) => ({ host: 'hub-1.example:7070', ...more })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const viewer = bearer(tokens.people[0].token)
  expect((await ask(locked, '/v1/overview', named(viewer))).status).toBe(200)
  expect((await ask(locked, '/metrics', named(viewer))).status).toBe(200)
  const report = [named({ ...bearer(app), 'content-type': 'text/plain' }), 'POST'] as const
  expect((await ask(locked, '/v1/reports', ...report, `# ${Date.now()},${Date.now()},shop,h\n`)).status).toBe(204)
  expect((await ask(locked, '/v1/overview', named(bearer('nobodys-token-0123')))).status).toBe(401)
  for (const path of ['/livez', '/readyz']) expect((await ask(locked, path, named())).status).toBe(200)
  expect(await upgrade(locked, '/v1/sensor', named())).toBe('open')
  expect(await upgrade(locked, '/v1/live', named(viewer))).toBe('open')
  // A page whose name was pointed here: what its browser adds tells it, whatever token it makes up.
  const lies = { ...bearer('nobodys-token-0123') }
  const page = { origin: 'http://hub-1.example:7070' }
  for (const more of [
    {},
    page,
    { ...page, ...lies },
    { 'sec-fetch-site': 'same-origin', ...lies },
    { cookie: 'a=b', ...lies },
  ]) {
    for (const path of ['/', '/v1/overview', '/openapi.json']) {
      const { code, message } = (await ask(locked, path, named(more))).body
      expect([path, more, code]).toEqual([path, more, 'FB_HOST_REFUSED'])
      expect(message).toContain('allowedHosts')
    }
  }
  expect(await upgrade(locked, '/v1/sensor', named(page))).toContain('403')
  expect(await upgrade(locked, '/v1/live', named())).toContain('403')
  // Without tokens the name is all that tells a page from a program.
  expect((await ask(open, '/v1/overview', named(viewer))).body.code).toBe('FB_HOST_REFUSED')
  expect(await upgrade(open, '/v1/sensor', named())).toContain('403')
})

test('a stranger learns that the hub is not ready, and not why', async () => {
  const cause = 'the Redis that the hubs share at redis-7.internal failed'
  for (const hub of [locked, open])
    hub.core.alarms.raise({ id: 'engine', severity: 'critical', cause, retry: 'every second' })
  const reasonOf = async (hub: Hub, headers: Record<string, string> = {}) => {
    const { status, body } = await ask(hub, '/readyz', headers)
    expect(status).toBe(503)
    return (body as { reason?: string }).reason
  }
  expect(await reasonOf(locked)).toBe('an alarm; its cause is shown with a token')
  expect(await reasonOf(locked, { authorization: `Bearer ${app}` })).not.toContain('redis-7')
  expect(await reasonOf(locked, { authorization: `Bearer ${tokens.people[0].token}` })).toBe(cause)
  expect(await reasonOf(open)).toBe(cause)
  expect(await reasonOf(open, { host: 'evil.example' })).not.toContain('redis-7')
  for (const hub of [locked, open]) hub.core.alarms.clear('engine')
})

test('pages and answers carry a strict policy', async () => {
  const { headers } = await ask(open, '/')
  expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'/)
  expect(headers['content-security-policy']).not.toContain('unsafe')
  expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' })
})

test('an address beyond loopback is refused without tokens, and allowed with them', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'hub.example']) {
    await expect(startHub({ host, logLevel: 'silent' })).rejects.toThrow(NotLoopbackError)
    await expect(startHub({ host, logLevel: 'silent', tokens: { apps: [], people: [] } })).rejects.toMatchObject({
      code: 'FB_HUB_NOT_LOOPBACK',
    })
  }
  const hub = await startHub({ host: '0.0.0.0', logLevel: 'silent', tokens })
  await hub.close()
})

test('with tokens nothing is told or done without one, and each role may do its part', async () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const [viewer, operator, admin] = tokens.people.map(({ token }) => bearer(token))
  const rule = '{"key":"a","threshold":1}'
  const json = { 'content-type': 'application/json' }
  const statuses = async (method: string, path: string, body?: string) => {
    const results: number[] = []
    for (const headers of [{}, bearer('wrong'), bearer(app), viewer, operator, admin]) {
      results.push((await ask(locked, path, { ...(body && json), ...headers }, method, body)).status)
    }
    return results
  }
  expect(await statuses('GET', '/v1/overview')).toEqual([401, 401, 401, 200, 200, 200])
  expect(await statuses('GET', '/metrics')).toEqual([401, 401, 401, 200, 200, 200])
  expect(await statuses('PUT', '/v1/rules/x', rule)).toEqual([401, 401, 401, 403, 200, 200])
  expect(await statuses('POST', '/v1/switch', '{"isOff":false}')).toEqual([401, 401, 401, 403, 200, 200])
  expect(await statuses('GET', '/v1/tokens')).toEqual([401, 401, 401, 403, 403, 200])
  expect(await statuses('GET', '/livez')).toEqual([200, 200, 200, 200, 200, 200])
  const audit = await locked.core.store.audit(10)
  expect(new Set(audit.map(({ who }) => who))).toEqual(new Set(['olga', 'adam']))
})

test('a process tells of its locks with its application’s token, for its services only, and does nothing else with it', async () => {
  const services = await openHubServices()
  const scoped = { apps: [{ name: 'shop', token: app, services: ['shop'] }], people: tokens.people }
  const hub = await startHub({ logLevel: 'silent', tokens: scoped, plugins: services.plugins })
  const none = { acquired: 0, contended: 0, handedOver: 0, refused: 0, released: 0, renewals: 0, renewalErrors: 0 }
  const duration = { count: 0, sumMs: 0, maxMs: 0, buckets: [] }
  const metrics = { ...none, lost: { expired: 0, taken: 0 }, wait: duration, hold: duration }
  const counts = { held: [], waiting: [], heldCount: 0, waitingCount: 0 }
  const report = (serviceId: string) =>
    JSON.stringify({ version: 1, serviceId, hostId: 'h', instanceId: 'i', validMs: 60_000, ...counts, metrics })
  const send = (method: string, path: string, body?: string, token: string = app) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return ask(hub, path, headers, method, body)
  }
  expect((await send('POST', '/v1/locks', report('shop'))).status).toBe(204)
  expect((await send('POST', '/v1/locks', report('billing'))).body.code).toBe('FB_SCOPE_REFUSED')
  expect((await send('POST', '/v1/locks', report('shop'), 'nobodys-token-0123')).status).toBe(401)
  expect((await send('GET', '/v1/locks')).status).toBe(401)
  expect((await send('POST', '/v1/locks/release', '{"kind":"lock","name":"a"}')).status).toBe(401)
  expect((await send('POST', '/v1/limits/update', '{}')).status).toBe(401)
  await hub.close()
  await services.close()
})

test('reports and sensors need an app token', async () => {
  const now = Date.now()
  const text = `# ${now},${now},shop,h\n# main\nk:5\n`
  const send = (headers: Record<string, string>) =>
    ask(locked, '/v1/reports', { 'content-type': 'text/plain', ...headers }, 'POST', text)
  expect((await send({})).status).toBe(401)
  expect((await send({ authorization: `Bearer ${tokens.people[2].token}` })).status).toBe(401)
  expect((await send({ authorization: `Bearer ${app}` })).status).toBe(204)
  await expect(TestSensor.connect(locked.url)).rejects.toThrow('app token missing')
  const sensor = await TestSensor.connect(locked.url, { token: app })
  expect(sensor.welcome?.hubId).toBe(locked.core.options.hubId)
  sensor.close()
})

test('a missing token and a wrong one are told apart, over HTTP, at the live socket and in a hello', async () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const codeOf = async (path: string, headers: Record<string, string>, method = 'GET') => {
    const { status, body } = await ask(locked, path, headers, method)
    expect(status).toBe(401)
    return [body.code, body.message]
  }
  const missing = ['FB_TOKEN_MISSING', expect.stringContaining('send Authorization: Bearer TOKEN')]
  const unknown = [
    'FB_TOKEN_REFUSED',
    expect.stringContaining('not known here: it is wrong, was revoked or has expired'),
  ]
  const text = { 'content-type': 'text/plain' }
  expect(await codeOf('/v1/overview', {})).toEqual(missing)
  expect(await codeOf('/v1/overview', bearer('nobodys-token-0123'))).toEqual(unknown)
  expect(await codeOf('/v1/reports', text, 'POST')).toEqual(missing)
  expect(await codeOf('/v1/reports', { ...text, ...bearer('nobodys-token-0123') }, 'POST')).toEqual(unknown)
  // Of the other kind, or in another form.
  const [, ofPerson] = await codeOf('/v1/reports', { ...text, ...bearer(tokens.people[2].token) }, 'POST')
  expect(ofPerson).toContain("is a person's; this needs that of an app")
  expect((await codeOf('/v1/overview', bearer(app)))[1]).toContain("is an app's")
  expect((await codeOf('/v1/overview', { authorization: app }))[1]).toContain('is not "Bearer TOKEN"')
  const live = (headers: Record<string, string>) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`${locked.url.replace('http', 'ws')}/v1/live`, { headers })
      socket.on('unexpected-response', (_request, response) => {
        let body = ''
        response.on('data', (chunk) => (body += chunk))
        response.on('end', () => resolve(`${response.statusCode} ${JSON.parse(body).code}`))
      })
      socket.on('error', () => {})
    })
  expect(await live({})).toBe('401 FB_TOKEN_MISSING')
  expect(await live(bearer('nobodys-token-0123'))).toBe('401 FB_TOKEN_REFUSED')
  const refusalOf = async (hello: { token?: string }, headers = {}) => {
    const sensor = new TestSensor(locked.url, hello, headers)
    sensor.socket.on('open', () => sensor.send('hello', sensor.hello))
    await waitFor(() => sensor.closed)
    return sensor.refused.map(({ code }) => code)
  }
  expect(await refusalOf({})).toEqual(['FB_TOKEN_MISSING'])
  expect(await refusalOf({ token: 'nobodys-token-0123' })).toEqual(['FB_TOKEN_REFUSED'])
  expect(await refusalOf({}, bearer('nobodys-token-0123'))).toEqual(['FB_TOKEN_REFUSED'])
})

test('a sensor may give its token in the header instead of hello', async () => {
  const sensor = new TestSensor(locked.url, {}, { authorization: `Bearer ${app}` })
  await waitFor(() => sensor.socket.readyState === WebSocket.OPEN)
  sensor.send('hello', sensor.hello)
  await waitFor(() => sensor.snapshots > 0)
  sensor.close()
})

test('a browser gives its token to the live socket as a subprotocol, which is not sent back', async () => {
  const protocols = ['firebreak', `firebreak-token.${tokens.people[0].token}`]
  expect(await upgrade(locked, '/v1/live', {})).toContain('401')
  expect(await upgrade(locked, '/v1/live', {}, protocols)).toBe('open firebreak')
})
