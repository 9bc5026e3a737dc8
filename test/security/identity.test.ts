import { createHash, createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { bearer, call, firebreak, tokenIn } from './call.ts'
import { RawSensor } from './raw-sensor.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const textReport = (serviceId: string, redisClusterId: string) =>
  `# ${Date.now()},${Date.now()},${serviceId},h\n# ${redisClusterId}\nk:5\n`

describe.each(['sqlite', 'redis'] as const)('tokens in a store on %s', (kind) => {
  const dataFolder = temporaryFolder('identity')
  let hub: Victim
  let other: Victim | undefined
  let place: string[]
  let admin: string
  let asAdmin: Record<string, string>

  beforeAll(async () => {
    const storeUrl = `redis://127.0.0.1:${redis.port}`
    place = kind === 'sqlite' ? ['--data-folder', dataFolder] : ['--store-url', storeUrl]
    admin = tokenIn(await firebreak(['token', 'create', '--person', 'root', '--role', 'admin', ...place]))
    const options = kind === 'sqlite' ? { dataFolder } : { storeUrl }
    hub = await startVictim('hub', options)
    if (kind === 'redis') other = await startVictim('hub', options)
    asAdmin = { FIREBREAK_HUB: `http://127.0.0.1:${hub.ports.http}`, FIREBREAK_TOKEN: admin }
  })
  afterAll(async () => {
    await hub.child.stop()
    await other?.child.stop()
  })

  const create = async (name: string, services: string[], clusters: string[]) => {
    const scope = [...services.flatMap((one) => ['--service', one]), ...clusters.flatMap((one) => ['--cluster', one])]
    return tokenIn(await firebreak(['token', 'create', '--app', name, ...scope], asAdmin))
  }
  const open = (token: string, hello: object = {}, at: Victim = hub) =>
    new RawSensor(at.ports.http, { ...hello, token }).answered()

  test('nobody without one is let in, and a token says nothing of others: hello, reports, statuses, claims', async () => {
    const port = hub.ports.http
    const token = await create('scoped', ['shop', 'cart-*'], ['main'])
    expect((await open('fbt_wrong')).closed).toBe('1008 app token refused')
    expect((await call(port, 'GET', '/v1/overview')).status).toBe(401)
    expect((await open(token, { serviceId: 'billing' })).refused[0]?.code).toBe('FB_SCOPE_REFUSED')
    expect((await open(token, { redisClusterIds: ['main', 'vault'] })).refused[0]?.reason).toContain('"vault"')
    expect((await open(token, { serviceId: 'cart-eu' })).isWelcome).toBe(true)

    const sensor = await open(token)
    const counters = { reads: 0, writes: 0, localHits: 0, loads: 0, bypasses: 0, invalidations: 0, flushes: 0 }
    const status = {
      sentAt: Date.now(),
      epoch: '',
      version: 0,
      isOff: false,
      counters: { ...counters, limited: 0, copyReads: 0, droppedReports: 0, errors: 0 },
      keys: [],
      watchers: [],
    }
    const watcher = { redisClusterId: 'vault', kind: 'none', state: 'expired', detail: 'a lie' } as const
    sensor.report({ k: 1 }, { redisClusterId: 'vault' })
    sensor.report({ k: 1 }, { serviceId: 'billing' })
    sensor.report({ k: 1 }, { hostId: 'another' })
    sensor.send('status', { ...status, watchers: [watcher] })
    sensor.send('claim', { redisClusterId: 'vault', key: 'k', ruleId: 'r', heat: 1e9 })
    await waitFor(() => sensor.refused.length === 5)
    expect(sensor.refused.map(({ code }) => code)).toEqual(Array(5).fill('FB_SCOPE_REFUSED'))
    const overview = (await call(port, 'GET', '/v1/overview', bearer(admin))).body
    expect(overview.ingest.refused.scope).toBe(3)
    const { hosts } = (await call(port, 'GET', '/v1/hosts', bearer(admin))).body
    expect(hosts.map(({ serviceId }) => serviceId).sort()).toEqual(['cart-eu', 'shop'])

    const http = (service: string, cluster: string) =>
      call(port, 'POST', '/v1/reports', bearer(token), textReport(service, cluster))
    expect((await http('shop', 'main')).status).toBe(204)
    expect((await http('billing', 'main')).body.code).toBe('FB_SCOPE_REFUSED')
    expect((await http('shop', 'vault')).body.code).toBe('FB_SCOPE_REFUSED')
    // An app's token is no person's.
    expect((await call(port, 'GET', '/v1/overview', bearer(token))).status).toBe(401)
  })

  test('a rotated token: both are taken for a time, then the old one is cut off; nothing restarts', async () => {
    const old = await create('turning', ['shop'], ['*'])
    const before = await open(old)
    const fresh = tokenIn(await firebreak(['token', 'rotate', 'turning', '--grace', '4s'], asAdmin))
    const [again, after] = [await open(old), await open(fresh)]
    expect([before.closed, again.closed, again.isWelcome, after.isWelcome]).toEqual([undefined, undefined, true, true])
    await waitFor(() => before.closed !== undefined && again.closed !== undefined, { timeoutMs: 20_000 })
    expect(before.closed).toBe('1008 app token revoked')
    expect((await open(old)).isWelcome).toBe(false)
    expect((await open(fresh)).isWelcome).toBe(true)
    expect(after.closed).toBeUndefined()
  })

  test('a revoked token is out at once, open connections too, at every hub; its last use was shown', async () => {
    const token = await create('leaving', ['shop'], ['*'])
    const hubs = other === undefined ? [hub] : [hub, other]
    // The other hub hears of a new token within a second.
    const sensors = await Promise.all(
      hubs.map((at) =>
        waitFor(async () => (await open(token, {}, at).then((one) => one.isWelcome && one)) || undefined),
      ),
    )
    const listed = await firebreak(['token', 'list', '--json'], asAdmin)
    const { lastUsedAt } = JSON.parse(listed.output).find(({ name }: { name: string }) => name === 'leaving')
    expect(Date.now() - lastUsedAt).toBeLessThan(60_000)
    expect((await firebreak(['token', 'revoke', 'leaving'], asAdmin)).code).toBe(0)
    await waitFor(() => sensors.every(({ closed }) => closed !== undefined), { timeoutMs: 5000 })
    for (const { refused } of sensors) expect(refused.at(-1)?.code).toBe('FB_TOKEN_REFUSED')
    for (const at of hubs) expect((await open(token, {}, at)).isWelcome).toBe(false)
    expect((await firebreak(['token', 'revoke', 'leaving'], asAdmin)).output).toContain('there is no token')
  })

  test('nothing in the store makes a session of a person, nor the value that a change needs', async () => {
    const at = hub.ports.http
    const signedIn = await call(at, 'POST', '/v1/session', {}, { token: admin })
    const cookie = signedIn.headers['set-cookie']![0]!.split(';')[0]!
    const proof = `token ${createHash('sha256').update(admin).digest('hex')}`
    const tokens = (await call(at, 'GET', '/v1/tokens', bearer(admin))).body as unknown as {
      tokens: { id: string; name: string }[]
    }
    const of = tokens.tokens.find(({ name }) => name === 'root')!.id
    const kept = await textOfStore()
    expect(kept).toContain(of)
    // All in it that could be a secret, used as one: to sign what a cookie might say, or as the cookie itself.
    const secrets = [...new Set(kept.match(/\b[0-9a-f]{64}\b|\b[\w-]{43}\b/g))]
    expect(secrets.length).toBeGreaterThan(2)
    const content = Buffer.from(JSON.stringify({ id: 'x'.repeat(16), until: Date.now() + 1e6, of, proof })).toString(
      'base64url',
    )
    const tried = secrets.map(async (secret) => {
      const keys = [Buffer.from(secret, 'hex'), Buffer.from(secret)]
      const signed = keys.map(
        (key) => `firebreak_session=${content}.${createHmac('sha256', key).update(content).digest('base64url')}`,
      )
      for (const forged of [...signed, `firebreak_session=${secret}`, `firebreak_session=${secret.slice(0, 43)}`]) {
        const { status } = await call(at, 'GET', '/v1/tokens', { cookie: forged })
        expect([forged, status]).toEqual([forged, 401])
      }
      const csrf = createHmac('sha256', secret).update('csrf').digest('base64url')
      const change = { cookie, 'firebreak-csrf': csrf }
      expect((await call(at, 'POST', '/v1/switch', change, { isOff: false })).body.code).toBe('FB_CSRF_REFUSED')
    })
    await Promise.all(tried)
    const change = { cookie, 'firebreak-csrf': signedIn.body.csrf }
    expect((await call(at, 'POST', '/v1/switch', change, { isOff: false })).status).toBe(200)
  })

  test('a session holds at every hub at once, and its end does within a second', async () => {
    const at = other ?? hub
    const signedIn = await call(hub.ports.http, 'POST', '/v1/session', {}, { token: admin })
    const cookie = { cookie: signedIn.headers['set-cookie']![0]!.split(';')[0]! }
    expect((await call(at.ports.http, 'GET', '/v1/session', cookie)).body).toMatchObject({ who: 'root' })
    const change = { ...cookie, 'firebreak-csrf': signedIn.body.csrf }
    expect((await call(at.ports.http, 'POST', '/v1/switch', change, { isOff: false })).status).toBe(200)
    expect((await call(hub.ports.http, 'DELETE', '/v1/session', change)).status).toBe(204)
    await waitFor(async () => (await call(at.ports.http, 'GET', '/v1/session', cookie)).status === 401)
  })

  test('the last admin stays, and a hub that asked for tokens never asks for none', async () => {
    const last = await firebreak(['token', 'revoke', 'root'], asAdmin)
    expect([last.code, last.output]).toEqual([1, expect.stringContaining('root is the last admin')])
    const there = await firebreak(['token', 'revoke', 'root', ...place])
    expect(there.output).toContain('root is the last admin')
    tokenIn(await firebreak(['token', 'create', '--person', 'deputy', '--role', 'admin'], asAdmin))
    expect((await firebreak(['token', 'revoke', 'deputy'], asAdmin)).code).toBe(0)
    if (kind === 'sqlite') return
    // A store that lost everything: those who are known stay known, and nobody else gets in.
    await redis.cli('FLUSHALL')
    await waitFor(async () => (await redis.cli('KEYS', '*')).includes('credential'), { timeoutMs: 10_000 })
    for (const at of [hub, other!]) {
      expect((await call(at.ports.http, 'GET', '/v1/overview')).status).toBe(401)
      expect((await call(at.ports.http, 'GET', '/v1/overview', bearer(admin))).status).toBe(200)
    }
  })

  test('nothing in the store opens the hub, and every change is in the audit', async () => {
    const token = await create('kept', ['shop'], ['*'])
    const { entries } = (await call(hub.ports.http, 'GET', '/v1/audit', bearer(admin))).body
    expect(entries.map(({ what }) => what)).toContain('create token kept')
    const kept = await textOfStore()
    const files =
      kind === 'sqlite' ? readdirSync(dataFolder).map((name) => readFileSync(join(dataFolder, name), 'latin1')) : []
    expect(kept).toContain('kept')
    for (const secret of [token, admin]) expect(kept + files.join('')).not.toContain(secret.slice(4))
  })

  const textOfStore = async () => {
    return (kind === 'sqlite' ? cellsIn(join(dataFolder, 'hub.sqlite')) : await valuesIn(redis)).join('\n')
  }
})

/** Every value in a database of SQLite. */
function cellsIn(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true })
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
  const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${name}"`).all())
  database.close()
  return rows.flatMap((row) => Object.values(row).map(String))
}

/** What the hubs keep in their Redis about tokens and changes. */
async function valuesIn({ cli }: RedisServer): Promise<string[]> {
  const keys = (await cli('KEYS', '*')).split('\n')
  const read = async (key: string) => {
    const type = await cli('TYPE', key)
    if (type.includes('hash')) return cli('HGETALL', key)
    return type.includes('list') ? cli('LRANGE', key, '0', '-1') : ''
  }
  return Promise.all(keys.map((key) => read(key.trim())))
}
