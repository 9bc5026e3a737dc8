import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceTable } from '@firebreak/hub'
import { startSource, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
const hubProcess = new URL('../hub/hub-process.ts', import.meta.url)
const rules = [
  {
    id: 'product',
    prefix: 'product_',
    windowMs: 1000,
    levels: [
      { threshold: 10, strategy: 'Observe' },
      { threshold: 100_000, strategies: ['Observe', 'LocalCache'] },
    ],
  },
  { id: 'web-product', service: 'web', prefix: 'product_', priority: 5, threshold: 100, strategy: 'Observe' },
  { id: 'watched', prefix: 'watched_', threshold: 100, strategy: 'Observe' },
]

const ends: (() => unknown)[] = []
let hub: string

beforeAll(async () => {
  const child = startSource(hubProcess, [JSON.stringify({ initialRules: rules })])
  ends.push(() => child.stop())
  hub = (await child.printed(/listening (\S+)/))[1]!
  await report('shop', 'main', 'x', 1)
})
afterAll(async () => {
  for (const end of ends) await end()
})

async function report(service: string, cluster: string, key: string, count: number): Promise<void> {
  const body = `# ${Date.now()},${Date.now()},${service},host-1\n# ${cluster}\n${key}:${count}\n`
  await fetch(`${hub}/v1/reports`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })
}

async function prewarm(...words: string[]): Promise<{ code: number | null; output: string }> {
  const child = startSource(main, ['prewarm', ...words, '--hub', hub])
  const code = await child.exited
  return { code, output: child.output() }
}

async function hot(service = 'shop'): Promise<unknown> {
  const table = (await (await fetch(`${hub}/v1/table?service=${service}`)).json()) as ServiceTable
  return table.clusters
}

test('a pre-warm takes the only cluster there is, and the first level that does something, through reads that are few', async () => {
  const dry = await prewarm('product_1..3', '--dry-run')
  expect([dry.code, dry.output]).toEqual([
    0,
    expect.stringMatching(/3 keys .*LocalCache by rule product, level 2, for shop/),
  ])
  expect(await hot()).toEqual({})
  const file = join(temporaryFolder('prewarm'), 'keys.txt')
  writeFileSync(file, 'product_1..3\n\nproduct_7\n')
  expect(await prewarm('--file', file)).toMatchObject({ code: 0, output: expect.stringContaining('4 keys are hot') })
  const warm = { main: [{ strategy: 'LocalCache', keys: ['product_1', 'product_2', 'product_3', 'product_7'] }] }
  expect(await hot()).toMatchObject(warm)
  // Enough for the level that only observes: it must not take the key down to it.
  const { version } = (await (await fetch(`${hub}/v1/table?service=shop`)).json()) as ServiceTable
  await report('shop', 'main', 'product_1', 50)
  await fetch(`${hub}/v1/table?service=shop&version=${version}&waitMs=1500`)
  expect(await hot()).toMatchObject(warm)
})

test('what would miss is an error that names what exists, and warms nothing', async () => {
  const before = await hot()
  const refused = await Promise.all([
    prewarm('product_50', '--cluster', 'mian'),
    prewarm('product_50', '--service', 'shpo'),
    prewarm('product_50', 'other_1'),
    prewarm('watched_1'),
    prewarm('product_50', '--service', 'shop', '--service', 'web', '--at', '23:59'),
    prewarm('--file', '/none'),
  ])
  expect(refused.map(({ code, output }) => [code, output])).toEqual([
    [1, expect.stringMatching(/no cluster "mian"; there are main/)],
    [1, expect.stringMatching(/no service shpo; there are shop, web/)],
    [1, expect.stringMatching(/matches other_1 on the cluster main/)],
    [1, expect.stringMatching(/matches watched_1 /)],
    [1, expect.stringMatching(/matches product_50 for shop, web/)],
    [2, expect.stringMatching(/--file: \/none cannot be read/)],
  ])
  expect(await hot()).toEqual(before)
  await report('shop', 'second', 'x', 1)
  const unsure = await prewarm('product_50')
  expect([unsure.code, unsure.output]).toEqual([
    1,
    expect.stringMatching(/which cluster is meant; there are main, second/),
  ])
  expect((await prewarm('product_50', '--cluster', 'second')).code).toBe(0)
  expect(await hot()).toMatchObject({ second: [{ keys: ['product_50'] }] })
})
