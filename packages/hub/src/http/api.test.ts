import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import {
  type ApiError,
  type HistoryEvent,
  type HostView,
  type HubView,
  type KeyDetail,
  type Overview,
  type TransportView,
  version,
} from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hub, startHub } from '../start-hub.ts'
import { noCounts } from '../testing/shared-hubs.ts'
import { TestSensor } from '../testing/test-sensor.ts'

let hub: Hub
const consoleFolder = temporaryFolder('console')
const script = 'document.title'

beforeAll(async () => {
  mkdirSync(join(consoleFolder, 'assets'))
  writeFileSync(join(consoleFolder, 'index.html'), '<title>console</title>')
  writeFileSync(join(consoleFolder, 'assets', 'app-1.js'), script)
  writeFileSync(join(consoleFolder, 'assets', 'app-1.js.gz'), gzipSync(script))
  writeFileSync(join(consoleFolder, '..', 'firebreak-secret.txt'), 'secret')
  hub = await startHub({ logLevel: 'silent', consoleFolder, maxReportBytes: 100_000 })
})

afterAll(() => hub.close())

async function call<Answer>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const isText = typeof body === 'string'
  const response = await fetch(`${hub.url}${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': isText ? 'text/plain' : 'application/json' }), ...headers },
    ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Answer }
}

test('rules are put, listed, replaced and deleted, each with an audit entry of before and after', async () => {
  const put = await call<{ rule: Rule }>('PUT', '/v1/rules/shop', { prefix: 'shop_', threshold: 10 })
  expect(put.body.rule).toMatchObject({ id: 'shop', pattern: { kind: 'prefix', prefix: 'shop_' } })
  expect((await call<{ rule: Rule }>('PUT', '/v1/rules/shop', { ...put.body.rule, priority: 3 })).status).toBe(200)
  const list = await call<{ rules: Rule[]; version: number }>('GET', '/v1/rules')
  expect(list.body.rules.map(({ id, priority }) => [id, priority])).toEqual([['shop', 3]])
  expect((await call<{ rule: Rule }>('GET', '/v1/rules/shop')).body.rule.priority).toBe(3)
  expect((await call('DELETE', '/v1/rules/shop')).status).toBe(204)
  expect((await call<ApiError>('DELETE', '/v1/rules/shop')).body).toMatchObject({ code: 'FB_NOT_FOUND', field: 'id' })
  const audit = await call<{ entries: { what: string; before: Rule | null; after: Rule | null }[] }>('GET', '/v1/audit')
  expect(
    audit.body.entries.slice(0, 3).map(({ what, before, after }) => [what, before?.priority, after?.priority]),
  ).toEqual([
    ['delete rule shop', 3, undefined],
    ['change rule shop', 0, 3],
    ['add rule shop', undefined, 0],
  ])
})

test.each([
  ['PUT', '/v1/rules/x', { key: 'a', treshold: 1 }, 400, 'FB_RULE_INVALID', 'treshold'],
  ['PUT', '/v1/rules/x', { key: 'a', threshold: 1, strategi: 'Observe' }, 400, 'FB_RULE_INVALID', 'strategi'],
  ['PUT', '/v1/rules/x', { id: 'y', key: 'a', threshold: 1 }, 400, 'FB_RULE_INVALID', 'id'],
  ['PUT', '/v1/rules/x', { regex: '(a)\\1', threshold: 1 }, 400, 'FB_RULE_INVALID', 'regex'],
  ['POST', '/v1/switch', { isOf: true }, 400, 'FB_INPUT_INVALID', 'isOff'],
  ['POST', '/v1/switch', { isOff: true, x: 1 }, 400, 'FB_INPUT_INVALID', 'x'],
  ['GET', '/v1/keys?limit=0', undefined, 400, 'FB_INPUT_INVALID', 'query.limit'],
  ['GET', '/v1/keys?limt=5', undefined, 400, 'FB_INPUT_INVALID', 'query.limt'],
  ['GET', '/v1/keys/main/100%25', undefined, 400, 'FB_INPUT_INVALID', 'key'],
  ['GET', '/v1/keys/main/none', undefined, 404, 'FB_NOT_FOUND', 'key'],
  ['GET', '/v1/nothing', undefined, 404, 'FB_NOT_FOUND', undefined],
  ['POST', '/v1/nothing', {}, 404, 'FB_NOT_FOUND', undefined],
  ['POST', '/v1/rules/x/dry-run', { key: 'a', treshold: 4 }, 400, 'FB_RULE_INVALID', 'treshold'],
] as const)(
  '%s %s with %j is answered with a code, a sentence and the field',
  async (method, path, body, status, code, field) => {
    const answer = await call<ApiError>(method, path, body)
    expect([answer.status, answer.body.code, answer.body.field]).toEqual([status, code, field])
    expect(answer.body.message.length).toBeGreaterThan(5)
  },
)

test('one key is limited for a while by a rule of its own, which is audited and undone', async () => {
  const path = '/v1/keys/main/user%253A1/action'
  const before = Date.now()
  const put = await call<{ rule: Rule }>('PUT', path, { action: 'limit', limit: 50, forMs: 60_000 })
  expect(put.body.rule).toMatchObject({
    redisClusterId: 'main',
    pattern: { kind: 'exact', keys: ['user:1'] },
    levels: [{ enter: 1, strategies: [{ strategy: 'RateLimit', limit: 50, windowMs: 1000 }] }],
  })
  expect(put.body.rule.until).toBeGreaterThanOrEqual(before + 60_000)
  const ignored = await call<{ rule: Rule }>('PUT', path, { action: 'ignore' })
  expect(ignored.body.rule.id).toBe(put.body.rule.id)
  expect((await call('DELETE', path)).status).toBe(204)
  expect((await call<ApiError>('DELETE', path)).body).toMatchObject({ code: 'FB_NOT_FOUND', field: 'key' })
  const audit = await call<{ entries: { what: string }[] }>('GET', '/v1/audit')
  const { id } = put.body.rule
  expect(audit.body.entries.slice(0, 3).map(({ what }) => what)).toEqual(
    ['delete', 'change', 'add'].map((verb) => `${verb} rule ${id}`),
  )
  expect((await call<ApiError>('PUT', path, { action: 'limit' })).body.field).toBe('limit')
})

test('a key of 400 characters, or of signs that take nine in an address, has the same routes as any other', async () => {
  await call('PUT', '/v1/rules/long', { prefix: 'long:', threshold: 100, strategy: 'Observe' })
  const sensor = await TestSensor.connect(hub.url)
  for (const key of [`long:${'k'.repeat(395)}`, `long:${'热'.repeat(130)}`]) {
    sensor.report({ [key]: 500 })
    const path = `/v1/keys/main/${encodeURIComponent(encodeURIComponent(key))}`
    await waitFor(async () => (await call('GET', path)).status === 200)
    expect((await call<KeyDetail>('GET', path)).body.ruleId).toBe('long')
    const action = await call<{ rule: Rule }>('PUT', `${path}/action`, { action: 'cache', forMs: 60_000 })
    expect(action.body.rule.pattern).toEqual({ kind: 'exact', keys: [key] })
    expect((await call('DELETE', `${path}/action`)).status).toBe(204)
  }
  sensor.close()
})

test('text reports of both versions count, and refused ones say line and reason', async () => {
  // A window that a slow machine does not outlast.
  await call('PUT', '/v1/rules/text', { prefix: 't', threshold: 100, windowMs: 30_000 })
  const now = Date.now()
  expect((await call('POST', '/v1/reports', `# ${now},${now},shop,h1\n# main\nt1:60,t%3A2:5\n`)).status).toBe(204)
  const two = `# ${now},${now},shop,h2,process-9\n# main\nt1:60:10:900\n`
  expect((await call('POST', '/v1/reports', two, { 'content-type': 'text/plain; v=2' })).status).toBe(204)
  const detail = await call<KeyDetail>('GET', '/v1/keys/main/t1')
  expect(detail.body).toMatchObject({
    state: 'hot',
    hosts: 2,
    reason: 'hot because rule `text`: 120 over 30 s (4/s) ≥ 100',
  })
  expect((await call<KeyDetail>('GET', `/v1/keys/main/${encodeURIComponent('t%3A2')}`)).body.key).toBe('t%3A2')
  const broken = await call<ApiError>('POST', '/v1/reports', `# ${now},${now},shop,h1\n# main\nt1\n`)
  expect([broken.status, broken.body.code, broken.body.field]).toEqual([400, 'FB_REPORT_REFUSED', 'line 3'])
  const unknown = await call<ApiError>('POST', '/v1/reports', two, { 'content-type': 'text/plain; v=3' })
  expect(unknown.body.message).toContain('version 3 is not supported')
  const large = await call<ApiError>(
    'POST',
    '/v1/reports',
    `# ${now},${now},s,h\n# main\n${'k:1,'.repeat(50_000)}k:1\n`,
  )
  expect([large.status, large.body.code]).toEqual([413, 'FB_REPORT_REFUSED'])
  const old = await call<ApiError>('POST', '/v1/reports', `# ${now - 60_000},${now},shop,h1\n# main\nt1:1\n`)
  expect([old.status, old.body.message]).toEqual([422, expect.stringMatching(/is 60\d{3} ms old/)])
  const { ingest } = (await call<Overview>('GET', '/v1/overview')).body
  expect(ingest.refused).toEqual({ unparsable: 1, version: 1, 'too-large': 1, expired: 1 })
})

test('a report of another content type is told which are right, and times in seconds are refused', async () => {
  const now = Date.now()
  const report = `# ${now},${now},shop,h1\n# main\nk:1\n`
  for (const type of ['application/x-www-form-urlencoded', 'application/json', 'application/xml']) {
    const wrong = await call<ApiError>('POST', '/v1/reports', report, { 'content-type': type })
    expect([wrong.status, wrong.body.field, wrong.body.message]).toEqual([
      415,
      'content-type',
      `the content-type is "${type}"; this call takes text/plain, or text/plain; v=2 (curl: -H 'content-type: text/plain')`,
    ])
  }
  const json = await call<ApiError>('PUT', '/v1/rules/typed', '{}', { 'content-type': 'text/plain' })
  expect([json.status, json.body.message]).toEqual([415, expect.stringContaining('this call takes application/json')])
  const seconds = Math.floor(now / 1000)
  const early = await call<ApiError>('POST', '/v1/reports', `# ${seconds},${seconds},shop,h1\n# main\nk:1\n`)
  expect([early.status, early.body.code, early.body.field]).toEqual([400, 'FB_REPORT_REFUSED', 'line 1'])
  expect(early.body.message).toContain(`collectTs is "${seconds}", which is seconds; it must be milliseconds`)
})

test('an action on an unknown cluster is refused with those that are known, and undone with or without a type', async () => {
  const now = Date.now()
  await call('POST', '/v1/reports', `# ${now},${now},shop,h1\n# main\nk:1\n# second\nk:1\n`)
  const wrong = await call<ApiError>('PUT', '/v1/keys/mian/k/action', { action: 'cache' })
  expect([wrong.status, wrong.body.field, wrong.body.message]).toEqual([
    400,
    'cluster',
    expect.stringMatching(/^unknown cluster "mian": no sensor and no rule has named it; there are main, second$/),
  ])
  expect((await call('PUT', '/v1/keys/second/k/action', { action: 'cache' })).status).toBe(200)
  const typed = { method: 'DELETE', headers: { 'content-type': 'application/json' } }
  expect((await fetch(`${hub.url}/v1/keys/second/k/action`, typed)).status).toBe(204)
  // Where a body is needed, an empty one is still told of.
  expect((await fetch(`${hub.url}/v1/switch`, { ...typed, method: 'POST' })).status).toBe(400)
})

test('a text report with a sequence counts once', async () => {
  await call('PUT', '/v1/rules/once', { key: 'once', threshold: 100 })
  const now = Date.now()
  const report = `# ${now},${now},shop,h3\n# main\nonce:60\n`
  for (let n = 0; n < 3; n++) await call('POST', '/v1/reports', report, { 'firebreak-sequence': '5' })
  expect((await call<KeyDetail>('GET', '/v1/keys/main/once')).body.state).not.toBe('hot')
})

test('table, hosts, history, slots and alarms tell of a hot key', async () => {
  await call('PUT', '/v1/rules/all', { prefix: 'all', threshold: 100 })
  const sensor = await TestSensor.connect(hub.url, { hostId: 'h9' })
  sensor.report({ all1: 500 })
  await waitFor(() => sensor.table.get('main', 'all1'))
  const table = await call<{ strategies: { strategy: string; keys: string[] }[] }>('GET', '/v1/table')
  expect(table.body.strategies.find(({ keys }) => keys.includes('all1'))?.strategy).toBe('LocalCache')
  const hosts = await call<{ hosts: { hostId: string }[] }>('GET', '/v1/hosts')
  expect(hosts.body.hosts.find(({ hostId }) => hostId === 'h9')).toMatchObject({ serviceId: 'shop', agent: 'test/1' })
  const events = await waitFor(async () => {
    const { body } = await call<{ events: HistoryEvent[] }>('GET', '/v1/history?limit=50')
    const found = body.events.filter(({ key }) => key === 'all1')
    return found.length > 0 && found
  })
  expect(events.at(-1)).toMatchObject({ kind: 'hot', ruleId: 'all', redisClusterId: 'main' })
  await waitFor(async () => (await call<{ slots: unknown[] }>('GET', '/v1/slots')).body.slots.length > 0)
  expect((await call<{ alarms: unknown[] }>('GET', '/v1/alarms')).status).toBe(200)
  sensor.close()
})

test('of each process it is told how its reports and its table come, and the transports sum them up', async () => {
  const hostOf = async (id: string) =>
    (await call<{ hosts: HostView[] }>('GET', '/v1/hosts')).body.hosts.find(({ hostId }) => hostId === id)
  const transport = async (kind: string) =>
    (await call<{ transports: TransportView[] }>('GET', '/v1/transports')).body.transports.find(
      (one) => one.kind === kind,
    )
  const before = (await transport('http'))!.reports!
  const sensor = await TestSensor.connect(hub.url, { hostId: 'by-socket', serviceId: 'linked' })
  sensor.report({ way1: 5 })
  const { epoch, version: tableVersion } = sensor.table
  const status = { sentAt: Date.now(), epoch, version: tableVersion, isOff: false, keys: [], watchers: [] }
  sensor.send('status', { ...status, cachedBytes: 4096, counters: { ...noCounts, errors: 2 } })
  await waitFor(async () => (await hostOf('by-socket'))?.cachedBytes === 4096)
  expect(await hostOf('by-socket')).toMatchObject({ reportsBy: 'websocket', tablesBy: 'websocket', failures: 2 })
  // Who came before these figures were sent tells nothing of them.
  sensor.send('status', { ...status, counters: noCounts })
  await waitFor(async () => (await hostOf('by-socket'))?.cachedBytes === null)
  const now = Date.now()
  // Two seconds old when it was sent.
  const text = `# ${now - 2000},${now},posting,by-http\n# main\nway2:5\n`
  await call('POST', '/v1/reports', text, { 'content-type': 'text/plain' })
  expect(await hostOf('by-http')).toMatchObject({ agent: 'http', reportsBy: 'http', tablesBy: null, cachedBytes: null })
  expect((await hostOf('by-http'))!.reportLagMs).toBeGreaterThanOrEqual(2000)
  // A process of the service asks for its table.
  await call('GET', '/v1/table?service=posting&instance=one')
  expect(await hostOf('by-http')).toMatchObject({ tablesBy: 'http', isConnected: false })
  expect(await transport('http')).toMatchObject({ isLive: true, carries: 'both', reports: before + 1 })
  expect((await transport('http'))!.lagMs).toBeGreaterThanOrEqual(2000)
  expect((await transport('websocket'))!.users).toBeGreaterThan(0)
  expect(await transport('kafka')).toBeUndefined()
  const { hubs } = (await call<{ hubs: HubView[] }>('GET', '/v1/hubs')).body
  expect(hubs).toMatchObject([{ isThis: true, version, isAlone: false }])
  expect(hubs[0]!.memoryBytes).toBeGreaterThan(1_000_000)
  expect(hubs[0]!.startedAt).toBeLessThan(now)
  sensor.close()
})

test('the OpenAPI document names every route of the hub, from the schemas that check the input', async () => {
  const { body } = await call<{
    openapi: string
    paths: Record<string, Record<string, { parameters: { name: string }[] }>>
  }>('GET', '/openapi.json')
  expect(body.openapi).toBe('3.1.0')
  expect(
    Object.entries(body.paths)
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`))
      .sort(),
  ).toEqual(
    [
      'delete /v1/alarms/{id}/acknowledgement',
      'delete /v1/alarms/{id}/silence',
      'delete /v1/alert-routes/{name}',
      'delete /v1/barred/{id}',
      'delete /v1/finders/{id}',
      'delete /v1/keys/{cluster}/{key}/action',
      'delete /v1/keys/{cluster}/{key}/prewarm',
      'delete /v1/prewarm/{id}',
      'delete /v1/rules/{id}',
      'delete /v1/tokens/{id}',
      'get /v1/alarms',
      'get /v1/alert-deliveries',
      'get /v1/alert-routes',
      'get /v1/audit',
      'get /v1/autopilot',
      'get /v1/barred',
      'get /v1/finders',
      'get /v1/finders/{id}',
      'get /v1/forecast',
      'get /v1/history',
      'get /v1/history/events',
      'get /v1/history/heatmap',
      'get /v1/history/settings',
      'get /v1/hosts',
      'get /v1/hubs',
      'get /v1/key-groups',
      'get /v1/keys',
      'get /v1/keys/{cluster}/{key}',
      'get /v1/overview',
      'get /v1/prewarm',
      'get /v1/reports',
      'get /v1/rules',
      'get /v1/rules/versions',
      'get /v1/rules/versions/{version}',
      'get /v1/rules/{id}',
      'get /v1/slots',
      'get /v1/staleness',
      'get /v1/table',
      'get /v1/tokens',
      'get /v1/transports',
      'get /v1/watchers',
      'post /v1/alarms',
      'post /v1/alert-routes/{name}/test',
      'post /v1/barred',
      'post /v1/finders',
      'post /v1/keys/{cluster}/{key}/inspection',
      'post /v1/prewarm',
      'post /v1/reports',
      'post /v1/rules/dry-run',
      'post /v1/rules/rollback',
      'post /v1/rules/{id}/rollout',
      'post /v1/rules/{id}/dry-run',
      'post /v1/switch',
      'post /v1/tokens',
      'post /v1/tokens/{id}/rotate',
      'put /v1/alarms/{id}/acknowledgement',
      'put /v1/alarms/{id}/silence',
      'put /v1/alert-routes/{name}',
      'put /v1/forecast/settings',
      'put /v1/history/settings',
      'put /v1/keys/{cluster}/{key}/action',
      'put /v1/rules/{id}',
    ].sort(),
  )
  expect(body.paths['/v1/keys']!['get']!.parameters.map(({ name }) => name)).toEqual([
    'state',
    'match',
    'cluster',
    'group',
    'service',
    'rule',
    'strategy',
    'handling',
    'limit',
    'offset',
    'sort',
  ])
  expect(body.paths['/v1/switch']!['post']).toMatchObject({
    requestBody: { content: { 'application/json': { schema: { properties: { isOff: { type: 'boolean' } } } } } },
  })
})

test('health and metrics answer; no key is a label, groups are capped', async () => {
  expect((await call('GET', '/livez')).body).toEqual({ isLive: true })
  expect((await call('GET', '/readyz')).body).toEqual({ isReady: true })
  const sensor = await TestSensor.connect(hub.url)
  sensor.report(
    Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`group${String.fromCharCode(97 + (n % 26))}${n}:secret-${n}`, n + 1]),
    ),
  )
  const text = await waitFor(async () => {
    const metrics = await (await fetch(`${hub.url}/metrics`)).text()
    return metrics.includes('group="group') && metrics
  })
  expect(text).toMatch(/^firebreak_reports_total \d+$/m)
  expect(text).toMatch(/^firebreak_sensors 1$/m)
  expect(text).toMatch(/^firebreak_reports_refused_total\{cause="version"\} 1$/m)
  expect(text).not.toContain('secret')
  expect(text.match(/^firebreak_group_accesses_per_second\{/gm)!.length).toBeLessThanOrEqual(21)
  sensor.close()
})

test('the console is served from its folder and nothing beyond it', async () => {
  const page = await fetch(`${hub.url}/`)
  expect([await page.text(), page.headers.get('content-type')]).toEqual([
    '<title>console</title>',
    'text/html; charset=utf-8',
  ])
  expect(await (await fetch(`${hub.url}/keys`)).text()).toBe('<title>console</title>')
  const asset = await fetch(`${hub.url}/assets/app-1.js`)
  expect(asset.headers.get('cache-control')).toContain('immutable')
  const encodingOf = async (accept: string) => {
    const answer = await fetch(`${hub.url}/assets/app-1.js`, { headers: { 'accept-encoding': accept } })
    expect([await answer.text(), answer.headers.get('vary')]).toEqual([script, 'accept-encoding'])
    return answer.headers.get('content-encoding')
  }
  expect([await encodingOf('br, gzip'), await encodingOf('identity'), await encodingOf('gzip;q=0, br')]).toEqual([
    'gzip',
    null,
    null,
  ])
  for (const path of [
    '/../firebreak-secret.txt',
    '/%2e%2e/firebreak-secret.txt',
    '/..%2ffirebreak-secret.txt',
    '/assets/none.js',
  ]) {
    expect([path, (await fetch(`${hub.url}${path}`)).status]).toEqual([path, 404])
  }
})

test('a call that is made the wrong way is told the right one', async () => {
  const line = `# ${Date.now()},${Date.now()},shop,host-1\n# main\nk:1\n`
  const wrongMethod = await call<ApiError>('PUT', '/v1/reports', line)
  expect([wrongMethod.status, wrongMethod.body.message]).toEqual([
    404,
    'there is no PUT /v1/reports; it takes GET and POST',
  ])
  expect((await call<ApiError>('POST', '/v1/report', line)).body.message).toBe('there is no POST /v1/report')
})
