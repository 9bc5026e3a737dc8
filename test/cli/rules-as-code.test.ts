import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { peek, protect, shieldOf } from '@firebreak/client'
import type { AuditEntry, RulesView } from '@firebreak/core'
import { startRedis, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
const hubProcess = new URL('../hub/hub-process.ts', import.meta.url)
const operator = 'ann-token-0123456789'
const tokens = {
  apps: [{ name: 'shop', token: 'shop-token-0123456789', services: ['shop'], clusters: ['*'] }],
  people: [{ name: 'ann', token: operator, role: 'operator' }],
}
const folder = temporaryFolder('rules')
const file = join(folder, 'rules.yaml')
const ends: (() => unknown)[] = []
let hub: string

beforeAll(async () => {
  const initialRules = [
    { id: 'old', prefix: 'old_', threshold: 10 },
    { id: 'product', prefix: 'product_', share: 0.2, strategies: ['LocalCache', 'RedundantKeys'] },
  ]
  const child = startSource(hubProcess, [JSON.stringify({ initialRules, tokens })])
  ends.push(() => child.stop())
  hub = (await child.printed(/listening (\S+)/))[1]!
})
afterAll(async () => {
  for (const end of ends) await end()
})

async function rules(...words: string[]): Promise<{ code: number | null; output: string }> {
  const env = { ...process.env, FIREBREAK_TOKEN: operator, FIREBREAK_HUB: hub }
  const child = startSource(main, ['rules', ...words], { env })
  const code = await child.exited
  return { code, output: child.output() }
}

async function get<Answer>(path: string): Promise<Answer> {
  return (await (await fetch(`${hub}${path}`, { headers: { authorization: `Bearer ${operator}` } })).json()) as Answer
}
const inForce = () => get<RulesView>('/v1/rules')
const audit = async () =>
  (await get<{ entries: AuditEntry[] }>('/v1/audit')).entries.filter(({ who }) => who === 'ann').map(({ what }) => what)

test('what is exported is what apply takes: no difference, no change, no line in the audit', async () => {
  const before = await inForce()
  for (const words of [[], ['--json']]) {
    const { code, output } = await rules('export', ...words)
    expect(code).toBe(0)
    writeFileSync(file, output)
    expect(await rules('apply', file, '--diff', '--prune')).toEqual({ code: 0, output: 'Nothing to change.\n' })
    expect(await rules('apply', file, '--prune')).toMatchObject({
      code: 0,
      output: expect.stringContaining('rule old is unchanged'),
    })
  }
  expect(await inForce()).toEqual(before)
  expect(await audit()).toEqual([])
})

test('a difference is shown with exit code 3 and changes nothing; applied, it is audited, and applied again it is nothing', async () => {
  writeFileSync(
    file,
    `rules:
  - {id: product, prefix: product_, threshold: 500, windowMs: 2000}
  - {id: stock, suffix: ":stock", threshold: 50, strategy: Observe}
`,
  )
  const before = await inForce()
  const diff = await rules('apply', file, '--diff', '--prune')
  expect(diff.code).toBe(3)
  expect(diff.output).toMatch(/^~ product\n {4}windowMs: 1000 -> 2000\n {4}levels: .*\n\+ stock \{.*\n- old \{.*\n$/)
  expect((await rules('apply', file, '--diff')).output).not.toContain('- old')
  expect(await inForce()).toEqual(before)
  expect((await rules('apply', file, '--prune')).code).toBe(0)
  expect((await inForce()).rules.map(({ id }) => id)).toEqual(['product', 'stock'])
  const audited = ['delete rule old', 'add rule stock', 'change rule product']
  expect(await audit()).toEqual(audited)
  expect((await rules('apply', file, '--prune')).code).toBe(0)
  expect(await audit()).toEqual(audited)
})

test('a rule whose keys another takes is told to have no effect', async () => {
  writeFileSync(file, '- {id: coupons, prefix: "coupon:", threshold: 5, strategy: Observe, priority: 1000}\n')
  expect((await rules('apply', file)).output).not.toContain('no effect')
  writeFileSync(file, '- {id: night-fix, key: "coupon:1", threshold: 5, strategy: LocalCache, priority: 100}\n')
  expect(await rules('apply', file)).toEqual({
    code: 0,
    output: expect.stringMatching(/applied\nrule night-fix has no effect: rule coupons \(priority 1000\) takes all/),
  })
  for (const id of ['coupons', 'night-fix']) await rules('remove', id)
})

test('a file with a wrong rule, one twice, or none at all changes nothing', async () => {
  const before = await inForce()
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const good = '- {id: new, prefix: new_, threshold: 5}\n'
  const results = await Promise.all([
    rules('apply', write('wrong.yaml', `${good}- {id: bad, prefix: bad_, treshold: 5}\n`)),
    rules('apply', write('twice.yaml', good + good)),
    rules('apply', write('empty.yaml', ''), '--prune'),
    rules('apply', join(folder, 'none.yaml')),
    rules('export', '--prune'),
  ])
  expect(results.map(({ code, output }) => [code, output])).toEqual([
    [2, expect.stringMatching(/wrong\.yaml: rule bad: .*treshold.*did you mean/)],
    [2, expect.stringContaining('the rule new appears twice')],
    [2, expect.stringContaining('is empty')],
    [2, expect.stringContaining('cannot be read')],
    [2, expect.stringContaining('belong to "rules apply FILE"')],
  ])
  expect(await inForce()).toEqual(before)
})

test('rules imported from JD hotkey and Sentinel are applied, and a key is cached and another limited by them', async () => {
  const jd = [{ key: 'sku_', prefix: true, interval: 1, threshold: 20, duration: 30 }]
  const sentinel = [
    { resource: 'getProduct', grade: 1, paramIdx: 0, count: 5, burstCount: 3, durationInSec: 60, clusterMode: true },
  ]
  for (const [from, content, ...keys] of [
    ['jd-hotkey', jd],
    ['sentinel', sentinel, '--keys', 'getProduct=product_{param}'],
  ] as const) {
    const source = join(folder, `${from}.json`)
    writeFileSync(source, JSON.stringify(content))
    const imported = await rules('import', source, '--from', from, ...keys)
    expect(imported.code).toBe(0)
    writeFileSync(file, imported.output)
    expect(await rules('apply', file)).toMatchObject({ code: 0 })
  }
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const options = { hubs: [hub], token: 'shop-token-0123456789', serviceId: 'shop', redisClusterId: 'main' }
  const client = protect(new Redis(redis.port), { ...options, tableFile: false, onWarning() {} })
  ends.push(() => {
    shieldOf(client)?.close()
    client.disconnect()
  })
  await client.mset('sku_1', 'a', 'product_7', 'b')
  await waitFor(async () => {
    await Promise.all(Array.from({ length: 10 }, () => client.get('sku_1')))
    return peek(client, 'sku_1') !== undefined
  })
  const refused = await waitFor(async () =>
    client.get('product_7').then(
      () => undefined,
      (error: Error) => error,
    ),
  )
  expect(refused.message).toMatch(/product_7/)
})
