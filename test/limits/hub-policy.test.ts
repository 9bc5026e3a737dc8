import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditEntry } from '@firebreak/core'
import {
  type GuardedChild,
  type RedisServer,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
/** The whole command is loaded at start, which takes long on a busy machine. */
const startMs = 120_000
vi.setConfig({ testTimeout: 300_000 })

const children: GuardedChild[] = []
let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.stop()))
})

const policyOf = (count: number) => `rules:
  - { return: 101, method: count, when: { uid: { any: true } }, seconds: 3600, count: ${count}, result: 2 }
`

async function startHubWith(args: readonly string[]) {
  const child = startSource(main, ['hub', '--port', '0', '--log-level', 'error', ...args])
  children.push(child)
  const [, url] = await child.printed(/hub (\S+)/, startMs)
  const call = async (method: string, path: string, body?: string): Promise<{ status: number; answer: unknown }> => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body !== undefined && { body, headers: { 'content-type': 'application/yaml' } }),
    })
    const text = await response.text()
    return { status: response.status, answer: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text }
  }
  return { child, call }
}

const stores: readonly [string, () => string[]][] = [
  ['SQLite', () => ['--data-folder', temporaryFolder('hub-policy')]],
  ['Redis', () => ['--store-url', redis.url]],
]

describe.each(stores)('a hub on %s', (_, storeArgs) => {
  test('serves the policy file, changes it by version, audits it and continues with it after kill -9', async () => {
    const file = join(temporaryFolder('policy'), 'policy.yaml')
    writeFileSync(file, policyOf(1))
    const args = [...storeArgs(), '--limits-policy', file]
    const { child, call } = await startHubWith(args)
    expect((await call('GET', '/v1/limits/rules')).answer).toMatchObject({ Version: 1, rules: [{ return: 101 }] })

    expect(await call('PUT', '/v1/limits/policy?expected=1', policyOf(2))).toMatchObject({ answer: { Version: 2 } })
    const stale = await call('PUT', '/v1/limits/policy?expected=1', policyOf(3))
    expect(stale).toMatchObject({ status: 409, answer: { code: 'FB_POLICY_CONFLICT' } })
    expect((await call('PUT', '/v1/limits/policy', policyOf(3))).status).toBe(400)
    expect((await call('PUT', '/v1/limits/policy?expected=2', 'rules: 7')).status).toBe(422)
    const kept = (await call('GET', '/v1/limits/policy/1?format=json')).answer
    expect(kept).toMatchObject({ rules: [{ count: 1 }] })
    expect((await call('GET', '/v1/limits/policy/9')).status).toBe(404)

    child.signal('SIGKILL')
    await child.exited
    writeFileSync(file, policyOf(9))
    const again = await startHubWith(args)
    // The file only initialises an empty store: the change made by API stays.
    expect((await again.call('GET', '/v1/limits/dump?format=json')).answer).toMatchObject({ rules: [{ count: 2 }] })
    const history = (await again.call('GET', '/v1/limits/history')).answer as { version: number; origin: string }[]
    expect(history.map(({ version, origin }) => [version, origin])).toEqual([
      [1, file],
      [2, 'api'],
    ])
    const rollback = await again.call('POST', '/v1/limits/rollback?version=1&expected=2')
    expect(rollback.answer).toEqual({ Version: 3 })
    expect((await again.call('POST', '/v1/limits/reload')).answer).toEqual({ Version: 4 })
    expect((await again.call('GET', '/v1/limits/dump?format=json')).answer).toMatchObject({ rules: [{ count: 9 }] })
    const { entries } = (await again.call('GET', '/v1/audit')).answer as { entries: AuditEntry[] }
    const changes = entries.filter(({ what }) => what === 'change rate-limit policy')
    expect(changes.map(({ who, after }) => [who, (after as { version: number }).version])).toEqual([
      ['local', 4],
      ['local', 3],
      ['local', 2],
      ['file', 1],
    ])
  })
})

test('hubs that share a store have the same policy within a second or two, and only one of two equal changes wins', async () => {
  const storeArgs = ['--store-url', `${redis.url}/1`]
  const one = await startHubWith(storeArgs)
  const two = await startHubWith(storeArgs)
  const changes = await Promise.all(
    [one, two].map(({ call }) => call('PUT', '/v1/limits/policy?expected=0', policyOf(4))),
  )
  expect(changes.map(({ status }) => status).sort()).toEqual([200, 409])
  for (const { call } of [one, two]) {
    await waitFor(async () => ((await call('GET', '/v1/limits/rules')).answer as { Version: number }).Version === 1, {
      what: 'version 1 on both hubs',
      timeoutMs: 10_000,
    })
  }
})

test('hubs with one --limits-redis count together, under Koala’s paths too, and read the file again on SIGHUP', async () => {
  const file = join(temporaryFolder('policy'), 'policy.yaml')
  writeFileSync(file, policyOf(2))
  const args = ['--limits-policy', file, '--limits-redis', `${redis.url}/2`, '--limits-koala-paths']
  const one = await startHubWith([...args, '--data-folder', temporaryFolder('hub-a')])
  const two = await startHubWith([...args, '--data-folder', temporaryFolder('hub-b'), '--limits-leak-storage', 'zset'])
  const browse = (hub: typeof one) => hub.call('POST', '/v1/limits/browse?uid=7&_writeThrough=yes')
  expect((await browse(one)).answer).toMatchObject({ Ret_type: 1 })
  expect((await two.call('GET', '/rule/browse?uid=7&_writeThrough=yes')).answer).toMatchObject({ Ret_type: 1 })
  expect((await browse(one)).answer).toMatchObject({ Ret_type: 2, Ret_code: 101 })
  expect((await browse(two)).answer).toMatchObject({ Ret_type: 2, Ret_code: 101 })

  writeFileSync(file, policyOf(5))
  one.child.signal('SIGHUP')
  await one.child.printed(/policy version 2/)
  expect((await browse(one)).answer).toMatchObject({ Ret_type: 1, Version: 2 })
  writeFileSync(file, 'rules: 7')
  one.child.signal('SIGHUP')
  await one.child.printed(/the old policy stays/)
  expect((await one.call('GET', '/v1/limits/rules')).answer).toMatchObject({ Version: 2 })
})

test('firebreak limits with a data folder continues with the newest policy and its versions after kill -9', async () => {
  const folder = temporaryFolder('limits-data')
  const file = join(folder, 'policy.yaml')
  writeFileSync(file, policyOf(1))
  const start = async () => {
    const child = startSource(main, ['limits', '--port', '0', '--policy', file, '--data-folder', folder])
    children.push(child)
    const [, url] = await child.printed(/rule service on (\S+?)\/v1\/limits\//, startMs)
    const call = async (method: string, path: string, body?: string) => {
      const init = body === undefined ? {} : { body, headers: { 'content-type': 'application/yaml' } }
      const response = await fetch(`${url}/v1/limits/${path}`, { method, ...init })
      return { status: response.status, answer: (await response.json()) as unknown }
    }
    return { child, call }
  }
  const { child, call } = await start()
  expect(await call('PUT', 'policy?expected=1', policyOf(3))).toMatchObject({ answer: { Version: 2 } })
  child.signal('SIGKILL')
  await child.exited
  writeFileSync(file, policyOf(9))
  const again = await start()
  expect((await again.call('GET', 'dump?format=json')).answer).toMatchObject({ rules: [{ count: 3 }] })
  expect((await again.call('PUT', 'policy?expected=1', policyOf(4))).status).toBe(409)
  expect((await again.call('POST', 'rollback?version=1&expected=2')).answer).toEqual({ Version: 3 })
  again.child.signal('SIGHUP')
  await again.child.printed(/policy version 4/)
  expect((await again.call('GET', 'dump?format=json')).answer).toMatchObject({ rules: [{ count: 9 }] })
})
