import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MetricFamily } from '@firebreak/core/metrics'
import type { FirebreakProxy, ProxyOptions } from '@firebreak/proxy'
import {
  freePort,
  makeAuthority,
  redisProgram,
  startChild,
  startCluster,
  startRedis,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FakeRedis, slotsOf } from './fake-redis.ts'
import { ProxyStage } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

let stage: ProxyStage
let told: string[]
beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
beforeEach(() => {
  told = []
})
afterEach(() => stage.clear())

const logger = {
  info: (_: object, message: string) => void told.push(`info ${message}`),
  warn: (_: object, message: string) => void told.push(`warn ${message}`),
}

function start(options: Partial<ProxyOptions>): Promise<FirebreakProxy> {
  return stage.start({ metricsPort: 0, connectWaitMs: 200, logger, ...options })
}

/** The figures of a family by the label's value, all threads together. */
async function figures(proxy: FirebreakProxy, name: string, label: string): Promise<Record<string, number>> {
  const family = (await proxy.families()).find((one: MetricFamily) => one.name === `firebreak_proxy_${name}`)!
  const sums: Record<string, number> = {}
  for (const point of family.points) {
    const value = 'value' in point ? point.value : point.count
    sums[point.labels[label]!] = (sums[point.labels[label]!] ?? 0) + value
  }
  return sums
}

async function ready({ metricsPort }: FirebreakProxy): Promise<{ status: number; body: string }> {
  const response = await fetch(`http://127.0.0.1:${metricsPort}/readyz`)
  return { status: response.status, body: await response.text() }
}

describe('a server that never answered may speak TLS where the proxy does not', () => {
  test('and the other way round', async () => {
    const folder = temporaryFolder('tls-hint')
    const authority = makeAuthority(folder)
    const { certFile, keyFile } = authority.issue('localhost')
    const tlsPort = await freePort()
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', authority.caFile]
    const server = startChild(redisProgram(), ['--port', '0', '--tls-port', String(tlsPort), ...files, '--save', ''])
    await server.printed(/[Rr]eady to accept/)
    await start({ upstream: `redis://127.0.0.1:${tlsPort}`, mode: 'single' })
    await waitFor(() => told.length > 0)
    expect(told[0]).toContain('. If it uses TLS, write rediss:// in the address')
    expect(told[0]).toContain('all requests that need it fail until it recovers')
    await server.stop()
    told = []
    const plain = await startRedis()
    await start({ upstream: `rediss://127.0.0.1:${plain.port}`, mode: 'single' })
    await waitFor(() => told.length > 0)
    expect(told[0]).toContain('. If it does not use TLS, write redis:// in the address')
    await plain.stop()
  })

  test('but not one that went away', async () => {
    const redis = await startRedis()
    const proxy = await start({ upstream: redis.url, mode: 'single' })
    await waitFor(async () => (await ready(proxy)).status === 200)
    await redis.stop()
    await waitFor(() => told.length > 0)
    expect(told[0]).not.toContain('TLS')
  })
})

test('where a node of a cluster is away, only requests for its keys fail, and the warning says so', async () => {
  const cluster = await startCluster()
  const proxy = await start({ upstream: `redis://127.0.0.1:${cluster.nodes[0]!.port}`, mode: 'cluster' })
  await waitFor(async () => (await ready(proxy)).status === 200)
  await cluster.nodes[2]!.stop()
  await waitFor(() => told.length > 0)
  expect(told[0]).toContain(`Redis at 127.0.0.1:${cluster.nodes[2]!.port} is unreachable`)
  expect(told[0]).toContain(
    'requests for the keys that it holds fail until it recovers or another node takes them over',
  )
  await cluster.stop()
})

describe.each([
  ['net', 1],
  ['raw', 1],
  ['net', 2],
] as const)('over %s with %i thread(s)', (transport, workers) => {
  test('a Redis that is away at the start is told once, and that it has come', async () => {
    const port = await freePort()
    const node = `127.0.0.1:${port}`
    const proxy = await start({ upstream: `redis://${node}`, mode: 'single', transport, workers })
    await waitFor(() => told.length > 0)
    expect(told).toEqual([expect.stringMatching(`^warn Redis at ${node} is unreachable \\(.+\\)`)])
    expect(await figures(proxy, 'upstream_up', 'node')).toEqual({ [node]: 0 })
    expect(await ready(proxy)).toEqual({ status: 503, body: `no Redis answers; away: ${node}\n` })
    const server = await startRedis({ port })
    stage.onClear(() => server.stop())
    await waitFor(() => told.length > 1)
    expect(told.slice(1)).toEqual([expect.stringMatching(`^info Redis at ${node} recovered after `)])
    await waitFor(async () => (await ready(proxy)).body === 'ok\n')
    await waitFor(async () => (await figures(proxy, 'upstream_up', 'node'))[node] === workers)
  })
})

test('a Redis that goes is told, and that it is back, with the connections that were lost', async () => {
  let server = await startRedis()
  stage.onClear(() => server.stop())
  const node = `127.0.0.1:${server.port}`
  const proxy = await start({ upstream: server.url })
  const redis = await stage.client(proxy)
  expect(await redis.ask('SET', 'k', 'v')).toBe('+OK\r\n')
  await waitFor(async () => (await ready(proxy)).status === 200)
  expect(await figures(proxy, 'upstream_lost_total', 'node')).toEqual({ [node]: 0 })
  expect(await redis.ask('FIREBREAK', 'INFO')).toContain('firebreak_upstream_away:0\r\n')
  await server.stop()
  await waitFor(() => told.length > 0)
  expect(told).toEqual([expect.stringContaining(`warn Redis at ${node} is unreachable (`)])
  expect((await figures(proxy, 'upstream_lost_total', 'node'))[node]).toBeGreaterThan(0)
  expect(await redis.ask('FIREBREAK', 'INFO')).toContain('firebreak_upstream_away:1\r\n')
  server = await server.restart()
  await waitFor(() => told.length > 1)
  expect(told[1]).toContain(`info Redis at ${node} recovered`)
})

test('a Redis that nobody is connected to is asked too', async () => {
  const server = await startRedis()
  stage.onClear(() => server.stop())
  const proxy = await start({ upstream: server.url })
  await waitFor(async () => (await ready(proxy)).status === 200)
  await server.stop()
  await waitFor(async () => (await ready(proxy)).status === 503, { timeoutMs: 20_000 })
})

test("the proxy's own wrong password is told with the server's words and without the password", async () => {
  const locked = await startRedis({ args: ['--requirepass', 'right'] })
  stage.onClear(() => locked.stop())
  await start({ upstream: `redis://:secret-wrong@127.0.0.1:${locked.port}`, mode: 'single' })
  await waitFor(() => told.length > 0)
  expect(told[0]).toContain('(it answered WRONGPASS')
  expect(told.join()).not.toContain('secret-wrong')
})

test("a client's wrong password, a missing one and a killed connection are no sign that Redis is away", async () => {
  const locked = await startRedis({ args: ['--requirepass', 'right'] })
  stage.onClear(() => locked.stop())
  const proxy = await start({ upstream: locked.url, mode: 'single' })
  const redis = await stage.client(proxy)
  expect(await redis.ask('AUTH', 'wrong')).toMatch(/^-WRONGPASS/)
  expect(await redis.ask('GET', 'k')).toMatch(/^-NOAUTH/)
  expect(await redis.ask('AUTH', 'right')).toBe('+OK\r\n')
  await waitFor(async () => (await ready(proxy)).status === 200)
  const direct = await RawClient.connect(locked.port)
  stage.onClear(() => direct.close())
  await direct.ask('AUTH', 'right')
  const asked = async () =>
    Number(/cmdstat_ping:.*rejected_calls=(\d+)/.exec(await direct.ask('INFO', 'COMMANDSTATS'))?.[1])
  const before = await asked()
  await direct.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await waitFor(async () => (await asked()) > before)
  await waitFor(async () => (await ready(proxy)).status === 200)
  expect(Object.values(await figures(proxy, 'upstream_lost_total', 'node'))[0]).toBeGreaterThan(0)
  expect(told).toEqual([])
})

test('a certificate that is not trusted is told', async () => {
  const folder = temporaryFolder('proxy')
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', [...request, '-subj', '/CN=localhost', '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const front = await stage.start({ tls: { key: readFileSync(key), cert: readFileSync(cert) } })
  await start({ upstream: `rediss://127.0.0.1:${front.port}`, mode: 'single' })
  await waitFor(() => told.length > 0)
  expect(told[0]).toMatch(/is unreachable \(self-signed certificate/)
})

test('error replies are counted by node and code, those of a cluster that the proxy follows too', async () => {
  const nodes: FakeRedis[] = []
  const answer = (index: number) => (words: string[]) => {
    if (words[0] === 'INFO') return '$20\r\nredis_mode:cluster\r\n\r\n'
    if (words[0] === 'CLUSTER') return slotsOf(nodes.map(({ port }) => port))
    if (words[0] === 'PING') return '+PONG\r\n'
    if (words[0] === 'INCR') return '-WRONGTYPE not that\r\n'
    if (words[0] === 'GET' && words[1] === 'a' && index === 1) return `-MOVED 15495 127.0.0.1:${nodes[0]!.port}\r\n`
    return '+OK\r\n'
  }
  for (const index of [0, 1]) nodes.push(await stage.fake(answer(index)))
  const [first, second] = nodes.map(({ port }) => `127.0.0.1:${port}`) as [string, string]
  const proxy = await start({ upstream: `redis://${first}`, mode: 'cluster' })
  const redis = await stage.client(proxy)
  expect(await redis.ask('GET', 'a')).toBe('+OK\r\n')
  for (let n = 0; n < 3; n++) expect(await redis.ask('INCR', 'foo{b}')).toBe('-WRONGTYPE not that\r\n')
  expect(await figures(proxy, 'error_replies_total', 'code')).toEqual({ MOVED: 1, WRONGTYPE: 3 })
  expect(await figures(proxy, 'error_replies_total', 'node')).toEqual({ [second]: 1, [first]: 3 })
  expect(await figures(proxy, 'request_ms', 'node')).toEqual({ [first]: 4, [second]: 1 })
  await waitFor(async () => Object.values(await figures(proxy, 'upstream_up', 'node')).join() === '1,1')
  await nodes[1]!.close()
  await waitFor(() => told.length > 0)
  // The keys of the other node are served: the proxy is of use.
  expect(await ready(proxy)).toEqual({ status: 200, body: `ok; away: ${second}\n` })
})
