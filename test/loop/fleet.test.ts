import { isInRollout } from '@firebreak/core/rules'
import { type GuardedChild, type RedisServer, startRedis, startSource, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { FleetProcess } from './fleet-process.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

/** A hub and the processes of its fleet, each a process of its own, before a real Redis. */
const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
const ends: (() => unknown)[] = []
let server: RedisServer
let hub: string

beforeEach(async () => {
  server = await startRedis()
  ends.push(() => server.stop())
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function startHub(rules: readonly object[]): Promise<void> {
  const child = startSource(new URL('../hub/hub-process.ts', import.meta.url), [
    JSON.stringify({ initialRules: rules }),
  ])
  ends.push(() => child.stop())
  hub = (await child.printed(/listening (\S+)/))[1]!
}

async function call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${hub}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  expect([path, response.status, text]).toEqual([path, expect.toBeOneOf([200, 201, 204]), text])
  return (text === '' ? undefined : JSON.parse(text)) as Answer
}

function start(options: Omit<FleetProcess, 'port' | 'hub'>): GuardedChild {
  const settings: FleetProcess = { port: server.port, hub, ...options }
  const child = startSource(new URL('./fleet-process.ts', import.meta.url), [JSON.stringify(settings)])
  ends.push(() => child.stop())
  return child
}

/** A limited key that is hot from the start, and a cached one that shows that a process has the table. */
async function limitHot(scope: string, services: readonly string[]): Promise<void> {
  const strategy = {
    strategy: 'RateLimit',
    algorithm: 'tokenBucket',
    limit: 20,
    // With ten minutes, a token comes every thirty seconds.
    windowMs: 600_000,
    onLimit: 'reject',
    scope,
  }
  await startHub([
    { id: 'hot', key: 'hot', threshold: 100, minHoldMs: 600_000, strategy },
    { id: 'marker', key: 'marker', threshold: 100, minHoldMs: 600_000, strategy: 'LocalCache' },
  ])
  await server.cli('MSET', 'hot', 'v', 'marker', 'm')
  // Two processes: a limit that only one needs is sent to that one.
  for (const [service, host] of services.flatMap((name) => [1, 2].map((number) => [name, `host-${number}`]))) {
    const body = `# ${Date.now()},${Date.now()},${service},${host}\n# main\nhot:5000,marker:5000\n`
    await fetch(`${hub}/v1/reports`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })
  }
  for (const service of services)
    await waitFor(
      async () =>
        /RateLimit.*marker|marker.*RateLimit/.test(JSON.stringify(await call('GET', `/v1/table?service=${service}`))),
      {
        what: 'the limit in the table',
      },
    )
}

test.each([
  ['shared', { shop: 'together', web: 'together' }],
  ['shared-service', { shop: 'shop', web: 'web' }],
])('a limit of scope %s counts across processes as documented', async (scope, groups) => {
  const services = Object.keys(groups)
  await limitHot(scope, services)
  const processes = services.flatMap((serviceId) =>
    [1, 2].map((number) => ({ serviceId, child: start({ serviceId, instanceId: `${serviceId}-${number}` }) })),
  )
  for (const { child } of processes) await child.printed(/ready/)
  for (const { child } of processes) child.signal('SIGUSR2')
  const admitted = new Map<string, number>()
  for (const { serviceId, child } of processes) {
    const [, passed, limited] = await child.printed(/admitted (\d+) limited (\d+)/)
    expect(Number(passed) + Number(limited)).toBe(15)
    const group = (groups as Record<string, string>)[serviceId]!
    admitted.set(group, (admitted.get(group) ?? 0) + Number(passed))
  }
  for (const count of admitted.values()) {
    expect(count).toBeGreaterThanOrEqual(20)
    expect(count).toBeLessThanOrEqual(22)
  }
})

test('a limit of scope shared-caller applies to each user, across all proxies', async () => {
  await server.cli('ACL', 'SETUSER', 'ann', 'on', '>pass', '~*', '+@all')
  await server.cli('ACL', 'SETUSER', 'bob', 'on', '>pass', '~*', '+@all')
  await limitHot('shared-caller', ['shop'])
  const ports = await Promise.all(
    [1, 2].map(async () => {
      const flags = ['--upstream', server.url, '--port', '0', '--hub', hub, '--service', 'shop']
      const child = startSource(main, ['proxy', ...flags, '--cluster-id', 'main'])
      ends.push(() => child.stop())
      return Number((await child.printed(/listens on \S+:(\d+)/))[1])
    }),
  )
  const admitted: Record<string, number> = { ann: 0, bob: 0 }
  for (const port of ports) {
    for (const username of Object.keys(admitted)) {
      const client = new Redis(port, { username, password: 'pass' })
      ends.push(() => client.disconnect())
      await waitFor(async () => {
        await client.get('marker')
        return ((await client.call('FIREBREAK', 'PEEK', 'marker')) as unknown[]).length > 0
      })
      const replies = await Promise.all(Array.from({ length: 15 }, () => client.get('hot').catch(() => undefined)))
      admitted[username]! += replies.filter((reply) => reply === 'v').length
    }
  }
  for (const count of Object.values(admitted)) {
    expect(count).toBeGreaterThanOrEqual(20)
    expect(count).toBeLessThanOrEqual(22)
  }
})

const rule = { prefix: 'hot-', threshold: 100, windowMs: 1000, minHoldMs: 600_000 }
const names = Array.from({ length: 4 }, (_, index) => `instance-${index}`)
const last = (child: GuardedChild) => child.output().trim().split('\n').at(-1)

test('a roll-out applies in the processes that its hash selects, then in all', async () => {
  await startHub([])
  await call('PUT', '/v1/rules/good', { ...rule, rollout: 50 })
  const chosen = names.filter((name) => isInRollout('good', 50, name))
  expect(chosen.length).toBeGreaterThan(0)
  expect(chosen.length).toBeLessThan(names.length)
  const keys = Array.from({ length: 40 }, () => 'hot-1')
  const processes = names.map((instanceId) => start({ serviceId: 'shop', instanceId, keys }))
  const inMemory = () => names.filter((_, index) => last(processes[index]!) === 'memory')
  await waitFor(() => inMemory().length === chosen.length, { timeoutMs: 30_000, what: 'the chosen processes' })
  expect(inMemory()).toEqual(chosen)
  await call('POST', '/v1/rules/good/rollout', { percent: 100 })
  await waitFor(() => inMemory().length === names.length, { timeoutMs: 30_000, what: 'all processes' })
  expect(
    processes.filter((child, index) => !chosen.includes(names[index]!) && /memory\s+redis/.test(child.output())),
  ).toEqual([])
})
