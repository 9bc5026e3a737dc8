import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceTable } from '@firebreak/hub'
import { startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
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
  const child = startSource(hubProcess, [JSON.stringify({ initialRules: rules, hostTimeoutMs: 600_000 })])
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
  writeFileSync(file, '# for Friday\r\nproduct_1..3\r\n\r\n  product_7 \r\n')
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
    prewarm('product_50', '--at', '2020-01-01T00:00:00Z', '--for', '2h'),
  ])
  expect(refused.map(({ code, output }) => [code, output])).toEqual([
    [1, expect.stringMatching(/unknown cluster "mian"; there are main/)],
    [1, expect.stringMatching(/unknown service shpo; there are shop, web/)],
    [1, expect.stringMatching(/matches other_1 on the cluster main/)],
    [1, expect.stringMatching(/matches watched_1 /)],
    [1, expect.stringMatching(/matches product_50 for shop, web/)],
    [2, expect.stringMatching(/--file: \/none cannot be read/)],
    [1, expect.stringMatching(/at: 2020-01-01T00:00:00.000Z and the 7200 s after it have passed/)],
  ])
  expect(await hot()).toEqual(before)
  await report('shop', 'second', 'x', 1)
  const unsure = await prewarm('product_50')
  expect([unsure.code, unsure.output]).toEqual([
    1,
    expect.stringMatching(/--cluster: .*say which cluster; there are main, second/),
  ])
  const list = await prewarm('list')
  expect([list.code, list.output]).toEqual([2, expect.stringContaining('did you mean "prewarm --list"?')])
  expect((await prewarm('product_50', '--cluster', 'second')).code).toBe(0)
  expect(await hot()).toMatchObject({ second: [{ keys: ['product_50'] }] })
})

test('a service that only reads its table is there, and is warmed like any other', async () => {
  const read = (waitMs: number) => fetch(`${hub}/v1/table?service=reader&version=0&waitMs=${waitMs}`)
  // Somebody who looks once is no service.
  await read(0)
  expect((await prewarm('product_60', '--cluster', 'main', '--service', 'reader')).code).toBe(1)
  await read(1)
  expect((await prewarm('product_60', '--cluster', 'main', '--service', 'reader')).code).toBe(0)
  // And has what was warmed for everybody before it came.
  await waitFor(async () => {
    const keys = JSON.stringify(await hot('reader'))
    return keys.includes('product_60') && keys.includes('product_7')
  })
})

test('a job by cron is listed with its next time in its zone, and can be cancelled', async () => {
  const friday = await prewarm(
    'product_71',
    '--cluster',
    'main',
    '--cron',
    '58 9 * * fri',
    '--time-zone',
    'Asia/Shanghai',
  )
  expect(friday.code, friday.output).toBe(0)
  const jobs = JSON.parse((await prewarm('--list', '--json')).output) as {
    jobs: { id: string; keys: string[]; at: number }[]
  }
  const next = jobs.jobs.find(({ keys }) => keys[0] === 'product_71')!
  const shown = new Date(next.at).toLocaleString('en-GB', {
    timeZone: 'Asia/Shanghai',
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
  })
  expect(shown).toMatch(/Fri.*09:58/)
  expect((await prewarm('--list')).output).toContain('product_71')
  expect((await prewarm('--cancel', next.id)).code).toBe(0)
  expect((await prewarm('--list')).output).not.toContain('product_71')
  const wrong = [
    await prewarm('product_72', '--cluster', 'main', '--cron', '61 * * * *'),
    await prewarm('product_72', '--cluster', 'main', '--cron', '* * * * *', '--time-zone', 'Asia/Shangai'),
  ]
  expect(wrong.map(({ code, output }) => [code !== 0, output])).toEqual([
    [true, expect.stringContaining('minute: "61" is not within 0 to 59')],
    [true, expect.stringContaining('unknown time zone "Asia/Shangai"')],
  ])
})
