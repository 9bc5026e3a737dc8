import { PassThrough } from 'node:stream'
import { encodeBinaryReport, type ForecastView, type KeyView } from '@firebreak/core'
import { type Hub, type HubStore, MemoryStore, startHub } from '@firebreak/hub'
import { FakeClock, fakeRuntime, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { afterEach, expect, test } from 'vitest'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** A Monday, just before the first time. */
const monday = Date.UTC(2026, 8, 28)
const hubs: Hub[] = []
afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.close()
})

/** A whole hub with its API, on a clock that the test moves. */
async function openHub(clock: FakeClock, store: HubStore = new MemoryStore()): Promise<Hub> {
  const runtime = fakeRuntime(1, clock)
  const rule = { id: 'banners', prefix: 'banner', threshold: 100, minHoldMs: 1000, strategy: 'LocalCache' }
  const hub = await startHub({ runtime, store, initialRules: [rule], logLevel: 'silent', loadOf: () => 0 })
  hubs.push(hub)
  return hub
}

/** Time passes without anything happening: nights are stepped over. */
async function sleepUntil(clock: FakeClock, at: number): Promise<void> {
  clock.step(Math.max(0, at - clock.now() - 5000))
  await pass(clock, at - clock.now())
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) await clock.advanceAsync(Math.min(500, left), 500)
}

let sequence = 0
async function burn(hub: Hub, clock: FakeClock, key: string, seconds: number): Promise<void> {
  for (let tick = 0; tick < seconds * 2; tick++) {
    const times = { collectTs: clock.now(), sendTs: clock.now() }
    const sections = [{ redisClusterId: 'main', entries: [{ key, count: 500, writes: 0, bytes: 0 }] }]
    const report = encodeBinaryReport({ ...times, serviceId: 'shop', hostId: 'h', instanceId: 'i', sections })
    hub.core.collector.collectBinary(report, 0, ++sequence)
    await pass(clock, 500)
  }
}

async function forecast(hub: Hub): Promise<ForecastView> {
  return (await (await fetch(`${hub.url}/v1/forecast`)).json()) as ForecastView
}

async function hotKeys(hub: Hub): Promise<KeyView[]> {
  const answer = await fetch(`${hub.url}/v1/keys`)
  // A key that is only held is cooling.
  return ((await answer.json()) as { keys: KeyView[] }).keys.filter(({ strategy }) => strategy !== null)
}

function cli(hub: Hub, ...words: string[]): Promise<{ code: number; out: string }> {
  const stdout = new PassThrough()
  const io = { env: { FIREBREAK_HUB: hub.url }, stdin: process.stdin, stdout, stderr: stdout }
  return runCommand(commands, words, { ...io, signal: new AbortController().signal }).then((code) => ({
    code,
    out: String(stdout.read() ?? ''),
  }))
}

/** The banner is hot at 10:00 on so many days from Monday on. */
async function burnDays(hub: Hub, clock: FakeClock, days: number): Promise<void> {
  for (let day = 0; day < days; day++) {
    await sleepUntil(clock, monday + day * dayMs + 10 * hourMs)
    await burn(hub, clock, 'banner_home', 5)
    await pass(clock, 30_000)
  }
}

test('what was hot at 10:00 on four days is shown with its confidence, and warmed on the fifth where that is wished', async () => {
  const clock = new FakeClock(monday + 9 * hourMs)
  const hub = await openHub(clock)
  await burnDays(hub, clock, 4)
  const { recurrences, settings } = await forecast(hub)
  expect(settings).toEqual({ mode: 'suggest', leadMs: 120_000, timeZone: 'UTC' })
  const [recurrence] = recurrences.filter(({ isPrefix }) => !isPrefix)
  expect(recurrence).toMatchObject({
    name: 'banner_home',
    when: '10:00',
    cycle: 'day',
    seen: 4,
    missed: 0,
    isTrusted: true,
  })
  expect(recurrence!.confidence).toBeGreaterThan(0.8)
  expect(recurrence!.text).toMatch(/^banner_home burns each day at 10:00, seen 4 times and missed 0: \d+ % sure$/)
  const { out } = await cli(hub, 'forecast')
  expect(out).toMatch(/banner_home +main +10:00 +\d+ %/)

  // Suggested, and so nothing is done.
  await sleepUntil(clock, monday + 4 * dayMs + 10 * hourMs - 60_000)
  expect(await hotKeys(hub)).toEqual([])
  await burn(hub, clock, 'banner_home', 5)
  await pass(clock, 30_000)

  expect(await cli(hub, 'forecast', '--mode', 'do')).toMatchObject({
    code: 0,
    out: expect.stringContaining('warmed 120 s before'),
  })
  // Before the job is made, and then its time.
  await sleepUntil(clock, monday + 5 * dayMs + 10 * hourMs - 12 * 60_000)
  await sleepUntil(clock, monday + 5 * dayMs + 10 * hourMs - 60_000)
  const [warmed] = await waitFor(async () => {
    await pass(clock, 1000)
    const keys = await hotKeys(hub)
    return keys.length > 0 && keys
  })
  expect(warmed).toMatchObject({ key: 'banner_home', ratePerSecond: 0, ruleId: 'banners' })
  const events = await hub.core.store.history({ limit: 50 })
  expect(events.find(({ kind }) => kind === 'prewarm')?.text).toMatch(
    /^pre-warmed by forecast: it recurs each day at 10:00 \(UTC\), \d+ % sure/,
  )
}, 120_000)

test('what was learnt outlives the hub, and a hub that never forecast begins with its history', async () => {
  const clock = new FakeClock(monday + 9 * hourMs)
  const store = new MemoryStore()
  const first = await openHub(clock, store)
  await burnDays(first, clock, 4)
  const before = (await forecast(first)).recurrences.filter(({ isPrefix }) => !isPrefix)
  await hubs.pop()!.close()
  const second = await openHub(clock, store)
  const after = (await forecast(second)).recurrences.filter(({ isPrefix }) => !isPrefix)
  expect(after.map(({ name, seen, nextAt }) => [name, seen, nextAt])).toEqual(
    before.map(({ name, seen, nextAt }) => [name, seen, nextAt]),
  )
  await hubs.pop()!.close()
  // An earlier version kept no such records, but the history is there.
  for (const name of (await store.records('forecast')).keys()) await store.saveRecord('forecast', name, undefined)
  const third = await openHub(clock, store)
  const learnt = (await forecast(third)).recurrences.filter(({ isPrefix }) => !isPrefix)
  expect(learnt).toMatchObject([{ name: 'banner_home', seen: 4, when: expect.stringMatching(/^(09:59|10:00)$/) }])
}, 120_000)

test('settings are checked and audited', async () => {
  const hub = await openHub(new FakeClock(monday))
  const put = (body: object) =>
    fetch(`${hub.url}/v1/forecast/settings`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  expect(await (await put({ timeZone: 'Mars/Olympus' })).json()).toMatchObject({
    code: 'FB_INPUT_INVALID',
    field: 'timeZone',
  })
  expect((await put({ mode: 'maybe' })).status).toBe(400)
  expect(await (await put({ timeZone: 'Asia/Shanghai', mode: 'off' })).json()).toEqual({
    mode: 'off',
    leadMs: 120_000,
    timeZone: 'Asia/Shanghai',
  })
  const { entries } = (await (await fetch(`${hub.url}/v1/audit`)).json()) as { entries: { what: string }[] }
  expect(entries.map(({ what }) => what)).toContain('change the forecast')
  expect((await cli(hub, 'forecast', '--mode', 'maybe')).code).toBe(2)
})
