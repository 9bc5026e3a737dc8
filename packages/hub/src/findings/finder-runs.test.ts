import { type FinderRunView, systemRuntime } from '@firebreak/core'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Hub, startHub } from '../start-hub.ts'
import { FinderRuns } from './finder-runs.ts'

let server: RedisServer
let hub: Hub
beforeAll(async () => {
  server = await startRedis()
  hub = await startHub({ logLevel: 'silent', engines: [`main=${server.url}`] })
  const redis = new Redis(server.port)
  for (let n = 0; n < 50; n++) await redis.set(`small:${n}`, 'x')
  await redis.set('big:1', 'x'.repeat(100_000))
  redis.disconnect()
}, 30_000)
afterAll(async () => {
  await hub.close()
  await server.stop()
})

async function call<Answer>(method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }> {
  const init = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${hub.url}${path}`, { method, ...init })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Answer }
}

test('a search that is started at the hub tells how far it is, what it found, and is in the audit', async () => {
  const unknown = await call<{ message: string }>('POST', '/v1/finders', { kind: 'big', redisClusterId: 'other' })
  expect([unknown.status, unknown.body.message]).toEqual([404, expect.stringContaining('it knows: main')])
  const started = await call<FinderRunView>('POST', '/v1/finders', { kind: 'big', redisClusterId: 'main' })
  expect([started.status, started.body.state]).toEqual([202, 'running'])
  const done = await waitFor(async () => {
    const { body } = await call<FinderRunView>('GET', `/v1/finders/${started.body.id}`)
    return body.state === 'done' && body
  })
  expect(done).toMatchObject({ progress: 1, redisClusterId: 'main', kind: 'big' })
  expect(JSON.stringify(done.result)).toContain('big:1')
  const { runs, clusters } = (await call<{ runs: FinderRunView[]; clusters: string[] }>('GET', '/v1/finders')).body
  expect([runs.map(({ id, result }) => [id, result]), clusters]).toEqual([[[done.id, null]], ['main']])
  expect((await call('DELETE', `/v1/finders/${done.id}`)).status).toBe(409)
  const { entries } = (await call<{ entries: { what: string }[] }>('GET', '/v1/audit')).body
  expect(entries[0]!.what).toBe('search main for big keys')
})

test('where keys are redacted, no real name is in what a search found', async () => {
  const runs = new FinderRuns({
    servers: [{ redisClusterId: 'main', url: server.url }],
    runtime: systemRuntime,
    outside: (key) => `hidden-${key.length}`,
  })
  const { id } = runs.start('big', 'main', 'ann')!
  const { result } = await waitFor(() => runs.get(id)?.state === 'done' && runs.get(id))
  expect(JSON.stringify(result)).toContain('hidden-5')
  expect(JSON.stringify(result)).not.toMatch(/big:|small:/)
})
