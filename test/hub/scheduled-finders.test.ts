import { startHub } from '@firebreak/hub'
import { startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 60_000 })

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function openRedis(policy: string) {
  const redis = await startRedis({ args: ['--maxmemory-policy', policy] })
  ends.push(() => redis.stop())
  const client = new Redis(redis.port)
  ends.push(() => client.disconnect())
  return { url: `redis://127.0.0.1:${redis.port}`, client }
}

async function get<T>(url: string, path: string): Promise<T> {
  return (await (await fetch(`${url}${path}`)).json()) as T
}

async function openHub(url: string, finderSchedule: readonly string[]) {
  const rule = { id: 'orders', prefix: 'orders', threshold: 10, windowMs: 2000 }
  const hub = await startHub({ engines: [`main=${url}`], finderSchedule, initialRules: [rule], logLevel: 'silent' })
  ends.push(() => hub.close())
  return hub
}

test('a key that no process of ours reads is found by the schedule, becomes hot, and is shown as a finder’s', async () => {
  const { url, client } = await openRedis('allkeys-lfu')
  await client.set('orders', 'x'.repeat(5000))
  await client.set('cold', 'x')
  // Somebody reads it all the time, some thousand times a second.
  const reading = setInterval(() => void Promise.all(Array.from({ length: 50 }, () => client.get('orders'))), 20)
  ends.push(() => clearInterval(reading))
  const hub = await openHub(url, ['main big every 1s', 'main hot every 1s'])
  await waitFor(() => hub.core.delivery.has('main', 'orders'), { timeoutMs: 30_000 })
  expect(hub.core.delivery.has('main', 'cold')).toBe(false)
  const { hosts } = await get<{ hosts: unknown[] }>(hub.url, '/v1/hosts')
  expect(hosts).toMatchObject([{ agent: 'finder', serviceId: 'finder' }])
  const { runs } = await get<{ runs: { kind: string; who: string }[] }>(hub.url, '/v1/finders')
  expect(new Set(runs.map(({ kind }) => kind))).toEqual(new Set(['big', 'hot']))
  expect(new Set(runs.map(({ who }) => who))).toEqual(new Set(['the schedule']))
  // What processes report themselves is not told again: it would count twice.
  const beside = await openHub(url, ['main hot every 1s'])
  let reported = 0
  await waitFor(async () => {
    const now = Date.now()
    const body = `# ${now - 100},${now},shop,h1\n# main\norders:100000\n`
    const headers = { 'content-type': 'text/plain' }
    if (reported++ % 5 === 0) await fetch(`${beside.url}/v1/reports`, { method: 'POST', body, headers })
    const { runs: done } = await get<{ runs: { state: string }[] }>(beside.url, '/v1/finders')
    return done.filter(({ state }) => state === 'done').length >= 3
  })
  const { hosts: known } = await get<{ hosts: { serviceId: string }[] }>(beside.url, '/v1/hosts')
  expect(known.map(({ serviceId }) => serviceId)).toEqual(['shop'])
})

test('a look that fails is an alarm until one succeeds', async () => {
  const { url, client } = await openRedis('noeviction')
  const hub = await openHub(url, ['main hot every 1s'])
  const isAlarmed = () => hub.core.alarms.list().some(({ id }) => id === 'finder:main/hot')
  await waitFor(isAlarmed, { timeoutMs: 30_000 })
  await client.config('SET', 'maxmemory-policy', 'allkeys-lfu')
  await waitFor(() => !isAlarmed(), { timeoutMs: 30_000 })
})

test('a plan that cannot be carried out is refused at the start', async () => {
  for (const [line, message] of [
    ['other hot every 1s', /other is not among the engines \(main\)/],
    ['main warm every 1s', /must be CLUSTER hot\|big/],
    ['main hot 61 * * * *', /minute: "61"/],
    ['main hot 0 3 * * * in Nowhere', /unknown time zone/],
  ] as const) {
    const options = { engines: ['main=redis://127.0.0.1:1'], finderSchedule: [line], logLevel: 'silent' }
    await expect(startHub(options)).rejects.toThrow(message)
  }
})
