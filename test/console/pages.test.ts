import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pageFolder } from '@firebreak/console'
import {
  type AlarmView,
  type AlertRouteView,
  type EpisodesView,
  type ForecastView,
  type HeatMapView,
  type HeatReport,
  type HistorySettingsView,
  type KeyInspection,
  readableKey,
} from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { pageNames } from './browser.ts'
import { policy } from './busy-hub.ts'
import { openStage, type Stage } from './stage.ts'

// A browser beside other test files on two cores: none of these waits for time to pass.
vi.setConfig({ testTimeout: 150_000 })

let stage: Stage
const told: string[] = []
let receiver: Server

beforeAll(async () => {
  receiver = createServer((request, response) => {
    request.resume()
    told.push(request.url!)
    response.end('ok')
  }).listen(0, '127.0.0.1')
  stage = await openStage()
  // Observed only, and more than a fifth of the load: an alarm.
  stage.busy.burst('feed:101', 1500)
})
afterAll(async () => {
  expect(stage?.errors ?? []).toEqual([])
  await stage?.close()
  receiver?.close()
})

test('an alarm leads to its key, is acknowledged and silenced, audited, and taken back', async () => {
  const { page, at, notice, busy, audited } = stage
  await at('#/alerts')
  const alarm = page.locator('.alarm', { hasText: 'feed:101' })
  await alarm.waitFor({ timeout: 60_000 })
  // On a busy machine the load may come in gusts: the alarm ends and begins again.
  await waitFor(async () => {
    const { alarms } = await busy.api<{ alarms: { id: string; cause: string }[] }>('GET', '/v1/alarms')
    return alarms.some(({ id }) => id === 'hot-key:main/feed%3A101') && (await alarm.count()) === 1
  })
  await alarm.locator('button', { hasText: 'Acknowledge' }).click()
  await alarm.locator('text=Seen by local').waitFor()
  await alarm.locator('button', { hasText: 'Silence …' }).click()
  await page.locator('dialog [name=forMs]').selectOption({ label: '8 h' })
  await page.locator('dialog [name=why]').fill('the sale begins')
  await page.locator('dialog button', { hasText: /^Silence$/ }).click()
  await alarm.locator('text=/Silenced by local until .*: the sale begins/').waitFor()
  const silenced = (await busy.api<{ alarms: AlarmView[] }>('GET', '/v1/alarms')).alarms.find(({ silence }) => silence)
  expect(silenced!.silence!.until - Date.now()).toBeGreaterThan(7.9 * 3_600_000)
  await notice('Silenced for 8 h').locator('button', { hasText: 'Undo' }).click()
  await alarm.locator('button', { hasText: 'Silence …' }).waitFor()
  expect((await audited(/alarm/)).length).toBeGreaterThanOrEqual(3)
  await alarm.locator('a', { hasText: 'Open feed:101' }).click()
  await page.locator('.key-head', { hasText: 'feed:101' }).waitFor()
})

test('a route of alarms is saved with every field, comes back unchanged, is tested, and told', async () => {
  const { page, at, notice, busy, section } = stage
  await at('#/alerts')
  await page.click('button:text-is("New route")')
  const form = page.locator('dialog form')
  await form.locator('[name=name]').fill('night')
  await form.locator('[name=shape]').selectOption('plain')
  await form.locator('[name=url]').fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`)
  await form.locator('[name=secret]').fill('s3cret')
  await form.locator('[name=severity]').selectOption('critical')
  await form.locator('[name=alarms]').fill('store\nboard')
  await form.locator('[name=isEnabled]').uncheck()
  await form.locator('button', { hasText: 'Save route' }).click()
  await section('Routes').locator('tr', { hasText: 'night' }).waitFor()
  const routeOf = async () =>
    (await busy.api<{ routes: AlertRouteView[] }>('GET', '/v1/alert-routes')).routes.find(
      ({ name }) => name === 'night',
    )
  const saved = await routeOf()
  expect(saved).toMatchObject({ shape: 'plain', severity: 'critical', alarms: ['store', 'board'], isEnabled: false })
  await section('Routes').locator('tr', { hasText: 'night' }).locator('button', { hasText: 'Edit' }).click()
  expect(await form.locator('[name=alarms]').inputValue()).toBe('store\nboard')
  await form.locator('button', { hasText: 'Save route' }).click()
  await form.waitFor({ state: 'detached' })
  expect(await routeOf()).toEqual(saved)
  // A new one of the same name would have replaced it, address and secret.
  await page.click('button:text-is("New route")')
  await form.locator('[name=name]').fill('night')
  await form.locator('[name=url]').fill('http://127.0.0.1:9/other')
  await form.locator('button', { hasText: 'Save route' }).click()
  await form.locator('.problem', { hasText: 'There is a route night already' }).waitFor()
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  expect(await routeOf()).toEqual(saved)
  await section('Routes').locator('tr', { hasText: 'night' }).locator('button', { hasText: 'Test' }).click()
  await notice('Sent to night').waitFor()
  expect(told).toEqual(['/hook'])
  await section('Delivery log').locator('tr', { hasText: 'night' }).locator('text=yes').waitFor()
  await section('Routes').locator('tr', { hasText: 'night' }).locator('button', { hasText: 'Remove' }).click()
  await page.locator('dialog', { hasText: 'cannot be restored' }).locator('button', { hasText: 'Remove' }).click()
  await notice('Route night removed').waitFor()
  expect(await routeOf()).toBeUndefined()
})

test('the heat map shows what the API tells; a brush zooms, a cell gives its keys, a row of a key opens it', async () => {
  const { page, at, busy } = stage
  await at('#/heat?by=prefix')
  const canvas = page.locator('canvas.heat-canvas')
  await canvas.waitFor({ timeout: 60_000 })
  await page.locator('button', { hasText: 'as table' }).click()
  const table = page.locator('div.scroll[aria-label="Heat map"]')
  await table.waitFor()
  const map = await busy.api<HeatMapView>('GET', '/v1/history/heatmap?by=prefix&rows=48&columns=240')
  const names = (await table.locator('tbody tr td:first-child').allInnerTexts()).sort()
  const shown = (text: string) => (readableKey(text).trim() === '' ? '“ ”' : readableKey(text))
  expect(names).toEqual(map.rows.map(({ name, redisClusterId }) => `${shown(name)} · ${redisClusterId}`).sort())
  await table.locator('tr', { hasText: 'feed: · main' }).locator('button', { hasText: 'Keys at its peak' }).click()
  await page.locator('section[aria-label="Keys of the cell"] a', { hasText: 'feed:101' }).first().waitFor()
  // By name and time: the map moves on, and its rows change places.
  expect(new URLSearchParams(page.url().split('?')[1]).get('cell')).toMatch(/^\d+\/\d+\/main\/feed%253A$/)
  await page.locator('button', { hasText: 'as chart' }).click()
  await canvas.waitFor()
  await page.locator('button', { hasText: 'Play back' }).click()
  await page.locator('.play .muted', { hasText: 'hottest:' }).waitFor()
  await page.locator('button', { hasText: 'Stop' }).click()
  const box = (await canvas.boundingBox())!
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.98, box.y + 20, { steps: 4 })
  await page.mouse.up()
  await waitFor(() => /from=\d+&to=\d+/.test(page.url()))
  await page.locator('button', { hasText: 'Back to now' }).click()
  await at('#/heat?by=key')
  await waitFor(async () => (await page.locator('.heat-rows li').count()) > 10)
  const drawn = (await canvas.boundingBox())!
  await canvas.click({ position: { x: drawn.width - 4, y: 4 } })
  await page.locator('.key-head').waitFor()
  expect(page.url()).toMatch(/#\/key\/main\/.*from=/)
})

test('the timeline tells each step as the API does, and is filtered by key, rule, service and person', async () => {
  const { page, at, busy } = stage
  const rows = page.locator('div.scroll[aria-label="Episodes"] tbody tr')
  await at('#/timeline?key=product:101')
  await rows.first().waitFor()
  const path = '/v1/history/events?limit=25&key=product%253A101'
  await waitFor(async () => {
    const { episodes } = await busy.api<EpisodesView>('GET', path)
    return (await rows.count()) === episodes.length && episodes.some(({ handledAt }) => handledAt !== null)
  })
  await waitFor(async () => /detected[\s\S]*delivered[\s\S]*\+[\s\S]*handled/.test(await rows.first().innerText()))
  await at('#/timeline?rule=cart')
  await waitFor(async () => {
    const texts = await rows.allInnerTexts()
    return texts.length > 0 && texts.every((text) => text.includes('cart:'))
  })
  await at('#/timeline?service=accounts')
  await waitFor(async () => {
    const texts = await rows.allInnerTexts()
    return texts.length > 0 && texts.every((text) => text.includes('accounts'))
  })
  // Single events have the same filter, and every page of them.
  const events = page.locator('div.scroll[aria-label="Events"] tbody tr')
  const { episodes } = await busy.api<EpisodesView>('GET', '/v1/history/events?limit=1000&service=accounts')
  const keys = new Set(episodes.map(({ key }) => readableKey(key)))
  await waitFor(async () => {
    const names = await events.locator('.key-link code').allInnerTexts()
    return names.length > 0 && names.every((name) => keys.has(name))
  })
  await at('#/timeline?who=nobody')
  await page.locator('section[aria-label=Episodes] .empty').waitFor()
  await page.locator('section[aria-label=Events] .empty').waitFor()
})

test('the timeline reaches any period by its fields, shows what people did, and keeps the period on other pages', async () => {
  const { page, at, busy, section } = stage
  await busy.api('PUT', '/v1/rules/late', { prefix: 'late:', threshold: 500 })
  await at('#/timeline')
  await section('People').locator('tr', { hasText: 'add rule late' }).waitFor()
  expect(await section('Filter').locator('.drawing').getAttribute('aria-label')).toMatch(/hot at the end, \d+ at most/)
  await waitFor(async () => (await page.locator('section[aria-label=Events] .paging span').count()) > 0)
  const first = await page.locator('div.scroll[aria-label="Events"] tbody tr').first().innerText()
  await page.locator('section[aria-label=Events] .paging button', { hasText: 'Next' }).click()
  await waitFor(async () => {
    const rows = page.locator('div.scroll[aria-label="Events"] tbody tr')
    return (await rows.count()) > 0 && (await rows.first().innerText()) !== first
  })
  expect(page.url()).toContain('events=1')
  await page.locator('button', { hasText: 'From … to …' }).click()
  await page.locator('input[name=from]').fill('2026-01-02T03:00:00')
  await waitFor(() => page.url().includes(`from=${new Date(2026, 0, 2, 3).getTime()}`))
  await page.locator('input[name=to]').fill('2026-01-02T04:00:00')
  await section('Episodes').locator('.empty', { hasText: 'No key was hot in this period' }).waitFor()
  await page.locator('nav a', { hasText: 'Heat map' }).click()
  await waitFor(() => /#\/heat\?from=\d+&to=\d+/.test(page.url()))
  await page.goBack()
  await section('Episodes').waitFor()
  await page.locator('button', { hasText: 'Back to now' }).click()
  await section('People').locator('tr', { hasText: 'add rule late' }).waitFor()
})

test('what somebody has begun is there again after another page, a policy that changed meanwhile included', async () => {
  const { page, at, busy, section, notice } = stage
  await busy.api('POST', '/v1/limits/policy', policy)
  await at('#/rules?edit=new')
  const form = page.locator('.rule-editor')
  await form.locator('[name=id]').fill('begun')
  await form.locator('[name=pattern]').fill('begun:')
  await at('#/limits')
  await page.locator('button', { hasText: 'Edit the policy' }).click()
  const editor = page.locator('textarea[name=policy]')
  await editor.waitFor()
  const mine = (await editor.inputValue()).replace('count=3', 'count=8')
  await editor.fill(mine)
  await at('#/rules?edit=new')
  await waitFor(async () => (await form.locator('[name=id]').inputValue()) === 'begun')
  await form.locator('button', { hasText: 'Cancel' }).click()
  await at('#/rules?edit=new')
  await waitFor(async () => (await form.locator('[name=id]').inputValue()) === '')
  await form.locator('button', { hasText: 'Cancel' }).click()
  await at('#/limits')
  expect(await editor.inputValue()).toBe(mine)
  await busy.api('POST', '/v1/limits/policy', policy.replace('count=100', 'count=101'))
  await section('Policy').locator('.problem', { hasText: 'was saved while you were editing' }).waitFor()
  expect(await editor.inputValue()).toBe(mine)
  await page.locator('button', { hasText: 'Save policy' }).click()
  await section('Policy').locator('.problem').nth(1).waitFor()
  expect(await editor.inputValue()).toBe(mine)
  await section('Policy')
    .locator('button', { hasText: /^Replace version/ })
    .click()
  await page.locator('button', { hasText: 'Save policy' }).click()
  await notice('Policy saved').waitFor()
  expect(await (await fetch(`${busy.hub.url}/v1/limits/dump?format=text`)).text()).toContain('count=8')
})

test('every table holds its rows under the pointer, and lets go of rows that are gone', async () => {
  const { page, at } = stage
  await at('#/keys?by=prefix')
  const rows = page.locator('div.scroll[aria-label="Prefixes"] tbody tr')
  await rows.nth(2).waitFor()
  const order = () => page.locator('div.scroll[aria-label="Prefixes"] tbody code').allInnerTexts()
  await rows.nth(1).hover()
  const before = await order()
  stage.busy.burst('zzz:1', 2500)
  await waitFor(async () => (await order()).includes('zzz'))
  const held = await order()
  expect(held.filter((name) => before.includes(name))).toEqual(before.filter((name) => held.includes(name)))
  expect(held[0]).not.toBe('zzz')
  await page.mouse.move(5, 5)
  await waitFor(async () => (await order()).indexOf('zzz') < 2)
  stage.busy.burst('zzz:1', 0)
})

test('a report shows what the API tells, by day and by week, and is exported', async () => {
  const { page, at, busy } = stage
  await at('#/reports')
  const section = page.locator('section[aria-label="Report"]')
  await section.locator('.figures').waitFor()
  const figure = async (name: string) =>
    section
      .locator('.figures div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
      .locator('dd')
      .innerText()
  const answer = page.waitForResponse((response) => response.url().includes('/v1/reports?by=week'))
  await page.locator('button', { hasText: 'week' }).click()
  const report = (await (await answer).json()) as HeatReport
  await page.locator('h1', { hasText: report.name }).waitFor()
  expect(await figure('keys hot')).toBe(String(report.totals.keys))
  expect(await figure('episodes')).toBe(String(report.totals.episodes))
  expect(await page.locator('div.scroll[aria-label="Hot keys"] tbody tr').count()).toBe(report.keys.length)
  const download = page.waitForEvent('download')
  await page.locator('a.button', { hasText: 'CSV' }).click()
  expect((await download).suggestedFilename()).toBe(`firebreak-${report.name}.csv`)
  const csv = await fetch(`${busy.hub.url}/v1/reports?by=week&format=csv`)
  expect((await csv.text()).split('\n').length).toBeGreaterThan(report.keys.length)
})

test('what is kept of the past is changed, audited, comes back unchanged, and is undone', async () => {
  const { page, at, busy, notice, audited, section } = stage
  const before = await busy.api<HistorySettingsView>('GET', '/v1/history/settings')
  await at('#/settings')
  const form = section('History').locator('form')
  await form.locator('[name=maxBytesPerDay]').fill('32')
  await form.locator('[name=second]').fill('2')
  await form.locator('[name=tenSeconds]').fill('30')
  await form.locator('[name=minute]').fill('200')
  await form.locator('button', { hasText: 'Save' }).click()
  await notice('Settings saved').waitFor()
  const now = await busy.api<HistorySettingsView>('GET', '/v1/history/settings')
  expect([now.maxBytesPerDay, now.keepMs]).toEqual([
    32 * 1024 * 1024,
    { second: 7_200_000, tenSeconds: 108_000_000, minute: 720_000_000 },
  ])
  await waitFor(async () => (await form.locator('[name=maxBytesPerDay]').inputValue()) === '32')
  await notice('Settings saved').locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  const back = await busy.api<HistorySettingsView>('GET', '/v1/history/settings')
  expect([back.maxBytesPerDay, back.keepMs]).toEqual([before.maxBytesPerDay, before.keepMs])
  expect((await audited(/history|kept/i)).length).toBeGreaterThanOrEqual(2)
  await form.locator('[name=second]').fill('-1')
  await form.locator('button', { hasText: 'Save' }).click()
  await page.locator('.notice.problem').waitFor()
})

test('an admin makes, rotates and revokes tokens; each works until it is revoked', async () => {
  const { browser } = stage
  const admin = { name: 'root', role: 'admin', token: 'root-token-of-the-test' } as const
  const hub = await startHub({ consoleFolder: pageFolder, logLevel: 'fatal', tokens: { apps: [], people: [admin] } })
  const page = await browser.newPage({ locale: 'en-US' })
  const status = async (token: string) =>
    (await fetch(`${hub.url}/v1/rules`, { headers: { authorization: `Bearer ${token}` } })).status
  await page.goto(`${hub.url}/#/settings`)
  await page.fill('input[name=token]', admin.token)
  await page.click('button:text-is("Sign in")')
  const section = page.locator('section[aria-label="Tokens and people"]').first()
  await section.locator('[name=name]').fill('ann')
  await section.locator('[name=kind]').selectOption('viewer')
  await section.locator('button', { hasText: 'Create a token' }).click()
  const fresh = section.locator('.in-force code')
  await fresh.waitFor()
  const first = await fresh.innerText()
  expect(await status(first)).toBe(200)
  const row = section.locator('tr', { hasText: 'ann' })
  await row.locator('button', { hasText: 'Rotate' }).click()
  await waitFor(async () => (await fresh.innerText()) !== first)
  const second = await fresh.innerText()
  expect([await status(second), await status('wrong')]).toEqual([200, 401])
  await row.locator('button', { hasText: 'Revoke' }).click()
  await page.locator('dialog button', { hasText: 'Revoke' }).click()
  await row.waitFor({ state: 'detached' })
  expect(await status(second)).toBe(401)
  await page.close()
  await hub.close()
})

test('locks: who holds and waits as the API tells; a release is confirmed, audited, and reaches the holder', async () => {
  const { page, at, busy, notice, audited } = stage
  await at('#/locks')
  const row = page.locator('tr', { hasText: 'order:77' })
  await row.waitFor()
  expect(await page.locator('tr', { hasText: 'stock:100' }).locator('.line').count()).toBe(4)
  const lost: string[] = []
  busy.shop.locks.onLost(({ name }) => lost.push(name))
  await row.locator('button', { hasText: 'Release' }).click()
  await page.locator('dialog', { hasText: 'fencing token' }).locator('button', { hasText: 'Release' }).click()
  await notice('Asked the holder to release order:77').waitFor()
  await waitFor(() => lost.includes('order:77'))
  await row.waitFor({ state: 'detached' })
  expect((await audited(/release lock order:77/)).length).toBe(1)
})

test('ids: a tag is added, audited and served; one that is there is refused with the reason', async () => {
  const { page, at, busy, notice, audited, section } = stage
  await at('#/ids')
  const form = section('Segment buffers').locator('form')
  await form.locator('[name=tag]').fill('invoice')
  await form.locator('[name=step]').fill('50')
  await form.locator('button', { hasText: 'Add tag' }).click()
  await notice('Tag invoice added').waitFor()
  await section('Databases').locator('text=invoice').waitFor()
  expect(await (await fetch(`${busy.hub.url}/api/segment/get/invoice`)).text()).toBe('1')
  await section('Segment buffers').locator('tr', { hasText: 'invoice' }).waitFor()
  expect((await audited(/add tag invoice/)).length).toBe(1)
  await form.locator('[name=tag]').fill('invoice')
  await form.locator('button', { hasText: 'Add tag' }).click()
  await page.locator('.notice.problem', { hasText: 'already' }).waitFor()
})

test('the sale: stock, orders and dead letters as the API tells; one is replayed and stored, one is dropped', async () => {
  const { page, at, busy, notice, audited, section } = stage
  await busy.shop.bury('order-901')
  await busy.shop.bury('order-902')
  await at('#/sale?voucher=tv')
  const { vouchers } = await busy.api<{ vouchers: { id: string; stock: number; total: number }[] }>('GET', '/v1/sales')
  const tv = vouchers.find(({ id }) => id === 'tv')!
  await page.locator('div.scroll[aria-label=Vouchers] tr', { hasText: 'tv' }).waitFor()
  expect(await page.locator('div.scroll[aria-label=Vouchers] tr', { hasText: 'tv' }).innerText()).toContain(
    `${tv.stock} / ${tv.total}`,
  )
  const letters = section('Dead letters')
  await letters.locator('tr', { hasText: 'order-901' }).locator('button', { hasText: 'Replay' }).click()
  await notice('Returned to the workers').waitFor()
  await letters.locator('tr', { hasText: 'order-901' }).waitFor({ state: 'detached' })
  await letters.locator('tr', { hasText: 'order-902' }).locator('button', { hasText: 'Drop' }).click()
  await page.locator('dialog button', { hasText: 'Drop' }).click()
  await notice('Dropped').waitFor()
  await letters.locator('.empty').waitFor()
  expect((await audited(/replay 1 dead letter of voucher tv|discard 1 dead letter of voucher tv/)).length).toBe(2)
})

test('a search for big keys is started from the page, and its result is shown with advice', async () => {
  const { page, at, audited } = stage
  await at('#/finders')
  await page.click('button:text-is("Find big keys")')
  await page.locator('section[aria-label="Finder runs"] .state', { hasText: 'done' }).waitFor({ timeout: 60_000 })
  const finding = page.locator('section[aria-label=Finding]').first()
  await finding.locator('[aria-label="Found keys"] tbody tr').first().waitFor()
  await finding.locator('summary', { hasText: 'as table' }).click()
  await finding.locator('[aria-label="Bytes by prefix"] tbody tr').first().waitFor()
  expect((await audited(/search main for big keys/)).length).toBe(1)
})

test('a key is inspected by a process that uses it: type, size and value as Redis has them, and audited', async () => {
  const { page, at, busy, audited, section } = stage
  await at('#/key/main/cart%253A101')
  await section('What it is').locator('button', { hasText: 'Ask type' }).click()
  await section('What it is').locator('dd', { hasText: 'string' }).waitFor()
  const found = await busy.api<KeyInspection>('POST', '/v1/keys/main/cart%253A101/inspection', {})
  expect(await section('What it is').innerText()).toContain(`${found.bytes} B`)
  await section('What it is').locator('button', { hasText: 'Show its value' }).click()
  await section('What it is')
    .locator('pre', { hasText: /^value \d+$/ })
    .waitFor()
  expect((await audited(/inspect key main\/cart%3A101 with its value/)).length).toBe(1)
  // Those of another service show none, and say so.
  await at('#/key/eu/session%253A101')
  await section('What it is').locator('button', { hasText: 'Show its value' }).click()
  await page.locator('.problem', { hasText: 'showsValues' }).waitFor()
})

test('rules: JSON and form hold the same, and a roll back brings an earlier version back', async () => {
  const { page, at, busy, notice, section } = stage
  await busy.api('PUT', '/v1/rules/json-made', { prefix: 'j:', threshold: 70 })
  await at('#/rules?edit=json-made')
  const json = page.locator('textarea[name=json]')
  await json.waitFor()
  const rule = JSON.parse(await json.inputValue()) as { levels: { enter: number }[]; labels?: unknown }
  await json.fill(JSON.stringify({ ...rule, levels: [{ ...rule.levels[0], enter: 90 }] }))
  await waitFor(async () => (await page.locator('.rule-editor [name=threshold]').inputValue()) === '90')
  await page.locator('.rule-editor [name=priority]').fill('3')
  expect(JSON.parse(await json.inputValue())).toMatchObject({ priority: 3, levels: [{ enter: 90 }] })
  await page.locator('.rule-editor button', { hasText: 'Save rule' }).click()
  await notice('Rule json-made saved').waitFor()
  const { rule: saved } = await busy.api<{ rule: object }>('GET', '/v1/rules/json-made')
  expect(saved).toMatchObject({ priority: 3, levels: [{ enter: 90 }] })
  const versions = section('Versions')
  await versions.locator('tr', { hasText: 'level 1: enter' }).first().waitFor()
  await versions.locator('tr', { hasText: 'json-made' }).nth(1).locator('button', { hasText: 'Roll back' }).click()
  await page.locator('dialog button', { hasText: 'Roll back' }).click()
  await notice(/Rules are as in version/).waitFor()
  const { rule: back } = await busy.api<{ rule: object }>('GET', '/v1/rules/json-made')
  expect(back).toMatchObject({ priority: 0, levels: [{ enter: 70 }] })
})

test('rules: what somebody else saves meanwhile is not lost unseen; a rule that is hot by itself is one of the form', async () => {
  const { page, at, busy, notice } = stage
  const ruleNow = async () => (await busy.api<{ rule: object }>('GET', '/v1/rules/shared')).rule
  // Of a service without a process: a roll-out that nobody has part in is not stopped for what its processes do.
  const serviceId = 'nobody'
  await busy.api('PUT', '/v1/rules/shared', { prefix: 's:', threshold: 70, serviceId })
  await at('#/rules?edit=shared')
  const form = page.locator('.rule-editor')
  const save = () => form.locator('button', { hasText: 'Save rule' }).click()
  await form.locator('[name=minHoldMs]').fill('4000')
  await busy.api('PUT', '/v1/rules/shared', { prefix: 's:', threshold: 71, serviceId })
  await save()
  await form.locator('.problem', { hasText: /changed this rule meanwhile.*"enter":71/ }).waitFor()
  expect(await ruleNow()).toMatchObject({ levels: [{ enter: 71 }] })
  await save()
  await notice('Rule shared saved').waitFor()
  expect(await ruleNow()).toMatchObject({ minHoldMs: 4000, levels: [{ enter: 70 }] })
  await at('#/rules')
  await at('#/rules?edit=shared')
  await form.locator('[name=auto]').check()
  await form.locator('[name=rollout]').fill('25')
  await save()
  await page.locator('tr', { hasText: 'shared' }).locator('text=by what the key costs its node').waitFor()
  await page.locator('tr', { hasText: 'shared' }).locator('text=in 25 % of the processes').first().waitFor()
  const auto = await ruleNow()
  expect(auto).toMatchObject({ rollout: { percent: 25 }, levels: [{ auto: true }] })
  await at('#/rules')
  await at('#/rules?edit=shared')
  await save()
  await form.waitFor({ state: 'detached' })
  expect(await ruleNow()).toEqual(auto)
})

test('autopilot: keys are warmed for later as planned, forecasts are set; both are audited and undone', async () => {
  const { at, busy, notice, audited, section } = stage
  const jobs = async () => (await busy.api<{ jobs: { keys: string[] }[] }>('GET', '/v1/prewarm')).jobs
  await at('#/autopilot')
  const form = section('Pre-warming').locator('form')
  const plan = () => form.locator('button', { hasText: 'Show what it would do' }).click()
  await form.locator('[name=keys]').fill('nobody:1')
  await form.locator('[name=cluster]').fill('main')
  await form.locator('[name=at]').fill(new Date(Date.now() + 86_000_000).toISOString())
  await plan()
  await form.locator('.problem', { hasText: 'nobody:1' }).waitFor()
  await form.locator('[name=keys]').fill('product:1..5')
  await plan()
  await form.locator('text=Rule product does LocalCache for 5 keys').waitFor()
  await form.locator('button', { hasText: 'Pre-warm' }).click()
  await notice('Planned').waitFor()
  const row = section('Pre-warming').locator('tr', { hasText: 'product:1' })
  await row.locator('text=and 2 more').waitFor()
  expect((await jobs()).map(({ keys }) => keys.length)).toEqual([5])
  await notice('Planned').locator('button', { hasText: 'Undo' }).click()
  await row.waitFor({ state: 'detached' })
  expect(await jobs()).toEqual([])
  expect((await audited(/pre-warm/)).map(({ what }) => what.replace(/job .*/, 'job'))).toEqual([
    'cancel pre-warm job',
    'pre-warm 5 keys',
  ])
  const mode = async () => (await busy.api<ForecastView>('GET', '/v1/forecast')).settings.mode
  const before = await mode()
  await section('Recurring heat').locator('button', { hasText: 'warm automatically' }).click()
  await notice('Settings saved').waitFor()
  expect(await mode()).toBe('do')
  await notice('Settings saved').locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  expect(await mode()).toBe(before)
  expect((await audited(/change the forecast/)).length).toBe(2)
})

/** Everything that only operators and admins may do, by what its button is called. */
const operatorsOnly =
  /^(Acknowledge|Add tag|Apply|Ask type|Cache|Cancel|Copy|Drop|Edit|Find (big|hot)|Ignore|Limit|Create|New r|Pre-warm|Release|Remove|Replay|Revert|Revoke|Roll back|Rotate|Save|Show (its|what)|Silence|Stop|Switch|Resume notif|Test|\+ rule|only suggest|warm auto)/

test('a viewer is shown no action of operators on any page, in the palette, or by an address', async () => {
  const { page, at, busy } = stage
  await busy.api('POST', '/v1/limits/policy', policy)
  const controls = async () =>
    (await page.locator('button:visible, a.button:visible, main select[name^=mode-]').allInnerTexts()).map((text) =>
      text.trim(),
    )
  const shownOn = async (addresses: readonly string[]) => {
    const shown = new Set<string>()
    for (const address of addresses) {
      await at(address)
      await page.locator('main h1, main .verdict').first().waitFor()
      await page.locator('main .empty', { hasText: 'Loading …' }).first().waitFor({ state: 'detached' })
      for (const text of await controls()) if (operatorsOnly.test(text)) shown.add(`${address} ${text}`)
    }
    return [...shown]
  }
  const addresses = [...pageNames.map((name) => `#/${name}`), '#/key/main/product%253A101', '#/rules?edit=feed']
  // The names are right: an operator sees them.
  expect((await shownOn(['#/rules', '#/locks', '#/key/main/product%253A101'])).length).toBeGreaterThan(8)
  const session = { who: 'eve', role: 'viewer' }
  await page.route('**/v1/session', (route) => route.fulfill({ json: session }))
  await page.reload()
  await page.locator('.link.live').waitFor()
  await page.locator('.bar .danger').waitFor({ state: 'detached' })
  expect(await shownOn(addresses)).toEqual([])
  await page.keyboard.press('/')
  await page.locator('dialog.palette input').fill('rule')
  await page.locator('.choice', { hasText: 'Rules' }).waitFor()
  expect(await page.locator('.choice', { hasText: 'New rule' }).count()).toBe(0)
  await page.keyboard.press('Escape')
  await page.unroute('**/v1/session')
  await page.reload()
  await page.locator('.bar .danger').waitFor()
})

test('an address that a person or a program has broken opens a page all the same', async () => {
  const { page, at, errors } = stage
  const broken = [
    '#/overview?range=constructor',
    '#/overview?from=abc&to=1e99',
    '#/timeline?from=9&to=3',
    '#/heat?by=%00&cell=9.9',
    '#/heat?cell=1/2/%25E0%25A4%25A/x',
    '#/keys?page=-7&sort=toString',
    '#/keys?page=x&pin=%25%20/',
    '#/key/%E0%A4%A/%ZZ',
    '#/key',
    '#/rules?edit=__proto__',
    '#/reports?by=year&on=never',
    '#/sale?voucher=toString',
    '#/constructor?a=b?c=d',
    '#//',
  ]
  for (const address of broken) {
    await at(address)
    await page.locator('main h1').first().waitFor()
    expect([address, await page.locator('main').innerText()]).toEqual([
      address,
      expect.not.stringMatching(/NaN|Infinity|undefined|Invalid Date|function /),
    ])
  }
  expect(errors).toEqual([])
})
