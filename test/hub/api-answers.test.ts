import { protect, shieldOf } from '@firebreak/client'
import { type Hub, startHub } from '@firebreak/hub'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AnswerSchema, schemaProblems } from './schema-problems.ts'

const adminToken = 'admin-token-0123456789'
const appToken = 'app-token-0123456789'
const tokens = {
  apps: [{ name: 'shop', token: appToken, services: ['*'], clusters: ['*'] }],
  people: [{ name: 'adam', role: 'admin', token: adminToken }],
} as const

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>
  readonly components: { readonly schemas: Readonly<Record<string, AnswerSchema>> }
}
type Responses = Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: AnswerSchema }>> }>>

let server: RedisServer
let hub: Hub
let client: Redis
let document: OpenApi
/** Operations whose real answer was compared with its schema. */
const compared = new Set<string>()

beforeAll(async () => {
  server = await startRedis()
  hub = await startHub({
    logLevel: 'silent',
    tokens,
    engines: [`main=${server.url}`],
    initialRules: [{ id: 'shop', prefix: 'shop:', threshold: 20, strategy: 'LocalCache', minHoldMs: 60_000 }],
  })
  document = (await (await fetch(`${hub.url}/openapi.json`, { headers: bearer(adminToken) })).json()) as OpenApi
  client = protect(new Redis(server.port), {
    hubs: [hub.url],
    serviceId: 'shop',
    redisClusterId: 'main',
    token: appToken,
    tableFile: false,
  })
  await client.set('shop:1', 'tea')
  await waitFor(() => hub.core.fleet.hosts.counts().connected === 1)
  // Hot, and reported as handled.
  await waitFor(async () => {
    for (let n = 0; n < 50; n++) await client.get('shop:1')
    const [key] = hub.core.views().keys({ limit: 1, match: 'shop:1' })
    return key?.handling === 'handled' && key.effect !== null
  })
}, 60_000)

afterAll(async () => {
  shieldOf(client)?.close()
  client.disconnect()
  await hub.close()
  await server.stop()
})

function bearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` }
}

/** Calls the hub, and compares its answer with the schema of the document; `values` fill the path's names. */
async function call<Answer>(
  operation: string,
  { values = {}, query = '', body }: { values?: Record<string, string>; query?: string; body?: unknown } = {},
): Promise<Answer> {
  const [method, path] = operation.split(' ') as [string, string]
  const url = path.replace(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(values[name]!))
  const response = await fetch(`${hub.url}${url}${query}`, {
    method,
    headers: { ...bearer(adminToken), ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const { responses } = document.paths[path]![method.toLowerCase()]!
  const schema = responses[String(response.status)]?.content?.['application/json']?.schema
  if (schema === undefined) {
    expect([operation, response.status, text]).toEqual([operation, 204, ''])
    return undefined as Answer
  }
  const answer = JSON.parse(text) as Answer
  expect([operation, schemaProblems(schema, answer, document.components.schemas)]).toEqual([operation, []])
  compared.add(operation)
  return answer
}

const key = { values: { cluster: 'main', key: 'shop:1' } }
const reads = [
  ...['overview', 'keys', 'key-groups', 'hosts', 'hubs', 'audit', 'slots', 'watchers', 'autopilot', 'staleness'],
  ...['rules', 'rules/versions', 'history', 'history/heatmap', 'history/events', 'history/settings', 'reports'],
  ...['forecast', 'prewarm', 'transports', 'alarms', 'alert-routes', 'alert-deliveries', 'finders', 'tokens', 'barred'],
]

test('what a hub answers is as its OpenAPI document says, on every route', async () => {
  await call('POST /v1/barred', { body: { id: 'shop/host-9/1', why: 'a test' } })
  await call('PUT /v1/alert-routes/{name}', {
    values: { name: 'on-call' },
    body: { shape: 'plain', url: 'http://127.0.0.1:1/' },
  })
  await call('POST /v1/alert-routes/{name}/test', { values: { name: 'on-call' } })
  const created = await call<{ credential: { id: string } }>('POST /v1/tokens', {
    body: { kind: 'app', name: 'cart', services: ['cart'], clusters: ['main'] },
  })
  await call('POST /v1/tokens/{id}/rotate', { values: { id: created.credential.id }, body: {} })
  const run = await call<{ id: string }>('POST /v1/finders', { body: { kind: 'big', redisClusterId: 'main' } })
  await waitFor(async () => {
    const { state } = await call<{ state: string }>('GET /v1/finders/{id}', { values: { id: run.id } })
    return state !== 'running'
  })
  await call('PUT /v1/rules/{id}', { values: { id: 'cart' }, body: { prefix: 'cart:', threshold: 5 } })
  await call('POST /v1/rules/{id}/rollout', { values: { id: 'cart' }, body: { percent: 50 } })
  await call('GET /v1/rules/{id}', { values: { id: 'cart' } })
  const trial = { body: { prefix: 'shop:', threshold: 5 } }
  await call('POST /v1/rules/dry-run', trial)
  await call('POST /v1/rules/{id}/dry-run', { ...trial, values: { id: 'shop' } })
  await call('PUT /v1/keys/{cluster}/{key}/action', { ...key, body: { action: 'limit', limit: 100 } })
  await call('DELETE /v1/keys/{cluster}/{key}/action', key)
  await call('POST /v1/keys/{cluster}/{key}/inspection', { ...key, body: { value: false } })
  await call('POST /v1/prewarm', { body: { keys: ['shop:2'], redisClusterId: 'main', forMs: 60_000 } })
  await call('POST /v1/prewarm', { body: { keys: ['shop:3'], cron: '0 4 * * *', forMs: 60_000 } })
  await call('POST /v1/prewarm', { body: { keys: ['shop:4'], dryRun: true } })
  await call('PUT /v1/forecast/settings', { body: { mode: 'suggest' } })
  const { cost: _, ...settings } = await call<{ cost: unknown }>('GET /v1/history/settings')
  await call('PUT /v1/history/settings', { body: settings })
  const { version } = await call<{ version: number }>('GET /v1/rules/versions')
  await call('GET /v1/rules/versions/{version}', { values: { version: String(version) } })
  await call('POST /v1/rules/rollback', { body: { version: version - 1 } })
  hub.core.alarms.raise({ id: 'a-test', severity: 'warning', cause: 'a cause', retry: 'what is done' })
  await call('PUT /v1/alarms/{id}/silence', { values: { id: 'a-test' }, body: { forMs: 60_000, why: 'a test' } })
  await call('PUT /v1/alarms/{id}/acknowledgement', { values: { id: 'a-test' } })
  await call('GET /v1/alarms', { query: '?all=true' })
  await call('GET /v1/keys/{cluster}/{key}', key)
  for (const path of reads) await call(`GET /v1/${path}`)
  await call('GET /v1/history', { query: '?by=prefix' })
  await call('GET /v1/table')
  await call('GET /v1/table', { query: '?service=shop' })
  await call('POST /v1/switch', { body: { isOff: true } })
  await call('GET /v1/overview')
  await call('POST /v1/switch', { body: { isOff: false } })
  const withAnswer = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      responses['204'] ? [] : [`${method.toUpperCase()} ${path}`],
    ),
  )
  expect(withAnswer.filter((operation) => !compared.has(operation))).toEqual([])
}, 60_000)

test('an answer that its schema does not know is found', () => {
  const { schemas } = document.components
  const problems = schemaProblems(
    { $ref: '#/components/schemas/BarredView' },
    { id: 1, who: 'a', at: 0, more: 1 },
    schemas,
  )
  expect(problems).toEqual([
    'the answer.why is missing',
    'the answer.id is number, not string',
    'the answer.more is not in the schema',
  ])
})
