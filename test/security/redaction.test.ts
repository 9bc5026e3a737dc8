import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { peek, protect, unprotect } from '@firebreak/client'
import { type Hub, openHubServices, startHub } from '@firebreak/hub'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import type { FastifyBaseLogger } from 'fastify'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exportCommand } from '../../packages/cli/src/commands/export.ts'
import { call } from './call.ts'

const redactSecret = 'a secret of the whole fleet'
/** In every key: what must never be seen outside. */
const secret = 'ann4711'
const hotKey = `user:${secret}:cart`

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

describe.each([['hash'], ['user:*:*']])('with keys redacted by %s', (redaction) => {
  const setting = { redactKeys: [redaction], redactSecret }
  const folder = temporaryFolder('redaction')
  const ends: (() => unknown)[] = []
  let written = ''
  let hub: Hub
  let proxy: FirebreakProxy
  let client: Redis

  const keep = () =>
    new Writable({
      write(chunk, _encoding, done) {
        written += chunk
        done()
      },
    })

  beforeAll(async () => {
    const receiver = createServer((request, response) => {
      request.on('data', (chunk) => (written += chunk))
      request.on('end', () => response.end())
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    ends.push(() => receiver.close())
    const { port: hookPort } = receiver.address() as { port: number }
    const services = await openHubServices({ dataFolder: join(folder, 'services') })
    ends.push(() => services.close())
    // Patterns leave what rules go by.
    const keys = redaction === 'hash' ? { glob: '*' } : { prefix: 'user:' }
    hub = await startHub({
      ...setting,
      dataFolder: join(folder, 'hub'),
      logger: pino({ level: 'trace' }, keep()) as unknown as FastifyBaseLogger,
      alarmWebhooks: [`http://127.0.0.1:${hookPort}`],
      plugins: services.plugins,
      settleMs: 0,
      settleJitterMs: 0,
      initialRules: [{ id: 'all', ...keys, threshold: 20, strategy: 'LocalCache' }],
    })
    ends.push(() => hub.close())
    const shield = { ...setting, hubs: [hub.url], redisClusterId: 'main', tableFile: join(folder, 'proxy-table.json') }
    const logger = { info: note, warn: note }
    const upstream = `redis://127.0.0.1:${redis.port}`
    proxy = await startProxy({ upstream, port: 0, metricsPort: 0, shield: { ...shield, serviceId: 'proxy' }, logger })
    ends.push(() => proxy.close())
    client = new Redis(redis.port)
    const onWarning = (warning: object) => note(warning, '')
    const own = { hubs: [hub.url], serviceId: 'sdk', redisClusterId: 'main', tableFile: join(folder, 'sdk-table.json') }
    protect(client, { ...setting, ...own, onWarning })
    ends.push(() => {
      unprotect(client)
      client.disconnect()
    })
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  function note(data: object, message: string): void {
    written += `${JSON.stringify(data)} ${message}\n`
  }

  const post = async (method: string, path: string, body?: unknown) => {
    const { status } = await call(hub.port, method, path, {}, body)
    expect(status, path).toBeLessThan(300)
  }

  test('decisions are made and followed by proxy and SDK as with real names', async () => {
    const direct = new Redis(redis.port)
    await direct.set(hotKey, 'value')
    direct.disconnect()
    const through = new Redis(proxy.port)
    ends.push(() => through.disconnect())
    await waitFor(async () => {
      await Promise.all(Array.from({ length: 50 }, () => Promise.all([through.get(hotKey), client.get(hotKey)])))
      const [peeked] = (await through.call('FIREBREAK', 'PEEK', hotKey)) as string[]
      return peeked === 'value' && (await peek(client, hotKey)) === 'value'
    })
  })

  test('what comes in by real names is kept by others: reports, rules, actions, pre-warming, findings, locks', async () => {
    const now = Date.now()
    await post('POST', '/v1/reports', `# ${now},${now},raw,h\n# main\nuser%3A${secret}%3Araw:500\n`)
    await post('PUT', '/v1/rules/one', { keys: [`user:${secret}:rule`], threshold: 5, strategy: 'Observe' })
    await post('PUT', `/v1/keys/main/${encodeURIComponent(encodeURIComponent(hotKey))}/action`, { action: 'cache' })
    // Nobody who gives keys other names can be asked for one; that somebody did is in the audit.
    const asked = `/v1/keys/main/${encodeURIComponent(encodeURIComponent(hotKey))}/inspection`
    expect((await call(hub.port, 'POST', asked, {}, {})).status).toBe(404)
    const at = new Date(now + 3_600_000).toISOString()
    await post('POST', '/v1/prewarm', { redisClusterId: 'main', keys: [`user:${secret}:warm`], services: ['sdk'], at })
    const withValue = { redisClusterId: 'main', keys: ['user:a:b'], services: ['sdk'], values: { 'user:a:b': 'x' } }
    expect((await call(hub.port, 'POST', '/v1/prewarm', {}, withValue)).status).toBe(400)
    const found = { key: `user%3A${secret}%3Afound`, accesses: 5 }
    await post('POST', '/v1/findings', {
      version: 1,
      id: '6f1e2f2e-8d0c-4f2e-9a51-0d3c5f8a7b10',
      kind: 'hot',
      method: 'scan',
      startedAtMs: now,
      tookMs: 1,
      source: [],
      topology: 'standalone',
      isComplete: true,
      scanned: 1,
      keys: [found],
      notes: [],
    })
    const duration = { count: 0, sumMs: 0, maxMs: 0, buckets: [] }
    const none = { acquired: 0, contended: 0, handedOver: 0, refused: 0, released: 0, renewals: 0, renewalErrors: 0 }
    const lost = { expired: 0, taken: 0 }
    await post('POST', '/v1/locks', {
      version: 1,
      serviceId: 'sdk',
      hostId: 'h',
      instanceId: 'i',
      validMs: 60_000,
      held: [],
      waiting: [{ name: `user:${secret}:lock`, kind: 'lock', owner: 'o', waitingMs: 1 }],
      heldCount: 0,
      waitingCount: 1,
      metrics: { ...none, lost, wait: duration, hold: duration },
    })
    const { alarms } = (await call(hub.port, 'GET', '/v1/alarms')).body
    expect(alarms.map(({ id }) => id)).toContain('keys-not-redacted')
  })

  test('no real name is in any answer, metric, log line, webhook, export or file', async () => {
    await hub.core.stored()
    const outputs = new Map<string, string>()
    const { paths } = (await call(hub.port, 'GET', '/openapi.json')).body as unknown as {
      paths: Record<string, object>
    }
    const readable = Object.keys(paths).filter((path) => 'get' in paths[path]! && !path.includes('{'))
    expect(readable.length).toBeGreaterThan(10)
    for (const path of [...readable, '/v1/findings', '/v1/locks', '/v1/table?service=sdk', '/metrics']) {
      outputs.set(path, JSON.stringify((await call(hub.port, 'GET', path)).body))
    }
    outputs.set('proxy /metrics', JSON.stringify((await call(proxy.metricsPort!, 'GET', '/metrics')).body))
    let exported = ''
    const stdout = new Writable({
      write(chunk, _encoding, done) {
        exported += chunk
        done()
      },
    })
    const io = { env: {}, stdin: process.stdin, stdout, stderr: stdout, signal: new AbortController().signal }
    await exportCommand.run(['--hub', hub.url], io)
    outputs.set('export', exported)
    outputs.set('log, webhooks and warnings', written)
    await waitFor(() => /keys-not-redacted/.test(written))
    for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (file.isFile()) outputs.set(file.name, readFileSync(join(file.parentPath, file.name), 'latin1'))
    }
    expect([...outputs.keys()]).toEqual(
      expect.arrayContaining(['/v1/keys', '/v1/history', '/v1/audit', 'hub.sqlite', 'sdk-table.json']),
    )
    const telling = [...outputs].filter(([, text]) => text.includes(secret)).map(([name]) => name)
    expect(telling).toEqual([])
    // And what stands there instead is found: the search looks in the right places.
    const shown = hub.core.outside(hotKey)
    for (const name of ['/v1/history', '/v1/audit', '/v1/rules', 'export']) {
      expect(outputs.get(name), name).toContain(shown.match(/~[0-9a-f]{16}/)![0])
    }
  })
})
