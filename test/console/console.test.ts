import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { protect, unprotect } from '@firebreak/client'
import { pageFolder } from '@firebreak/console'
import type { AuditEntry, HostView, KeyView, Overview } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { startHub } from '@firebreak/hub'
import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { beyondEdge, startBrowser } from './browser.ts'
import { type BusyHub, bigKeys, longKey, policy, startBusyHub } from './busy-hub.ts'

// A browser beside other test files on two cores: none of these waits for time to pass.
vi.setConfig({ testTimeout: 150_000 })

let busy: BusyHub
let browser: Browser
let page: Page
const pageErrors: string[] = []
const messages: Overview[] = []

beforeAll(async () => {
  expect(existsSync(join(pageFolder, 'index.html')), 'the console is built (npm run build)').toBe(true)
  busy = await startBusyHub()
  busy.burst('product:101', 400)
  browser = await startBrowser()
  page = await browser.newPage({ locale: 'en-US', viewport: { width: 1440, height: 900 } })
  page.on('pageerror', (error) => pageErrors.push(error.message))
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => messages.push(JSON.parse(String(payload)) as Overview)),
  )
  await page.goto(busy.hub.url)
})

afterAll(async () => {
  await browser?.close()
  await busy?.close()
})

/** Two busy pages on two cores draw at a crawl: while another one is looked at, this one rests. */
async function rest(): Promise<void> {
  await page.goto('about:blank')
}

/** Opens an address of the page that is loaded. */
async function at(address: string, where = page): Promise<void> {
  await where.evaluate(`location.hash = ${JSON.stringify(address)}`)
}

async function audited(what: RegExp): Promise<AuditEntry[]> {
  const { entries } = await busy.api<{ entries: AuditEntry[] }>('GET', '/v1/audit?limit=50')
  return entries.filter((entry) => what.test(entry.what))
}

async function rulesOf(): Promise<readonly Rule[]> {
  return (await busy.api<{ rules: Rule[] }>('GET', '/v1/rules')).rules
}

function notice(text: string) {
  return page.locator('.notice', { hasText: text })
}

test('the overview shows one whole message of the hub: verdict, figures, the hottest keys', async () => {
  await at('#/overview')
  await page
    .locator('table.keys tr', { hasText: 'product:101' })
    .first()
    .locator('.state.hot')
    .waitFor({ timeout: 60_000 })
  await page.keyboard.press('p')
  await page.locator('.link.paused').waitFor()
  const shown = await page.locator('.verdict').innerText()
  const names = await page.locator('table.keys .key-link code').allInnerTexts()
  const isShown = ({ verdict, keys, ingest }: Overview) =>
    shown.includes(verdict) &&
    shown.includes(String(ingest.trackedKeys)) &&
    keys
      .slice(0, names.length)
      .every(({ key }, index) => decodeURIComponent(key).startsWith(names[index]!.split('…')[0]!))
  // Any of them: on a busy machine many more have come by the time that the page was read.
  expect(messages.some(isShown)).toBe(true)
  const before = await page.locator('main').innerText()
  const heard = messages.length
  await waitFor(() => messages.length > heard + 1)
  expect(await page.locator('main').innerText()).toBe(before)
  expect(await page.locator('.chart .drawing[role=img]').getAttribute('aria-label')).toMatch(/now .*peak/)
  await page.locator('.chart button', { hasText: 'as table' }).click()
  const rows = await page.locator('.chart-table tbody tr').allInnerTexts()
  expect(rows.length).toBeGreaterThan(5)
  expect(page.url()).toContain('chart=table')
  await page.locator('.chart button', { hasText: 'as chart' }).click()
  // Under the pointer stand the figures that the table has for that moment.
  const plot = (await page.locator('.chart .u-over').boundingBox())!
  await page.mouse.move(plot.x + plot.width * 0.98, plot.y + plot.height / 2)
  const [time, ...figures] = await page.locator('.readout > b, .readout span b').allInnerTexts()
  expect(rows.map((row) => row.split('\t'))).toContainEqual([time, ...figures])
  await page.mouse.move(5, 5)
  await page.locator('.readout').waitFor({ state: 'detached' })
  await page.keyboard.press('p')
  await page.locator('.link.live').waitFor()
})

test('the keyboard opens pages, finds keys, moves along rows and tells its keys', async () => {
  await page.keyboard.press('g')
  await page.keyboard.press('k')
  await page.locator('h1', { hasText: 'Hot keys' }).waitFor()
  await page.locator('table.keys tbody tr').nth(2).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  const focused = () =>
    page.evaluate(
      "[...document.querySelectorAll('main tbody tr')].findIndex((row) => row.contains(document.activeElement))",
    )
  expect(await focused()).toBe(1)
  await page.keyboard.press('k')
  expect(await focused()).toBe(0)
  await page.keyboard.press('?')
  await page.locator('dialog', { hasText: 'Next or previous row' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  await page.locator('dialog.palette input').fill('cart:101')
  await page.locator('.choice', { hasText: 'cart:101' }).waitFor()
  await page.keyboard.press('Enter')
  await page.locator('.key-head', { hasText: 'cart:101' }).waitFor()
})

test('hot keys are those of the API; filter, order, page, group and pins are in the address', async () => {
  const answers: { url: string; keys: KeyView[] }[] = []
  const listen = async (response: { url(): string; json(): Promise<unknown> }) => {
    if (/\/v1\/keys\?/.test(response.url()))
      answers.push({ url: response.url(), ...((await response.json()) as { keys: KeyView[] }) })
  }
  page.on('response', (response) => void listen(response).catch(() => {}))
  await at('#/keys')
  await page.locator('table.keys tbody tr').nth(10).waitFor()
  await page.mouse.move(5, 5)
  await page.evaluate('document.activeElement?.blur()')
  await waitFor(async () => {
    const rates = await page.locator('table.keys td.strong').allInnerTexts()
    return answers.some(
      ({ keys }) =>
        keys.length === rates.length &&
        keys.every(({ ratePerSecond }, row) => rates[row]!.startsWith(`${ratePerSecond}/s`)),
    )
  })
  // The name of the long key is cut in the middle and moves nothing.
  const long = page.locator('a.key-link', { hasText: 'tail-of-it' }).first()
  await long.waitFor()
  expect([...(await long.locator('code').innerText())].length).toBe(48)
  expect(await long.getAttribute('title')).toContain(longKey)
  // Its page is as that of any other key, and can be acted from.
  await long.click()
  await page.locator('.key-head', { hasText: 'tail-of-it' }).locator('.state').first().waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  // Charts follow the window in a frame of their own.
  await waitFor(async () => Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390, {
    what: 'a page as wide as its window',
  })
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.locator('.key-actions .choices button', { hasText: 'Cache' }).click()
  await page.locator('.preview button', { hasText: 'Cache for' }).click()
  await notice('Cached for').locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  await at('#/keys')
  await long.waitFor()
  await page.mouse.move(5, 5)
  // Nor does anything stand beyond the edge of a laptop's screen.
  for (const width of [1440, 1280]) {
    await page.setViewportSize({ width, height: 900 })
    expect(await beyondEdge(page)).toEqual([])
  }
  await page.setViewportSize({ width: 1440, height: 900 })
  // A blank key and one that is not text are shown as what they are; equal names are told apart by their cluster.
  await page.locator('code.odd', { hasText: '“ ”' }).waitFor()
  await page.locator('tr', { hasText: '%FF%00%80' }).locator('.cluster', { hasText: 'binary' }).waitFor()
  expect(await page.locator('tr', { hasText: 'product:101' }).locator('.cluster').allInnerTexts()).toEqual(
    expect.arrayContaining(['main', 'eu']),
  )

  await page.fill('input[name=filter]', 'product:10')
  await page.locator('button.sort', { hasText: 'Key' }).click()
  await waitFor(async () => {
    const names = await page.locator('table.keys .key-link code').allInnerTexts()
    return (
      names.length > 5 && names.every((name) => name.startsWith('product:10')) && `${names}` === `${names.toSorted()}`
    )
  })
  await page.locator('button.pin').first().click()
  await page.locator('section[aria-label=Pinned] tbody tr').waitFor()
  const other = await browser.newPage({ locale: 'en-US' })
  await other.goto(page.url())
  await other.locator('section[aria-label=Pinned] tbody tr').waitFor()
  expect(await other.inputValue('input[name=filter]')).toBe('product:10')
  await other.locator('button.sort[aria-pressed=true]', { hasText: 'Key' }).waitFor()
  await other.close()

  for (const format of ['CSV', 'JSON'] as const) {
    const download = page.waitForEvent('download')
    await page.locator('button', { hasText: format }).click()
    const file = await download
    expect(file.suggestedFilename()).toBe(`hot-keys.${format.toLowerCase()}`)
    const text = readFileSync(await file.path(), 'utf8')
    const { keys } = await busy.api<{ keys: KeyView[] }>('GET', '/v1/keys?limit=1000&sort=name&match=product:10')
    const names = keys.map(({ key }) => decodeURIComponent(key))
    const saved =
      format === 'CSV'
        ? text
            .trim()
            .split('\r\n')
            .slice(1)
            .map((line) => line.split(',')[1]!)
        : (JSON.parse(text) as KeyView[]).map(({ key }) => decodeURIComponent(key))
    expect(saved).toEqual(names)
  }
  // What nobody handles can be asked for.
  await at('#/keys?handling=observed&service=search')
  await waitFor(async () => {
    const texts = await page.locator('table.keys td.handling').allInnerTexts()
    return texts.length > 0 && texts.every((text) => text.startsWith('only observed'))
  })
  await at('#/keys?by=prefix')
  await page.locator('section[aria-label=Prefixes] tr', { hasText: 'product' }).waitFor()
  const { groups } = await busy.api<{ groups: { group: string; keys: number }[] }>('GET', '/v1/key-groups')
  const row = page.locator('section[aria-label=Prefixes] tr', { has: page.locator('code', { hasText: /^product$/ }) })
  expect(await row.locator('td').nth(1).innerText()).toBe(String(groups.find(({ group }) => group === 'product')!.keys))
})

test('rows keep their places under the pointer, whatever their rates do', async () => {
  await at('#/keys?sort=rate')
  await page.locator('table.keys tbody tr').nth(6).waitFor()
  await page.locator('table.keys tbody tr').nth(3).hover()
  const order = () =>
    page
      .locator('table.keys .key-link')
      .evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href))
  const before = await order()
  busy.burst('product:106', 1500)
  const heard = messages.length
  await waitFor(() => messages.length > heard + 3)
  const after = await order()
  expect(after.filter((key) => before.includes(key))).toEqual(before.filter((key) => after.includes(key)))
  await page.mouse.move(5, 5)
  await waitFor(async () => (await order()).slice(0, 2).some((key) => key.includes('106')))
  busy.burst('product:106', 0)
})

test.each([
  { button: 'Cache', done: 'Cached for 10 min', strategy: 'LocalCache', fact: 'Cached' },
  { button: 'Copy', done: 'Copied for 10 min', strategy: 'RedundantKeys', fact: 'Spread over 4 copies' },
  { button: 'Limit', done: 'Limited to', strategy: 'RateLimit', fact: 'Limited to' },
  { button: 'Ignore', done: 'Ignored for 10 min', strategy: 'Observe', fact: 'Ignored' },
])('$button on a key is previewed, done with an end, audited, and undone', async ({ button, done, strategy, fact }) => {
  await at('#/key/main/feed%253A101')
  await page.locator('.key-head', { hasText: 'feed:101' }).waitFor()
  await page.locator('.key-actions .choices button', { hasText: button }).click()
  expect(await page.locator('.preview-text').allInnerTexts()).toEqual([
    expect.stringMatching(/^Now .*Redis sees/),
    expect.stringMatching(/^Then .*until \d\d:/),
    ...(button === 'Ignore' ? [] : [expect.anything()]),
  ])
  await page.locator('.preview button', { hasText: `${button} for 10 min` }).click()
  await notice(done).waitFor()
  await page.locator('.in-force', { hasText: fact }).waitFor()
  const rule = (await rulesOf()).find(({ priority }) => priority === 1_000_000)!
  expect(rule).toMatchObject({
    pattern: { kind: 'exact', keys: ['feed:101'] },
    levels: [{ strategies: [{ strategy }] }],
  })
  expect(rule.until! - Date.now()).toBeGreaterThan(500_000)
  await notice(done).locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  await page.locator('.in-force').waitFor({ state: 'detached' })
  expect((await rulesOf()).some(({ priority }) => priority === 1_000_000)).toBe(false)
  expect((await audited(new RegExp(rule.id))).length).toBeGreaterThanOrEqual(2)
})

test('two operators: what one does to a key or a rule is not undone unseen by the other, and undo brings back what was before', async () => {
  const path = '/v1/keys/main/feed%253A103/action'
  const action = async () => (await rulesOf()).find(({ priority }) => priority === 1_000_000)
  const strategyNow = async () => (await action())?.levels[0]?.strategies[0]
  const act = async (button: string) => {
    await page.locator('.key-actions .choices button', { hasText: button }).click()
    await page.locator('.preview button', { hasText: `${button} for 10 min` }).click()
  }
  await at('#/key/main/feed%253A103')
  await act('Limit')
  await notice('Limited to').waitFor()
  const limited = await strategyNow()
  await page.locator('.in-force', { hasText: 'Limited to' }).waitFor()
  await act('Cache')
  await notice('Cached for').locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  expect(await strategyNow()).toEqual(limited)
  await act('Cache')
  await notice('Cached for').waitFor()
  // The other operator copies it.
  await busy.api('PUT', path, { action: 'copy', forMs: 600_000 })
  await notice('Cached for').locator('button', { hasText: 'Undo' }).click()
  await page.locator('.notice.problem', { hasText: 'Somebody has changed it meanwhile' }).waitFor()
  expect(await strategyNow()).toMatchObject({ strategy: 'RedundantKeys' })
  await busy.api('DELETE', path)

  // A page that was paused has the rules of then.
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 500 })
  await at('#/rules')
  await page.locator('select[name=mode-stock]').waitFor()
  await page.keyboard.press('p')
  await page.locator('.link.paused').waitFor()
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 700 })
  await page.locator('select[name=mode-stock]').selectOption('off')
  await page.locator('.notice.problem', { hasText: 'Somebody has changed it meanwhile' }).waitFor()
  expect((await rulesOf()).find(({ id }) => id === 'stock')).toMatchObject({ mode: 'on', levels: [{ enter: 700 }] })
  await page.keyboard.press('p')
  await page.locator('.link.live').waitFor()
  await page.locator('tr', { hasText: '700 accesses' }).waitFor()
  await page.locator('select[name=mode-stock]').selectOption('off')
  await notice('Rule stock is off now').waitFor()
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 900, mode: 'off' })
  await notice('Rule stock is off now').locator('button', { hasText: 'Undo' }).click()
  await page.locator('.notice.problem', { hasText: 'Somebody has changed it meanwhile' }).waitFor()
  expect((await rulesOf()).find(({ id }) => id === 'stock')).toMatchObject({ mode: 'off', levels: [{ enter: 900 }] })
  await busy.api('DELETE', '/v1/rules/stock')
})

test('a pre-warm is planned before it is done and taken back, and what the hub refuses says why', async () => {
  await at('#/key/main/product%253A103')
  await page.locator('.key-actions .choices button', { hasText: 'Pre-warm' }).click()
  await page.locator('.preview-text', { hasText: 'Rule product does LocalCache' }).waitFor()
  await page.locator('.preview button', { hasText: 'Pre-warm for' }).click()
  await notice('Pre-warmed until').locator('button', { hasText: 'Undo' }).click()
  await notice('Undone').waitFor()
  expect((await audited(/^(pre-warm 1 keys|end the pre-warming of product%3A103)$/)).length).toBe(2)
  await page.locator('.key-actions .choices button', { hasText: 'Limit' }).click()
  await page.fill('input[name=limit]', '0')
  await page.locator('.preview button', { hasText: 'Limit for' }).click()
  await page.locator('.notice.problem', { hasText: 'limit' }).waitFor()
})

test('the page of a key tells rate, thresholds, reason, strategy, who uses it and what happened', async () => {
  await at('#/key/main/product%253A101')
  const facts = page.locator('section[aria-label=Facts]')
  await waitFor(async () => /over the threshold of 15\/s/.test(await facts.innerText()))
  const text = await facts.innerText()
  expect(text).toContain('hot because rule `product`')
  expect(text).toContain('LocalCache: each process answers reads from its memory')
  expect(text).toMatch(/slot \d+/)
  await page.locator('[aria-label=Services] td', { hasText: 'shop' }).first().waitFor()
  await page.locator('[aria-label=Events] .state.hot').first().waitFor()
  expect(await page.locator('section[aria-label=Rate] .drawing').getAttribute('aria-label')).toContain('peak')
})

test('every field of the rules form is saved and comes back; levels survive; the hub’s refusal is shown', async () => {
  await at('#/rules?edit=new')
  const form = page.locator('.rule-editor')
  const save = () => form.locator('button', { hasText: 'Save rule' }).click()
  await form.locator('[name=id]').fill('whole')
  await form.locator('[name=kind]').selectOption('glob')
  await form.locator('[name=pattern]').fill('cart_*')
  await form.locator('[name=except]').fill('cart_x*')
  await form.locator('[name=serviceId]').fill('shop')
  await form.locator('[name=mode]').selectOption('shadow')
  await form.locator('[name=maxStalenessMs]').fill('70')
  await form.locator('[name=threshold]').fill('500')
  await form.locator('[name=enterShare]').fill('0.25')
  await form.locator('[name=strategy]').selectOption('RateLimit')
  await form.locator('[name="strategy.limit"]').fill('70')
  await form.locator('[name=onLimit]').selectOption('stale')
  await form.locator('[name=scope]').selectOption('shared')
  await form.locator('button', { hasText: '+ level' }).click()
  const second = form.locator('fieldset.level').nth(1)
  await second.locator('button', { hasText: '+ strategy' }).click()
  await second.locator('[name="strategy.copyCount"]').fill('6')
  await second.locator('[name=expireStrategy]').selectOption('SIEVE')
  await form.locator('.dry-run p', { hasText: 'In the last' }).waitFor()
  await save()
  await notice('Rule whole saved').waitFor()
  const { rule } = await busy.api<{ rule: Rule }>('GET', '/v1/rules/whole')
  expect(rule).toMatchObject({
    mode: 'shadow',
    serviceId: 'shop',
    maxStalenessMs: 70,
    pattern: { kind: 'glob', glob: 'cart_*' },
    except: [{ kind: 'glob', glob: 'cart_x*' }],
    levels: [
      {
        enter: 500,
        enterShare: 0.25,
        strategies: [{ strategy: 'RateLimit', limit: 70, onLimit: 'stale', scope: 'shared' }],
      },
      {
        enter: 5000,
        strategies: [
          { strategy: 'LocalCache', expireStrategy: 'SIEVE' },
          { strategy: 'RedundantKeys', copyCount: 6 },
        ],
      },
    ],
  })
  await page.locator('tr', { hasText: 'cart_*' }).locator('a', { hasText: 'Edit' }).click()
  await form.locator('h2', { hasText: 'Edit rule whole' }).waitFor()
  await save()
  await notice('Rule whole saved').waitFor()
  await form.waitFor({ state: 'detached' })
  expect((await busy.api<{ rule: Rule }>('GET', '/v1/rules/whole')).rule).toEqual(rule)

  await page.locator('select[name=mode-whole]').selectOption('off')
  await notice('Rule whole is off now').waitFor()
  expect((await busy.api<{ rule: Rule }>('GET', '/v1/rules/whole')).rule.mode).toBe('off')
  await notice('Rule whole is off now').locator('button', { hasText: 'Undo' }).click()
  await waitFor(async () => (await busy.api<{ rule: Rule }>('GET', '/v1/rules/whole')).rule.mode === 'shadow')
  await waitFor(async () => (await page.locator('select[name=mode-whole]').inputValue()) === 'shadow')
  await page.locator('tr', { hasText: 'cart_*' }).locator('button', { hasText: 'Remove' }).click()
  await page.locator('dialog button', { hasText: 'Remove' }).click()
  await notice('Rule whole removed').waitFor()
  expect((await rulesOf()).some(({ id }) => id === 'whole')).toBe(false)
  expect((await audited(/rule whole/)).length).toBeGreaterThanOrEqual(4)

  await at('#/rules?edit=new')
  await form.locator('[name=id]').fill('product')
  await form.locator('[name=pattern]').fill('x')
  await save()
  await page.locator('.problem', { hasText: 'There is a rule product already' }).waitFor()
  await form.locator('[name=id]').fill('broken')
  await form.locator('[name=kind]').selectOption('regex')
  await form.locator('[name=pattern]').fill('(unclosed')
  await save()
  await page.locator('.rule-editor .save-bar .problem', { hasText: 'regex' }).waitFor()
})

test('a rule is made from a hot key', async () => {
  await at('#/keys?filter=cart:101')
  await page.locator('a.button', { hasText: '+ rule' }).first().click()
  await page.locator('.rule-editor [name=pattern]').waitFor()
  expect(await page.inputValue('.rule-editor [name=pattern]')).toBe('cart:101')
  expect(await page.inputValue('.rule-editor [name=redisClusterId]')).toBe('main')
  // Its title is not under the bar that stays.
  const bar = (await page.locator('.bar').boundingBox())!
  expect((await page.locator('.rule-editor h2').boundingBox())!.y).toBeGreaterThanOrEqual(bar.y + bar.height)
  await at('#/key/main/cart%253A101')
  await page.locator('.key-actions a', { hasText: '+ rule' }).click()
  await page.locator('.rule-editor [name=pattern]').waitFor()
  expect(await page.inputValue('.rule-editor [name=pattern]')).toBe('cart:101')
})

test('the audit shows what people did, field by field, and takes it back', async () => {
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 500 })
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 800 })
  await at('#/audit?what=stock')
  const row = page.locator('tr', { hasText: 'level 1: enter' }).first()
  await row.waitFor()
  expect(await row.innerText()).toMatch(/500[\s\S]*→[\s\S]*800/)
  await row.locator('button', { hasText: 'Revert' }).click()
  await page.locator('dialog button', { hasText: 'Revert' }).click()
  await notice('Reverted').waitFor()
  expect((await rulesOf()).find(({ id }) => id === 'stock')!.levels[0]!.enter).toBe(500)
})

test('limits: a policy is written, tried, replaced and rolled back; a wrong one is refused with its line', async () => {
  await at('#/limits')
  await page.locator('button', { hasText: 'Edit the policy' }).click()
  await page.fill('textarea[name=policy]', policy)
  await page.click('text=Save policy')
  await notice('Policy saved').waitFor()
  await page.locator('h1', { hasText: 'version 1' }).waitFor()
  const { rules } = await busy.api<{ rules: { line: string }[] }>('GET', '/v1/limits/rules')
  expect(await page.locator('section[aria-label=Limits] tbody code').allInnerTexts()).toEqual(
    rules.map(({ line }) => line),
  )
  await page.fill('input[name=parameters]', 'uid=1')
  await page.click('button:text-is("Ask")')
  const answer = page.locator('pre.answer')
  await answer.waitFor()
  expect(JSON.parse(await answer.innerText())).toEqual(await busy.api('GET', '/v1/limits/browse?uid=1'))
  // Requests that count are counted.
  for (let call = 0; call < 5; call++) await busy.api('POST', '/v1/limits/browse', { uid: '7', _writeThrough: 'yes' })
  await waitFor(async () => {
    const counted = await busy.api<{ rules: { applied: number; over: number }[] }>('GET', '/v1/limits/rules')
    const cells = await page.locator('section[aria-label=Limits] tbody tr').first().locator('td').allInnerTexts()
    const { applied, over } = counted.rules[0]!
    return over > 0 && cells[2] === String(applied) && cells[3] === String(over)
  })
  await page.locator('button', { hasText: 'Edit the policy' }).click()
  await waitFor(async () => (await page.inputValue('textarea[name=policy]')).includes('uid'))
  await page.fill('textarea[name=policy]', 'nonsense')
  await page.click('text=Save policy')
  await page.locator('section[aria-label=Policy] .problem').waitFor()
  await page.fill('textarea[name=policy]', policy.replace('count=3', 'count=9'))
  await page.click('text=Save policy')
  await page.locator('h1', { hasText: 'version 2' }).waitFor()
  await page.locator('section[aria-label=Versions] tr', { hasText: 'api' }).last().locator('button').click()
  await page.locator('h1', { hasText: 'version 3' }).waitFor()
  expect((await audited(/rate-limit policy/)).length).toBe(3)
})

test('locks, ids, findings and the fleet show what the API tells', async () => {
  await busy.api('POST', '/v1/findings', bigKeys())
  await at('#/locks')
  const lock = page.locator('tr', { hasText: 'stock:100' })
  await lock.waitFor()
  const { locks } = await busy.api<{ locks: { name: string; waiters: unknown[] }[] }>('GET', '/v1/locks')
  expect(await lock.locator('td').nth(5).innerText()).toBe(
    String(locks.find(({ name }) => name === 'stock:100')!.waiters.length),
  )
  await at('#/ids')
  await page.locator('.figures div', { hasText: 'snowflake worker' }).locator('dd', { hasText: /^7$/ }).waitFor()
  await at('#/finders')
  await page.locator('tr', { hasText: 'feed:home' }).waitFor()
  expect(await page.locator('.treemap rect').count()).toBe(6)
  await page.locator('code', { hasText: 'LTRIM "feed:home"' }).waitFor()
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.locator('tr', { hasText: 'feed:home' }).locator('button', { hasText: 'Copy the command' }).first().click()
  await notice('Copied').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('LTRIM "feed:home" -10000 -1')
  await at('#/fleet')
  for (const service of ['shop', 'search', 'accounts'])
    await page.locator('section[aria-label=Sensors] td', { hasText: service }).first().waitFor()
  await waitFor(async () =>
    (await page.locator('[aria-label="Sources of changes"]').first().innerText()).includes('live'),
  )
  // Tables change all the time, each service's own: whoever confirms them with the next status is healthy.
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 900 })
  await waitFor(async () => {
    const { hosts } = await busy.api<{ hosts: HostView[] }>('GET', '/v1/hosts')
    const { table } = await busy.api<Overview>('GET', '/v1/overview')
    return hosts.every(({ tableBehindMs }) => tableBehindMs === 0) && table.version > 0
  })
  // On a busy machine they may have other troubles.
  const late = page.locator('section[aria-label=Sensors] small', { hasText: 'without the newest table' })
  await late.first().waitFor({ state: 'detached' })
  // What a sensor tells of itself is what the API has.
  const { hosts } = await busy.api<{ hosts: HostView[] }>('GET', '/v1/hosts')
  for (const { serviceId, reportsBy, tablesBy, agent } of hosts) {
    const row = page
      .locator('section[aria-label=Sensors] tr', { has: page.locator('td', { hasText: serviceId }) })
      .first()
    const text = await row.innerText()
    expect([reportsBy, tablesBy]).toEqual(['websocket', 'websocket'])
    expect(text.match(/WebSocket/g)).toHaveLength(2)
    expect(text).toContain(agent.split(/[/ ]/)[1])
    expect(text).toMatch(/ms old[\s\S]*B held/)
  }
  const transports = page.locator('section[aria-label=Transports]')
  await transports
    .locator('tr', { hasText: 'WebSocket' })
    .locator('td', { hasText: `${hosts.length} sensors` })
    .waitFor()
  await page.locator('section[aria-label=Hubs] td', { hasText: hosts[0]!.agent.split(/[/ ]/)[1]! }).waitFor()
  await page.locator('[name=troubled]').check()
  await page.locator('section[aria-label=Sensors] .state.handled').first().waitFor({ state: 'detached' })
  await page.locator('[name=troubled]').uncheck()
})

test('the kill switch in the page turns the shields off and on, also on a phone', async () => {
  await page.setViewportSize({ width: 390, height: 844 })
  await at('#/overview')
  await page.click('text=Switch protection off')
  await page.locator('dialog button', { hasText: 'Switch off' }).click()
  await page.locator('.verdict.off').waitFor()
  const { hosts } = await busy.api<{ hosts: HostView[] }>('GET', '/v1/hosts')
  const all = hosts.filter(({ isConnected }) => isConnected).length
  expect(all).toBeGreaterThan(2)
  await notice(`Protection is off: ${all} of ${all} sensors have confirmed.`).waitFor()
  expect((await busy.api<Overview>('GET', '/v1/overview')).isOff).toBe(true)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
  await page.locator('button', { hasText: 'Menu' }).click()
  await page.locator('nav a', { hasText: 'Fleet' }).click()
  await page.locator('h1', { hasText: 'Fleet' }).waitFor()
  await page.setViewportSize({ width: 1440, height: 900 })
  await at('#/overview')
  await notice('Protection is off').locator('button', { hasText: 'Undo' }).click()
  await page.locator('.verdict:not(.off)').waitFor()
  expect((await audited(/^switch/)).length).toBe(2)
})

test('a hub with tokens: the page asks for one, says what is refused, and shows what the role may see', async () => {
  const person = { name: 'ann', role: 'viewer', token: 'a(long)secret/+=' } as const
  const operator = { name: 'bob', role: 'operator', token: 'b(long)secret/+=' } as const
  await rest()
  const guarded = await startHub({
    consoleFolder: pageFolder,
    logLevel: 'fatal',
    initialRules: [{ id: 'shop', prefix: 'shop_', threshold: 200 }],
    tokens: { apps: [], people: [person, operator] },
  })
  const other = await browser.newPage({ locale: 'en-US' })
  await other.goto(guarded.url)
  await other.fill('input[name=token]', 'wrong')
  await other.click('button:text-is("Sign in")')
  await other.locator('.problem', { hasText: 'token' }).waitFor()
  await other.fill('input[name=token]', person.token)
  await other.click('button:text-is("Sign in")')
  await other.locator('.verdict h1').waitFor()
  await other.locator('button', { hasText: 'Sign out' }).waitFor()
  expect(await other.locator('text=Switch protection off').count()).toBe(0)
  await at('#/rules', other)
  await other.locator('td', { hasText: 'shop_*' }).waitFor()
  expect(await other.locator('a.button, td button, td select').count()).toBe(0)
  await at('#/key/main/shop_1', other)
  await other.locator('.problem', { hasText: 'not currently tracked' }).waitFor()
  expect(await other.locator('[aria-label=Actions]').count()).toBe(0)
  await other.click('text=Sign out')
  await other.locator('input[name=token]').waitFor()
  expect(await other.locator('.link').innerText()).toBe('not signed in')
  await other.fill('input[name=token]', operator.token)
  await other.click('button:text-is("Sign in")')
  await other.locator('text=Switch protection off').waitFor()
  await other.close()
  await guarded.close()
})

test('a first run leads in three steps, with the real address, and notices each; observed is not handled', async () => {
  await rest()
  const fresh = await startHub({
    initialRules: [
      { id: 'all', prefix: 'seen', threshold: 10, strategy: 'Observe' },
      { id: 'handled', prefix: 'handled:', threshold: 5, strategy: 'LocalCache' },
    ],
    consoleFolder: pageFolder,
    logLevel: 'fatal',
  })
  const other = await browser.newPage({ locale: 'en-US' })
  await other.goto(fresh.url)
  await other.locator('.verdict.unknown', { hasText: 'No sensor is reporting' }).waitFor()
  const steps = other.locator('.first-run li')
  await steps.first().waitFor()
  expect(await steps.first().innerText()).toContain(fresh.url)
  expect(await other.locator('.first-run li.is-done').count()).toBe(0)
  await at('#/keys', other)
  await other.locator('.empty', { hasText: 'No sensor is reporting: connect a service first' }).waitFor()
  await at('#/overview', other)
  const body = `# ${Date.now()},${Date.now()},shop,host-1\n# main\nseen1:500,seen2:500\n`
  await fetch(`${fresh.url}/v1/reports`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })
  await waitFor(async () => (await other.locator('.first-run li.is-done').count()) === 2)
  await other.locator('.verdict.observed', { hasText: '2 keys are hot but only observed' }).waitFor()
  // The third step: a key that a process handles. It stays until it was read, and then is no first run any more.
  const redis = protect(new Redis(busy.server.port), { hubs: [fresh.url], serviceId: 'first', tableFile: false })
  const reading = setInterval(() => {
    for (let read = 0; read < 20; read++) redis.get('handled:1').catch(() => {})
  }, 50)
  await waitFor(async () => (await other.locator('.first-run li.is-done').count()) === 3)
  await other.locator('.first-run button', { hasText: 'Close' }).waitFor()
  // The hub remembers it from the first read that was served.
  await waitFor(async () => ((await (await fetch(`${fresh.url}/v1/overview`)).json()) as Overview).wasHandled)
  clearInterval(reading)
  await other.locator('.first-run button', { hasText: 'Close' }).click()
  await other.locator('.first-run').waitFor({ state: 'detached' })
  await other.reload()
  await other.locator('.verdict h1').waitFor()
  expect(await other.locator('.first-run').count()).toBe(0)
  await at('#/keys?filter=nothing-like-it', other)
  await other.locator('.empty', { hasText: 'No key matches the filter' }).waitFor()
  unprotect(redis)
  redis.disconnect()
  await other.close()
  await fresh.close()
})

test('the page is Chinese where the reader is, and a browser without a language gets it too', async () => {
  await rest()
  const context = await browser.newContext({ locale: 'zh-CN' })
  const other = await context.newPage()
  await other.goto(busy.hub.url)
  await other.locator('nav a', { hasText: '热 key' }).waitFor()
  expect(await other.evaluate('document.documentElement.lang')).toBe('zh-CN')
  await at('#/settings', other)
  await other.locator('button', { hasText: 'English' }).click()
  await other.locator('nav a', { hasText: 'Hot keys' }).waitFor()
  await other.locator('button', { hasText: 'Dark' }).click()
  expect(await other.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await other.reload()
  await other.locator('nav a', { hasText: 'Hot keys' }).waitFor()
  expect(await other.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await context.close()
  const odd = await browser.newPage()
  // What Chromium says where the system has no locale.
  await odd.addInitScript("Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })")
  await odd.goto(busy.hub.url)
  await odd.locator('.uplot').first().waitFor({ timeout: 20_000 })
  await odd.close()
})

test('the page is sent compressed, kept by its hash, asks nobody else, and its first load stays within 90 kB', async () => {
  const html = await (await fetch(busy.hub.url)).text()
  const assets = [...html.matchAll(/(?:src|href)="\.(\/[^"]+)"/g)].map(([, path]) => path!)
  expect(assets.filter((path) => path.startsWith('/assets/')).length).toBeGreaterThanOrEqual(2)
  let total = 0
  for (const path of ['/', ...assets]) {
    const answer = await fetch(`${busy.hub.url}${path}`, { headers: { 'accept-encoding': 'gzip' } })
    await answer.arrayBuffer()
    expect([path, answer.headers.get('content-encoding')]).toEqual([path, 'gzip'])
    const isHashed = path.startsWith('/assets/')
    expect(answer.headers.get('cache-control')).toBe(isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
    total += statSync(join(pageFolder, `${path === '/' ? '/index.html' : path}.gz`)).size
  }
  // A reader of Chinese waits for the catalogue too.
  const chinese = readdirSync(join(pageFolder, 'assets')).find((name) => /^zh-.*\.js\.gz$/.test(name))!
  expect(total + statSync(join(pageFolder, 'assets', chinese)).size).toBeLessThanOrEqual(90_000)
})

test('a page that no longer hears from the hub dims, stamps its figures and takes the verdict back', async () => {
  await page.goto(`${busy.hub.url}/#/overview`)
  await page.locator('.verdict dl.leading').waitFor()
  await page.context().setOffline(true)
  await busy.hub.close()
  await page.locator('.link.lost').waitFor({ timeout: 20_000 })
  await page.locator('main.stale .verdict.unknown', { hasText: 'Unknown: the hub does not answer.' }).waitFor()
  expect(await page.locator('.lost-hub').innerText()).toMatch(/figures below are from \d\d:\d\d:\d\d/)
  expect(
    Number(await page.evaluate("getComputedStyle(document.querySelector('.verdict dl.leading')).opacity")),
  ).toBeLessThan(1)
  expect(pageErrors).toEqual([])
})
