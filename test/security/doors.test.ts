import { chmodSync, writeFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { natsReports } from '@firebreak/core'
import { reportKeyId, reportKeyOf, signatureHeaders, signReport } from '@firebreak/core/node'
import { startNats, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers as newHeaders } from '@nats-io/transport-node'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { selfSigned } from '../../packages/hub/src/testing/self-signed.ts'
import { bearer, call, firebreak } from './call.ts'
import { RawSensor, reportFrame } from './raw-sensor.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const folder = temporaryFolder('doors')
const ends: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

async function startHub(options: object): Promise<Victim> {
  const hub = await startVictim('hub', options)
  ends.push(() => hub.child.stop())
  return hub
}

const ann = { name: 'ann', role: 'operator', token: 'anns-token-4711-0815' }
const vic = { name: 'vic', role: 'viewer', token: 'vics-token-4711-0815' }
const shop = { name: 'shop', token: 'shops-token-4711-0815', services: ['shop'], clusters: ['main'] }

describe('a tokens file', () => {
  const good = 'apps: [{name: shop, token: c2hvcC1mcm9tLWZpbGU, services: [shop], clusters: ["*"]}]'
  const start = (name: string, text: string, mode = 0o600) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    chmodSync(path, mode)
    return { path, args: ['hub', '--port', '0', '--tokens-file', path] }
  }

  test.each([
    ['that everybody may read', good, 0o644, /run: chmod 600 .*open\.yaml/, 'open.yaml'],
    [
      'with a placeholder',
      'apps: [{name: a, token: change-me-app-token}]',
      0o600,
      /is a placeholder/,
      'placeholder.yaml',
    ],
    [
      'with one letter over and over',
      'apps: [{name: a, token: xxxxxxxxxxxxxxxxxxxxx}]',
      0o600,
      /placeholder/,
      'x.yaml',
    ],
    [
      'with the token of an example',
      'people: [{name: a, role: admin, token: another-long-random-text}]',
      0o600,
      /is a placeholder/,
      'example.yaml',
    ],
    ['with nobody in it', 'apps: []', 0o600, /names nobody/, 'nobody.yaml'],
    [
      'with one token for two',
      'apps: [{name: a, token: c2hvcC1mcm9tLWZpbGU}]\npeople: [{name: b, role: admin, token: c2hvcC1mcm9tLWZpbGU}]',
      0o600,
      /person b has the same token as app a/,
      'double.yaml',
    ],
  ])('%s is refused, and the token is not in the sentence', async (_, text, mode, reason, name) => {
    const { code, output } = await firebreak(start(name, text, mode).args)
    expect(code).not.toBe(0)
    expect(output).toMatch(reason)
    expect(output).not.toMatch(/c2hvcC1mcm9tLWZpbGU|change-me-app|xxxxxx|another-long/)
  })

  test('that changes is read again: new tokens open, old connections end, and nothing restarts', async () => {
    const { path, args } = start('turning.yaml', good)
    const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
    const child = startSource(main, args)
    ends.push(() => child.stop())
    const [, port] = await child.printed(/hub http:\/\/127\.0\.0\.1:(\d+)/, 120_000)
    const sensor = await new RawSensor(Number(port), { token: 'c2hvcC1mcm9tLWZpbGU' }).answered()
    expect(sensor.isWelcome).toBe(true)
    writeFileSync(path, good.replace('c2hvcC1mcm9tLWZpbGU', 'YW5vdGhlciBvbmUgZm9y'))
    await waitFor(() => sensor.closed !== undefined, { timeoutMs: 10_000 })
    expect((await new RawSensor(Number(port), { token: 'YW5vdGhlciBvbmUgZm9y' }).answered()).isWelcome).toBe(true)
    expect((await new RawSensor(Number(port), { token: 'c2hvcC1mcm9tLWZpbGU' }).answered()).isWelcome).toBe(false)
    // A file that was emptied, or of which half is written yet, opens nothing.
    for (const emptied of ['', '{}', 'apps: []']) {
      writeFileSync(path, emptied)
      await waitFor(() => child.output().includes('names nobody') || child.output().includes('must be an object'))
      expect((await call(Number(port), 'POST', '/v1/switch', {}, { isOff: false })).status).toBe(401)
      const reloads = () => child.output().split('was reloaded').length
      const before = reloads()
      writeFileSync(path, good)
      await waitFor(() => reloads() > before)
    }
  })

  test('of a service that other machines reach is no placeholder either', async () => {
    for (const service of [
      ['limits', '--port', '0'],
      ['ids', '--port', '0', '--resp-port', '0', '--worker-id', '1'],
    ]) {
      const env = { FIREBREAK_LIMITS_TOKEN: 'change-me-0815-4711', FIREBREAK_IDS_TOKEN: 'short-one' }
      const { code, output } = await firebreak([...service, '--host', '0.0.0.0'], { ...env, HOME: folder })
      expect([code, output]).toEqual([2, expect.stringMatching(/token (is a placeholder|must be 16)/)])
      expect(output).not.toMatch(/change-me-0815|short-one/)
    }
  })
})

test('over NATS a report counts only where an app token signed it, and only for its services', async () => {
  const nats = await startNats()
  ends.push(() => nats.stop())
  const hub = await startHub({ natsUrl: nats.url, tokens: { apps: [shop], people: [vic] } })
  const connection = await connect({ servers: nats.url.slice(7) })
  ends.push(() => connection.close())
  const manager = await jetstreamManager(connection)
  await waitFor(async () => manager.consumers.info(natsReports.stream, natsReports.consumer).catch(() => undefined))
  let sequence = 0
  const publish = async (token: string | undefined, serviceId: string, forge = (frame: Uint8Array) => frame) => {
    const frame = reportFrame({ serviceId, hostId: 'h', instanceId: 'i' }, { k: 7 }, ++sequence)
    const headers = newHeaders()
    if (token !== undefined) {
      const key = reportKeyOf(token)
      headers.set(signatureHeaders.key, reportKeyId(key))
      headers.set(signatureHeaders.signature, signReport(key, frame))
    }
    await jetstream(connection).publish(natsReports.subject, forge(frame), { headers })
  }
  const changed = (frame: Uint8Array) => frame.map((byte, index) => (index === frame.length - 4 ? byte ^ 1 : byte))
  await publish(undefined, 'shop')
  await publish('guessed-token-0815-4711', 'shop')
  await publish(shop.token, 'shop', changed)
  await publish(shop.token, 'billing')
  await publish(shop.token, 'shop')
  const ingest = async () => (await call(hub.ports.http, 'GET', '/v1/overview', bearer(vic.token))).body.ingest
  await waitFor(async () => (await ingest()).refused.scope === 4 && (await ingest()).trackedKeys === 1)
  const { hosts } = (await call(hub.ports.http, 'GET', '/v1/hosts', bearer(vic.token))).body
  expect(hosts.map(({ serviceId }) => serviceId)).toEqual(['shop'])
})

describe('people', () => {
  const signIn = (port: number, body: object) => call(port, 'POST', '/v1/session', {}, body)
  const live = (port: number, headers: Record<string, string>) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/live`, { headers })
    const seen = { isOpen: false, closed: undefined as number | undefined }
    socket.on('open', () => (seen.isOpen = true))
    socket.on('close', (code) => (seen.closed = code))
    socket.on('error', () => (seen.closed = -1))
    return seen
  }

  test('sign in for a cookie that no script reads; a change needs what only our page can know; sign-out ends it all', async () => {
    const { ports } = await startHub({ tokens: { apps: [], people: [ann, vic] } })
    const { status, headers, body } = await signIn(ports.http, { token: ann.token })
    expect(status).toBe(200)
    const [set] = headers['set-cookie']!
    expect(set).toMatch(/^firebreak_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
    expect(set).not.toContain(ann.token)
    const cookie = { cookie: set!.split(';')[0]! }
    expect((await call(ports.http, 'GET', '/v1/session', cookie)).body).toMatchObject({ who: 'ann', role: 'operator' })
    const turn = (more: object) => call(ports.http, 'POST', '/v1/switch', { ...cookie, ...more }, { isOff: false })
    expect((await turn({})).body.code).toBe('FB_CSRF_REFUSED')
    expect((await turn({ 'firebreak-csrf': 'ü'.repeat(43) })).body.code).toBe('FB_CSRF_REFUSED')
    expect((await turn({ 'firebreak-csrf': body.csrf })).status).toBe(200)
    expect((await turn({ 'firebreak-csrf': body.csrf, origin: 'https://evil.example' })).status).toBe(403)
    // A session of another, with this one's value.
    const viewer = (await signIn(ports.http, { token: vic.token })).headers['set-cookie']![0]!.split(';')[0]!
    expect((await turn({ cookie: viewer, 'firebreak-csrf': body.csrf })).status).toBe(403)
    const page = live(ports.http, cookie)
    await waitFor(() => page.isOpen)
    expect((await call(ports.http, 'DELETE', '/v1/session', cookie)).body.code).toBe('FB_CSRF_REFUSED')
    expect((await call(ports.http, 'DELETE', '/v1/session', { ...cookie, 'firebreak-csrf': body.csrf })).status).toBe(
      204,
    )
    await waitFor(() => page.closed === 4003)
    expect((await call(ports.http, 'GET', '/v1/overview', cookie)).status).toBe(401)
    const lie = viewer.replace(/.{4}$/, 'ann0')
    expect((await call(ports.http, 'GET', '/v1/overview', { cookie: lie })).status).toBe(401)
  })

  test('a password, made by the CLI, opens the hub; guessing is slowed down and told', async () => {
    const dataFolder = join(folder, 'people')
    const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
    const made = [
      'token',
      'create',
      '--person',
      'eve',
      '--role',
      'viewer',
      '--ask-password',
      '--data-folder',
      dataFolder,
    ]
    const child = startSource(main, made, { stdio: ['pipe', 'pipe', 'pipe'] })
    child.process.stdin!.end('correct horse battery\n')
    expect(await child.exited).toBe(0)
    const { ports, child: hub } = await startHub({ dataFolder, logLevel: 'info', maxSignInsPerMinute: 4 })
    const good = { name: 'eve', password: 'correct horse battery' }
    expect((await signIn(ports.http, good)).body).toMatchObject({ who: 'eve', role: 'viewer' })
    const statuses: number[] = []
    for (let attempt = 0; attempt < 6; attempt++) {
      statuses.push((await signIn(ports.http, { name: 'eve', password: `guess ${attempt}` })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 429, 429])
    expect((await signIn(ports.http, good)).body.code).toBe('FB_SIGN_IN_THROTTLED')
    expect(hub.output()).toContain('a sign-in failed')
    expect(hub.output()).toContain('too many attempts')
    expect(hub.output()).not.toMatch(/guess \d|correct horse/)
  })

  test('the header of a proxy that signs people in counts from its address only', async () => {
    const tokens = { apps: [], people: [{ name: 'ann@example.org', role: 'operator' }, vic] }
    const header = { userHeader: 'X-Forwarded-Email' }
    const trusted = await startHub({ tokens, ...header })
    const foreign = await startHub({ tokens, ...header, userHeaderFrom: ['10.9.8.7'], userHeaderRole: 'viewer' })
    const as = (who: string) => ({ 'x-forwarded-email': who })
    const session = await call(trusted.ports.http, 'GET', '/v1/session', as('ann@example.org'))
    expect(session.body).toMatchObject({ who: 'ann@example.org', role: 'operator' })
    expect((await call(trusted.ports.http, 'GET', '/v1/session', as('nobody@example.org'))).status).toBe(401)
    expect((await call(foreign.ports.http, 'GET', '/v1/session', as('ann@example.org'))).status).toBe(401)
    const turn = (more: object) =>
      call(trusted.ports.http, 'POST', '/v1/switch', { ...as('ann@example.org'), ...more }, { isOff: false })
    expect((await turn({})).body.code).toBe('FB_CSRF_REFUSED')
    expect((await turn({ 'firebreak-csrf': session.body.csrf })).status).toBe(200)
  })

  test('a header that comes twice says nothing: one of them is the client’s own', async () => {
    const people = [{ name: 'ann@example.org', role: 'operator' }]
    const trusted = await startHub({
      tokens: { apps: [], people },
      userHeader: 'X-Forwarded-Email',
      userHeaderRole: 'viewer',
    })
    const given = (...names: string[]) =>
      new Promise<number>((resolve, reject) => {
        const { http: port } = trusted.ports
        const headers = { 'X-Forwarded-Email': names }
        plainRequest({ port, path: '/v1/session', headers }, (response) => resolve(response.resume().statusCode!))
          .on('error', reject)
          .end()
      })
    expect(await given('ann@example.org')).toBe(200)
    expect(await given('ann@example.org', 'somebody@example.org')).toBe(401)
    expect(await given('somebody@example.org', 'ann@example.org')).toBe(401)
  })
})

test('while a hub has not heard from its store, which may hold tokens, no stranger counts anything', async () => {
  const silent = createServer((socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  ends.push(async () => void silent.close())
  const { port } = silent.address() as { port: number }
  const hub = await startHub({ storeUrl: `redis://127.0.0.1:${port}` })
  const now = Date.now()
  const report = `# ${now},${now},shop,h\n# main\nk:5\n`
  const { status, body } = await call(hub.ports.http, 'POST', '/v1/reports', {}, report)
  expect([status, body.code]).toEqual([503, 'FB_STORE_AWAY'])
  const sensor = await new RawSensor(hub.ports.http).answered()
  expect(sensor.refused.map(({ code }) => code)).toEqual(['FB_STORE_AWAY'])
})

test('a client certificate is an identity on the hub, and a renewed server certificate is used at once', async () => {
  const [first, second, stranger] = [selfSigned(), selfSigned(), selfSigned('somebody')]
  const files = { certFile: join(folder, 'c.pem'), keyFile: join(folder, 'k.pem'), caFile: join(folder, 'ca.pem') }
  const sensorCert = selfSigned('shop.sensors')
  const annCert = selfSigned('ann')
  writeFileSync(files.certFile, first.cert)
  writeFileSync(files.keyFile, first.key, { mode: 0o600 })
  writeFileSync(files.caFile, sensorCert.cert + annCert.cert + stranger.cert)
  const { ports, child } = await startHub({
    logLevel: 'info',
    tls: files,
    tokens: {
      apps: [{ name: 'shop', certificate: 'shop.sensors', services: ['shop'], clusters: ['main'] }],
      people: [{ name: 'ann', role: 'operator', certificate: 'ann' }],
    },
  })
  const open = (hello: object, { cert, key }: { cert: string; key: string }) =>
    new RawSensor(ports.http, hello, { ca: first.cert, cert, key }, 'wss').answered()
  expect((await open({}, sensorCert)).isWelcome).toBe(true)
  expect((await open({ serviceId: 'billing' }, sensorCert)).refused[0]?.code).toBe('FB_SCOPE_REFUSED')
  expect((await open({}, stranger)).isWelcome).toBe(false)
  expect((await open({}, annCert)).isWelcome).toBe(false)
  const ask = (who: { cert: string; key: string }, ca: string) =>
    new Promise<number | string>((resolve) => {
      const options = {
        host: '127.0.0.1',
        port: ports.http,
        path: '/v1/overview',
        agent: false,
        ca,
        cert: who.cert,
        key: who.key,
      }
      request(options, (response) => resolve(response.resume().statusCode!))
        .on('error', (error) => resolve(error.message))
        .end()
    })
  expect([await ask(annCert, first.cert), await ask(stranger, first.cert), await ask(sensorCert, first.cert)]).toEqual([
    200, 401, 401,
  ])
  writeFileSync(files.keyFile, second.key)
  writeFileSync(files.certFile, second.cert)
  await waitFor(async () => (await ask(annCert, second.cert)) === 200, { timeoutMs: 10_000 })
  // An authority that is trusted no more: who is connected by it goes, who is not stays; a file half written says nothing.
  const who = (one: { cert: string; key: string }) => ({ ca: second.cert, cert: one.cert, key: one.key })
  const sensor = await new RawSensor(ports.http, {}, who(sensorCert), 'wss').answered()
  const page = new WebSocket(`wss://127.0.0.1:${ports.http}/v1/live`, who(annCert))
  await new Promise((resolve) => page.once('message', resolve))
  writeFileSync(files.caFile, '')
  await waitFor(() => child.output().includes('contains no certificate'), { timeoutMs: 10_000 })
  expect([sensor.closed, page.readyState]).toEqual([undefined, WebSocket.OPEN])
  writeFileSync(files.caFile, annCert.cert)
  await waitFor(() => sensor.closed !== undefined, { timeoutMs: 10_000 })
  expect(page.readyState).toBe(WebSocket.OPEN)
  expect(await ask(annCert, second.cert)).toBe(200)
  page.close()
})
