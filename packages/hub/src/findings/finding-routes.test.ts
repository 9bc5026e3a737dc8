import { randomUUID } from 'node:crypto'
import type { Finding } from '@firebreak/find'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { findingRoutes } from './finding-routes.ts'

function finding(parts: Partial<Finding> = {}): Finding {
  return {
    version: 1,
    id: randomUUID(),
    kind: 'hot',
    method: 'monitor',
    startedAtMs: 1_700_000_000_000,
    tookMs: 1200,
    source: ['127.0.0.1:6379'],
    topology: 'standalone',
    isComplete: true,
    scanned: 1000,
    keys: [{ key: 'a\\x00b', accesses: 900, share: 0.9, commands: { GET: 900 } }],
    notes: [],
    ...parts,
  }
}

async function hub(options = {}) {
  const app = fastify()
  await app.register(findingRoutes, options)
  return app
}

test('a finding is kept, listed newest first, and found by its id', async () => {
  const heard: string[] = []
  const app = await hub({ onFinding: ({ id }: Finding) => heard.push(id) })
  const [first, second] = [finding(), finding({ kind: 'big', method: 'scan' })]
  expect((await app.inject({ method: 'POST', url: '/v1/findings', payload: first })).statusCode).toBe(201)
  await app.inject({ method: 'POST', url: '/v1/findings', payload: second })
  const list = await app.inject('/v1/findings')
  expect(list.json()).toEqual({ findings: [second, first] })
  expect((await app.inject('/v1/findings?kind=hot')).json()).toEqual({ findings: [first] })
  expect((await app.inject('/v1/findings?limit=1')).json()).toEqual({ findings: [second] })
  expect((await app.inject(`/v1/findings/${first.id}`)).json()).toEqual(first)
  expect((await app.inject('/v1/findings/nothing')).statusCode).toBe(404)
  expect(heard).toEqual([first.id, second.id])
})

test('a finding that is sent again replaces itself, and only the last are kept', async () => {
  const app = await hub({ maxFindings: 2 })
  const first = finding()
  await app.inject({ method: 'POST', url: '/v1/findings', payload: first })
  const again = await app.inject({ method: 'POST', url: '/v1/findings', payload: { ...first, scanned: 5 } })
  expect(again.statusCode).toBe(200)
  expect((await app.inject('/v1/findings')).json().findings).toMatchObject([{ scanned: 5 }])
  for (let index = 0; index < 3; index++) {
    await app.inject({ method: 'POST', url: '/v1/findings', payload: finding({ scanned: index }) })
  }
  expect((await app.inject('/v1/findings')).json().findings).toMatchObject([{ scanned: 2 }, { scanned: 1 }])
})

test('what is no finding is refused with the field that is wrong', async () => {
  const app = await hub({ maxBytes: 10_000 })
  const refused = async (payload: object) => {
    const response = await app.inject({ method: 'POST', url: '/v1/findings', payload })
    expect(response.statusCode).toBeGreaterThanOrEqual(400)
    return response.json().message as string
  }
  expect(await refused({})).toMatch(/version/)
  expect(await refused({ ...finding(), keys: [{ key: 1 }] })).toMatch(/keys\.0\.key/)
  expect(await refused({ ...finding(), kind: 'cold' })).toMatch(/kind/)
  await refused({ ...finding(), notes: Array.from({ length: 20 }, () => 'x'.repeat(1000)) })
})
