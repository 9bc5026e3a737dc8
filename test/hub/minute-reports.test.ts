import { startSource, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let hub: string
let end: () => unknown

beforeAll(async () => {
  const rules = [{ id: 'r', prefix: 'p', threshold: 100, windowMs: 1000, minHoldMs: 600_000 }]
  const child = startSource(new URL('./hub-process.ts', import.meta.url), [JSON.stringify({ initialRules: rules })])
  end = () => child.stop()
  hub = (await child.printed(/listening (\S+)/))[1]!
})
afterAll(() => end())

async function report(host: string, entries: string, interval: string): Promise<number> {
  const now = Date.now()
  const body = `# ${now},${now},shop,${host}${interval}\n# main\n${entries}\n`
  return (await fetch(`${hub}/v1/reports`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })).status
}

const hotKeys = async () => {
  const { clusters } = (await (await fetch(`${hub}/v1/table?service=shop`)).json()) as {
    clusters: Record<string, { keys: string[] }[]>
  }
  return (clusters['main'] ?? []).flatMap(({ keys }) => keys)
}

test('counts of a minute are spread over it: what is hot by the second is hot, what is only much by the minute is not', async () => {
  // 50 and 200 a second over a minute, told together; and the first again as one moment, of another key.
  expect(await report('minute', 'p-calm:3000,p-hot:12000', ',interval=60000')).toBe(204)
  await waitFor(async () => (await hotKeys()).includes('p-hot'))
  expect(await report('moment', 'p-once:3000', '')).toBe(204)
  await waitFor(async () => (await hotKeys()).includes('p-once'))
  expect(await hotKeys()).not.toContain('p-calm')
  const { hosts } = (await (await fetch(`${hub}/v1/hosts`)).json()) as { hosts: { hostId: string }[] }
  expect(hosts.map(({ hostId }) => hostId)).toContain('minute')
})
