import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Writable } from 'node:stream'
import type { AuditEntry } from '@firebreak/core'
import { type RedisServer, startRedis, temporaryFolder } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { audit } from '../../packages/cli/src/commands/audit.ts'
import { call } from './call.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 300_000 })

let redis: RedisServer
let client: Redis
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
})
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

const auditKey = '{firebreak:hub}:audit'
/** The command in this process: it reads the store and the hubs by itself. */
async function runAudit(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  let output = ''
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      output += chunk
      done()
    },
  })
  const io = { env: {}, stdin: process.stdin, stdout, stderr: stdout, signal: new AbortController().signal }
  return { code: await audit.run(args, io), output }
}

const rule = (id: string) => ({ id, prefix: 'product_', threshold: 5, strategy: 'LocalCache' })

describe.each(['sqlite', 'redis'] as const)('the audit in a store on %s', (kind) => {
  const dataFolder = temporaryFolder('audit')
  let hubs: Victim[]
  let place: string[]

  beforeAll(async () => {
    const storeUrl = `redis://127.0.0.1:${redis.port}`
    place = kind === 'sqlite' ? ['--data-folder', dataFolder] : ['--store-url', storeUrl]
    const options = kind === 'sqlite' ? { dataFolder } : { storeUrl }
    hubs = await Promise.all((kind === 'sqlite' ? [1] : [1, 2]).map(() => startVictim('hub', options)))
  })
  afterAll(() => Promise.all(hubs.map(({ child }) => child.stop())))

  const verify = (...more: string[]) => runAudit('verify', ...place, ...more)
  const post = async (hub: Victim, method: string, path: string, body?: unknown) => {
    const { status } = await call(hub.ports.http!, method, path, {}, body)
    expect(status, `${method} ${path}`).toBeLessThan(300)
  }

  test('is one chain of every change, whichever hub made it: rules, switch, pre-warming, bars', async () => {
    await post(hubs[0]!, 'PUT', '/v1/rules/r', rule('r'))
    const report = `# ${Date.now()},${Date.now()},shop,h\n# main\nproduct_1:1\n`
    await Promise.all(hubs.map((hub) => call(hub.ports.http!, 'POST', '/v1/reports', {}, report)))
    await Promise.all(
      hubs.flatMap((hub, index) => [
        post(hub, 'PUT', `/v1/rules/of-${index}`, rule(`of-${index}`)),
        post(hub, 'POST', '/v1/barred', { id: `shop/host-${index}/1`, why: 'test' }),
      ]),
    )
    const at = new Date(Date.now() + 3_600_000).toISOString()
    await post(hubs[0]!, 'POST', '/v1/prewarm', {
      redisClusterId: 'main',
      keys: ['product_1..3'],
      services: ['shop'],
      at,
    })
    const { jobs } = (await call(hubs[0]!.ports.http!, 'GET', '/v1/prewarm')).body as unknown as {
      jobs: { id: string }[]
    }
    await post(hubs.at(-1)!, 'DELETE', `/v1/prewarm/${jobs[0]!.id}`)
    await post(hubs[0]!, 'POST', '/v1/switch', { isOff: true })

    const { entries } = (await call(hubs[0]!.ports.http!, 'GET', '/v1/audit')).body
    const whats = entries.map(({ what }) => what)
    for (const part of ['rule of-0', 'bar shop/host-0', 'pre-warm 3 keys', 'cancel pre-warm job', 'switch off']) {
      expect(whats).toContainEqual(expect.stringContaining(part))
    }
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => entries.length - index))
    const found = await verify()
    expect(found.output).toMatch(/\d+ entries checked: the chain is intact/)
    expect(found.code).toBe(0)
    const overHttp = await runAudit('verify', '--hub', `http://127.0.0.1:${hubs[0]!.ports.http}`)
    expect(overHttp.output).toContain(/head \S+/.exec(found.output)![0])
  })

  test('a change under the idempotency key of another one is made and noted; the same one sent twice is made once', async () => {
    const { http } = hubs[0]!.ports
    const key = { 'idempotency-key': `restored.${kind}` }
    const put = (path: string, body: object) => call(http, 'PUT', path, key, body)
    const turn = (isOff: boolean, more = {}) => call(http, 'POST', '/v1/switch', more, { isOff })
    await turn(false)
    await put('/v1/rules/named-1', rule('named-1'))
    await put('/v1/rules/named-1', rule('named-1'))
    await put('/v1/rules/named-2', rule('named-2'))
    expect((await call(http, 'GET', '/v1/rules/named-2')).status).toBe(200)
    expect((await turn(true, key)).body).toMatchObject({ isOff: true, isStored: true })
    await turn(false)
    await turn(true, key)
    const { entries } = (await call(http, 'GET', '/v1/audit')).body
    expect(entries.slice(0, 5).map(({ what }) => what)).toEqual([
      'switch on',
      'switch off',
      'add rule named-2',
      'add rule named-1',
      'switch on',
    ])
    // What somebody switched since then stays.
    expect((await call(http, 'GET', '/v1/overview')).body).toMatchObject({ isOff: false })
    await turn(true)
    expect((await verify()).code).toBe(0)
  })

  /** The entries as the store has them, newest first, for one who can write it. */
  async function tamper(change: (entries: AuditEntry[]) => AuditEntry[]): Promise<() => Promise<void>> {
    if (kind === 'redis') {
      const before = await client.lrange(auditKey, 0, -1)
      const put = async (texts: readonly string[]) => {
        await client
          .multi()
          .del(auditKey)
          .rpush(auditKey, ...texts)
          .exec()
      }
      await put(change(before.map((text) => JSON.parse(text) as AuditEntry)).map((entry) => JSON.stringify(entry)))
      return () => put(before)
    }
    const database = new DatabaseSync(join(dataFolder, 'hub.sqlite'))
    const rows = () => database.prepare('SELECT * FROM audit ORDER BY id DESC').all() as unknown as AuditEntry[]
    const put = (entries: readonly AuditEntry[]) => {
      database.exec('DELETE FROM audit')
      const fields = ['at', 'who', 'what', 'before', 'after', 'seq', 'previous', 'hash'] as const
      const add = database.prepare(`INSERT INTO audit (${fields.join()}) VALUES (${fields.map(() => '?').join()})`)
      for (const entry of entries.toReversed()) add.run(...fields.map((field) => entry[field] as string))
    }
    const before = rows()
    put(change(before))
    return async () => {
      put(before)
      database.close()
    }
  }

  test.each<[string, (entries: AuditEntry[]) => AuditEntry[], RegExp]>([
    ['altered', (all) => all.with(2, { ...all[2]!, who: 'nobody' }), /entry \d+ does not match its hash/],
    ['removed', (all) => all.toSpliced(2, 1), /entry \d+ is missing/],
    ['removed at the new end', (all) => all.slice(1), /entry \d+ is missing/],
    ['moved', (all) => all.with(2, all[1]!).with(1, all[2]!), /entry \d+ is in place of entry \d+/],
  ])('shows an entry that was %s', async (_name, change, told) => {
    const undo = await tamper(change)
    const { code, output } = await verify()
    await undo()
    expect(output).toMatch(told)
    expect(code).toBe(1)
    expect((await verify()).code).toBe(0)
  })

  test('is held against a head that was noted', async () => {
    const head = /head (\S+)/.exec((await verify()).output)![1]!
    expect((await verify('--since', head)).code).toBe(0)
    const other = head.replace(/:./, (start) => (start === ':0' ? ':1' : ':0'))
    const { code, output } = await verify('--since', other)
    expect([code, output]).toEqual([1, expect.stringContaining('is not the one given')])
  })
})
