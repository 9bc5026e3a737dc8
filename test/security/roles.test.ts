import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { bearer, call } from './call.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const [app, vic, olga, adam] = ['app', 'viewer', 'operator', 'admin'].map((who) => `a-token-of-an-${who}-4711`) as [
  string,
  string,
  string,
  string,
]
let hub: Victim

beforeAll(async () => {
  hub = await startVictim('hub', {
    tokens: {
      apps: [{ name: 'shop', token: app, services: ['shop'] }],
      people: [
        { name: 'vic', role: 'viewer', token: vic },
        { name: 'olga', role: 'operator', token: olga },
        { name: 'adam', role: 'admin', token: adam },
      ],
    },
    initialRules: [{ id: 'cached', prefix: 'cached', threshold: 1000, strategy: 'LocalCache' }],
  })
})
afterAll(() => hub.child.stop())

interface Operation {
  readonly method: string
  readonly path: string
  readonly role: string
}

/** Every call of the hub's own, with the role that its page says. */
async function operations(): Promise<Operation[]> {
  const { body } = await call(hub.ports.http, 'GET', '/openapi.json')
  const { paths } = body as unknown as { paths: Record<string, Record<string, { 'x-role': string }>> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{\w+\}/g, 'x'),
      role: operation['x-role'],
    })),
  )
}

const statusOf = async ({ method, path }: Operation, token?: string) =>
  (
    await call(
      hub.ports.http,
      method,
      path,
      token === undefined ? {} : bearer(token),
      /POST|PUT/.test(method) ? {} : undefined,
    )
  ).status

test('a stranger is told nothing and changes nothing, call by call', async () => {
  const all = await operations()
  expect(all.length).toBeGreaterThan(40)
  for (const one of all) expect([one, await statusOf(one)]).toEqual([one, 401])
})

test('an app token opens what is for processes, and nothing that is for people', async () => {
  for (const one of await operations()) {
    if (!one.role.includes('app')) expect([one, await statusOf(one, app)]).toEqual([one, 401])
  }
})

test('a viewer looks at everything that is for viewers and changes nothing', async () => {
  const all = await operations()
  const changes = all.filter(({ role }) => role === 'operator' || role === 'admin')
  expect(changes.length).toBeGreaterThan(15)
  for (const one of changes) expect([one, await statusOf(one, vic)]).toEqual([one, 403])
  // Those of other rooms are no part of that page.
  const others = [
    ['POST', '/v1/limits/policy'],
    ['POST', '/v1/limits/update'],
    ['POST', '/v1/locks/release'],
    ['POST', '/v1/findings'],
  ] as const
  for (const [method, path] of others)
    expect([path, await statusOf({ method, path, role: 'operator' }, vic)]).toEqual([path, 403])
  for (const path of ['/v1/overview', '/v1/rules', '/v1/keys', '/v1/locks', '/metrics'])
    expect([path, await statusOf({ method: 'GET', path, role: 'viewer' }, vic)]).toEqual([path, 200])
  const { rules } = (await call(hub.ports.http, 'GET', '/v1/rules', bearer(vic))).body as unknown as {
    rules: { id: string }[]
  }
  expect(rules.map(({ id }) => id)).toEqual(['cached'])
})

test('an operator uses the switch and the rules, and has no say in tokens, alert routes and whatever else is an admin’s', async () => {
  const admins = (await operations()).filter(({ role }) => role === 'admin')
  expect(admins.map(({ path }) => path)).toContain('/v1/tokens')
  for (const one of admins) expect([one, await statusOf(one, olga)]).toEqual([one, 403])
  const turn = (token: string) => call(hub.ports.http, 'POST', '/v1/switch', bearer(token), { isOff: false })
  expect([(await turn(olga)).status, (await turn(vic)).status]).toEqual([200, 403])
  expect((await call(hub.ports.http, 'GET', '/v1/tokens', bearer(adam))).status).toBe(200)
  const { entries } = (await call(hub.ports.http, 'GET', '/v1/audit', bearer(adam))).body
  expect(entries.map(({ who }) => who)).toEqual(['olga', 'start'])
})
