import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { parseRule } from '@firebreak/core/rules'
import { type HubStore, openRedisStore, SqliteStore } from '@firebreak/hub'
import { type RedisServer, startRedis, temporaryFolder } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { recordKinds, recordKindsLeftOut } from '../../packages/cli/src/backup/store-backup.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())
beforeEach(() => redis.cli('FLUSHALL'))

type Kind = 'sqlite' | 'redis'

/** The place of a store, as flags name it and as a hub would open it. */
function placeOf(kind: Kind): { flags: string[]; open(): Promise<HubStore> } {
  if (kind === 'redis') return { flags: ['--store-url', redis.url], open: () => openRedisStore(redis.url) }
  const folder = temporaryFolder('backup')
  return { flags: ['--data-folder', folder], open: async () => new SqliteStore(join(folder, 'hub.sqlite')) }
}

async function firebreak(...words: string[]): Promise<{ code: number; out: string; said: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const io = { env: {}, stdin: process.stdin, stdout, stderr, signal: new AbortController().signal }
  const code = await runCommand(commands, words, io)
  return { code, out: String(stdout.read() ?? ''), said: String(stderr.read() ?? '') }
}

const rule = parseRule({ id: 'product', prefix: 'product_', threshold: 100, strategy: 'LocalCache' })
const event = (number: number) => ({
  at: number,
  kind: 'hot' as const,
  redisClusterId: 'main',
  key: `k${number}`,
  ruleId: 'product',
  text: 'hot',
})
const entry = (number: number) => ({
  at: number,
  who: 'ann',
  what: `change ${number}`,
  before: null,
  after: { number },
})

const block = { stepMs: 60_000, at: 120_000, writer: 'hub-a', data: 'AAEC' }

async function fill(store: HubStore): Promise<void> {
  await store.saveRule(rule)
  await store.saveSwitch(true)
  // More than goes in one step.
  for (let start = 1; start <= 500; start += 100) {
    await store.appendHistory(Array.from({ length: 100 }, (_, index) => event(start + index)))
  }
  for (let number = 1; number <= 3; number++) await store.appendAudit(entry(number))
  await store.saveRecord('credential', 'ann', '{"hash":"…"}')
  await store.saveRecord('alert-routes', 'slack', '{"shape":"slack"}')
  await store.saveRecord('forecast-settings', 'settings', '{}')
  await store.saveBlock(block)
  await store.saveRecord('session-secret', 'current', 'not-to-be-found')
  const policy = { version: 1, loadedAtMs: 5, origin: 'file', document: '{}' }
  await store.addPolicy(policy, entry(4))
  await store.close()
}

test.each([
  ['sqlite', 'sqlite'],
  ['sqlite', 'redis'],
  ['redis', 'sqlite'],
  ['redis', 'redis'],
] as [Kind, Kind][])('a backup of a %s store is restored into an empty %s store', async (from, to) => {
  const source = placeOf(from)
  await fill(await source.open())
  const file = join(temporaryFolder('backup-file'), 'backup.jsonl')
  expect(await firebreak('backup', ...source.flags, '--out', file)).toMatchObject({
    code: 0,
    said: 'backed up: 1 rules, 1 policy versions, 1 tokens, 1 alert routes and silences, 1 settings, 500 events, 1 blocks of heat, 4 audit entries\n',
  })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file, 'utf8')).not.toContain('not-to-be-found')
  if (to === 'redis') await redis.cli('FLUSHALL')
  const target = placeOf(to)
  expect((await firebreak('restore', file, ...target.flags)).said).toContain('restored: 1 rules')
  const store = await target.open()
  expect(await store.load()).toMatchObject({ rules: [rule], isOff: true, rulesVersion: 1 })
  expect(await store.history({ limit: 1000 })).toEqual(Array.from({ length: 500 }, (_, index) => event(500 - index)))
  const audit = await store.audit(10)
  expect(audit.slice(2)).toMatchObject([4, 3, 2, 1].map(entry))
  expect(audit[0]).toMatchObject({ what: expect.stringMatching(/^restore a backup of 20/), after: { history: 500 } })
  expect(await store.records('credential')).toEqual(new Map([['ann', '{"hash":"…"}']]))
  expect(await store.records('alert-routes')).toEqual(new Map([['slack', '{"shape":"slack"}']]))
  expect(await store.records('forecast-settings')).toEqual(new Map([['settings', '{}']]))
  expect(await store.blocks(60_000, 0, 1e15)).toEqual([block])
  expect(await store.policiesAfter(0)).toMatchObject([{ version: 1, origin: 'file' }])
  expect(audit[0]).toMatchObject({ after: { auditHead: expect.stringMatching(/^4:[0-9a-f]{64}$/) } })
  await store.close()
  expect(await firebreak('audit', 'verify', ...target.flags)).toMatchObject({ code: 0 })
})

test('a backup that is cut off, changed, newer or no backup is refused before anything is written', async () => {
  const source = placeOf('sqlite')
  await fill(await source.open())
  const { out } = await firebreak('backup', ...source.flags)
  const lines = out.trim().split('\n')
  const file = join(temporaryFolder('backup-file'), 'backup.jsonl')
  for (const [text, problem] of [
    [lines.slice(0, -1).join('\n'), 'has no end marker: it was truncated'],
    [out.slice(0, -20), 'not JSON: it was truncated or damaged'],
    [out.replace('product_', 'produce_'), 'is damaged'],
    [out.replace('"format":1', '"format":2'), 'in format 2; this is'],
    ['{"rules":[]}', 'not a Firebreak backup'],
  ] as const) {
    writeFileSync(file, text)
    const target = placeOf('sqlite')
    expect(await firebreak('restore', file, ...target.flags)).toMatchObject({
      code: 1,
      said: expect.stringContaining(problem),
    })
    const store = await target.open()
    expect([(await store.load()).rules, await store.audit(9)]).toEqual([[], []])
    await store.close()
  }
})

test('a store that is not empty is left alone, and one that is not there is told', async () => {
  const source = placeOf('sqlite')
  await fill(await source.open())
  const file = join(temporaryFolder('backup-file'), 'backup.jsonl')
  await firebreak('backup', ...source.flags, '--out', file)
  const again = await firebreak('restore', file, ...source.flags)
  expect(again).toMatchObject({ code: 1, said: expect.stringContaining('restore into an empty one') })
  expect((await firebreak('backup', '--data-folder', '/nowhere')).code).toBe(2)
  expect((await firebreak('backup')).said).toContain('--data-folder DIR or --store-url URL')
})

test('a backup knows every kind of record that a hub writes', () => {
  const sources = readdirSync(join(root, 'packages/hub/src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.includes('.test.') && !file.startsWith('store/'))
    .map((file) => readFileSync(join(root, 'packages/hub/src', file), 'utf8'))
    .filter((text) => /\.(saveRecord|records)\(/.test(text))
  const kinds = sources.flatMap((text) =>
    [...text.matchAll(/^const \w*[kK]ind = '([^']+)'/gm)].map(([, kind]) => kind!),
  )
  expect([...Object.keys(recordKinds), ...recordKindsLeftOut].sort()).toEqual(kinds.sort())
})
