import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { protect, unprotect } from '@firebreak/client'
import { pageFolder } from '@firebreak/console'
import { type Hub, type HubServices, openHubServices, startHub } from '@firebreak/hub'
import { freePort, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import chromium from '@sparticuz/chromium'
import { Redis } from 'ioredis'
import { type Browser, type Page, chromium as playwright } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: RedisServer
let hub: Hub
let services: HubServices
let redis: Redis
let browser: Browser
let page: Page
let load: NodeJS.Timeout
const pageErrors: string[] = []

beforeAll(async () => {
  expect(existsSync(join(pageFolder, 'index.html')), 'the console is built (npm run build)').toBe(true)
  server = await startRedis()
  const rule = { id: 'product', prefix: 'product', threshold: 200, windowMs: 1000, strategy: 'LocalCache' }
  services = await openHubServices({ workerId: 7 })
  hub = await startHub({
    initialRules: [rule],
    consoleFolder: pageFolder,
    logLevel: 'fatal',
    plugins: services.plugins,
    watchers: [
      { kind: 'replica', name: 'stream', redisClusterId: 'main', address: server },
      {
        kind: 'replica',
        name: 'gone',
        redisClusterId: 'other',
        address: { host: '127.0.0.1', port: await freePort() },
      },
    ],
  })
  redis = protect(new Redis(server.port), { hubs: [hub.url], serviceId: 'shop', tableFile: false, canaryMs: 200 })
  await redis.set('product:100', 'a thing')
  load = setInterval(() => {
    for (let index = 0; index < 10; index++) void redis.get('product:100')
    void redis.get(`other:${Math.floor(Math.random() * 20)}`)
  }, 10)
  browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: chromium.args,
    headless: true,
  })
  page = await browser.newPage({ locale: 'en-US', viewport: { width: 1400, height: 900 } })
  page.on('pageerror', (error) => pageErrors.push(error.message))
  page.on('dialog', (dialog) => void dialog.accept())
  await page.goto(hub.url)
})

afterAll(async () => {
  clearInterval(load)
  await browser?.close()
  unprotect(redis)
  redis.disconnect()
  await hub?.close()
  await services?.close()
  await server?.stop()
})

test('a hot key is shown with its rate, state, strategy and the reason in words', async () => {
  const row = page.locator('tr', { hasText: 'product:100' })
  await row.locator('.state.hot').waitFor({ timeout: 20_000 })
  await waitFor(async () => (await row.innerText()).includes('LocalCache'))
  const text = await row.innerText()
  expect(text).toMatch(/[\d,]+\/s/)
  expect(text).toMatch(/hot because rule `product`: [\d,]+\/s over 1 s ≥ 200/)
  expect(await row.locator('svg.spark polyline').count()).toBe(1)
})

test('the verdict says that we are safe, and the chart has the reads', async () => {
  await page.locator('.verdict.safe h1').waitFor({ timeout: 20_000 })
  await waitFor(async () => {
    const memory = await page.locator('.verdict dl div', { hasText: 'from memory' }).locator('dd').innerText()
    return Number.parseFloat(memory) > 50
  })
  expect(await page.locator('.chart canvas').count()).toBe(1)
  await page.screenshot({ path: join(temporaryFolder('console'), 'now.png') })
})

test('a rule is added, refused with the hub’s own sentence, and removed', async () => {
  await page.click('nav >> text=Rules')
  await page.fill('input[name=id]', 'stock')
  await page.fill('input[name=pattern]', 'stock_')
  await page.click('text=Save rule')
  await page.locator('td', { hasText: 'stock_*' }).waitFor()
  await page.selectOption('select[name=kind]', 'regex')
  await page.fill('input[name=pattern]', '(unclosed')
  await page.click('text=Save rule')
  await page.locator('.problem', { hasText: 'regex' }).waitFor()
  await page.locator('tr', { hasText: 'stock_*' }).locator('text=Remove').click()
  await page.locator('td', { hasText: 'stock_*' }).waitFor({ state: 'detached' })
})

test('the hosts page names the process and its watcher', async () => {
  await page.click('nav >> text=Hosts')
  const row = page.locator('tr', { hasText: 'shop' }).first()
  await waitFor(async () => (await row.innerText()).includes('tracking: live'))
})

test('the consistency page tells how old values were, which sources are read, and what is broken and tried', async () => {
  await page.click('nav >> text=Consistency')
  await page.locator('[aria-label=Staleness] tr', { hasText: 'product' }).first().waitFor()
  const sources = page.locator('[aria-label="Sources of changes"]')
  await waitFor(async () => (await sources.locator('tr', { hasText: 'stream' }).innerText()).includes('live'))
  const alarm = page.locator('[aria-label=Alarms] tr', { hasText: 'gone' })
  await waitFor(async () => (await alarm.first().innerText()).includes('ECONNREFUSED'))
  await page.screenshot({ path: join(temporaryFolder('console'), 'consistency.png') })
})

test('the history tells what became hot, and the audit who changed what', async () => {
  await page.click('nav >> text=History')
  await page.locator('td', { hasText: 'product:100' }).first().waitFor()
  await page.locator('tr', { hasText: 'stock' }).first().waitFor()
})

test('the services beside the loop have their pages', async () => {
  const policy = '[rules]\nrule : [count] [uid=+] [time=5;count=3] [result=1;return=403]\n[result]\n1 : {}\n'
  await fetch(`${hub.url}/v1/limits/policy`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: policy,
  })
  const finding = {
    version: 1,
    id: '7d4c1b1e-3a52-4a39-9d3f-0c7a54a7a001',
    kind: 'big',
    method: 'scan',
    startedAtMs: Date.now(),
    tookMs: 5,
    source: ['127.0.0.1:1'],
    topology: 'standalone',
    isComplete: true,
    scanned: 10,
    keys: [{ key: 'huge-list', type: 'list', bytes: 123456, elements: 999 }],
    notes: [],
  }
  await fetch(`${hub.url}/v1/findings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(finding),
  })
  await page.click('nav >> text=Findings')
  await page.locator('td', { hasText: 'huge-list' }).waitFor()
  await page.click('nav >> text=Slots')
  await page.locator('svg.slots line').first().waitFor({ state: 'attached' })
  await page.click('nav >> text=Limits')
  await page.locator('h2', { hasText: 'version' }).waitFor()
  await page.click('nav >> text=Locks')
  await page.locator('text=0 held').waitFor()
  await page.click('nav >> text=Ids')
  await page.locator('text=worker 7').waitFor()
})

test('the kill switch in the page turns the shield off and on', async () => {
  await page.click('nav >> text=Now')
  await page.click('text=Switch protection off')
  await page.locator('.verdict.off').waitFor()
  await page.click('text=switch on')
  await page.locator('.verdict.safe').waitFor({ timeout: 20_000 })
})

test('a hub with tokens: the page asks for one, says what is refused, and shows what the role may see', async () => {
  const person = { name: 'ann', role: 'viewer', token: 'a(long)secret/+=' } as const
  const guarded = await startHub({
    consoleFolder: pageFolder,
    logLevel: 'fatal',
    tokens: { apps: [], people: [person] },
  })
  const other = await browser.newPage({ locale: 'en-US' })
  other.on('dialog', (dialog) => void dialog.accept())
  await other.goto(guarded.url)
  await other.fill('input[name=token]', 'wrong')
  await other.click('text=Sign in')
  await other.locator('.problem', { hasText: 'token' }).waitFor()
  await other.fill('input[name=token]', person.token)
  await other.click('text=Sign in')
  await other.locator('.verdict h1').waitFor()
  await other.click('text=Switch protection off')
  await other.locator('.problem', { hasText: 'ann is viewer; this needs the role operator' }).waitFor()
  await guarded.close()
})

test('a browser that names no language that Intl knows gets the page all the same', async () => {
  const other = await browser.newPage()
  // What Chromium says where the system has no locale.
  await other.addInitScript("Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })")
  await other.goto(hub.url)
  await other.locator('.verdict h1').waitFor({ timeout: 20_000 })
  await other.locator('.uplot').first().waitFor({ timeout: 20_000 })
})

test('a page that no longer hears from the hub says that its figures are old', async () => {
  await page.context().setOffline(true)
  await hub.close()
  await page.locator('.link.lost').waitFor({ timeout: 20_000 })
  expect(pageErrors).toEqual([])
})
