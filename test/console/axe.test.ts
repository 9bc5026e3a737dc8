import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pageFolder } from '@firebreak/console'
import { startHub } from '@firebreak/hub'
import { scale } from '@firebreak/testkit'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { beyondEdge, pageNames } from './browser.ts'
import { bigKeys, policy } from './busy-hub.ts'
import { openStage, type Stage } from './stage.ts'

vi.setConfig({ testTimeout: 300_000 })

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
let stage: Stage

beforeAll(async () => {
  stage = await openStage({ reducedMotion: 'reduce' })
  const { busy } = stage
  await busy.api('POST', '/v1/limits/policy', policy)
  await busy.api('POST', '/v1/findings', bigKeys())
  await busy.api('PUT', '/v1/rules/stock', { prefix: 'stock:', threshold: 500, mode: 'shadow' })
  await busy.shop.bury('order-901')
  busy.burst('feed:101', 1500)
  await stage.page.locator('table.keys tr', { hasText: 'product:101' }).first().waitFor()
})
afterAll(() => stage?.close())

/** Every page, and what opens on one. After the address was opened `press` is clicked, or `key` typed. */
const views: readonly {
  readonly name: string
  readonly address: string
  readonly press?: string
  readonly key?: string
}[] = [
  ...pageNames.map((name) => ({ name, address: `#/${name}` })),
  { name: 'key, acting', address: '#/key/main/product%253A101', press: 'button:text-is("Limit")' },
  { name: 'rule, edited', address: '#/rules?edit=feed' },
  { name: 'prefixes', address: '#/keys?by=prefix' },
  { name: 'heat as table', address: '#/heat?by=key&table=1' },
  { name: 'last night', address: '#/timeline?from=1767322800000&to=1767326400000' },
  { name: 'palette', address: '#/overview', press: 'button.search' },
  // Its button is left out on a phone, which has no keyboard.
  { name: 'help', address: '#/overview', key: '?' },
  { name: 'silence', address: '#/alerts', press: 'button:text-is("Silence …")' },
  { name: 'new route', address: '#/alerts', press: 'button:text-is("New route")' },
  { name: 'kill switch', address: '#/overview', press: 'button.danger.quiet' },
  { name: 'rule removed', address: '#/rules', press: 'td button:text-is("Remove")' },
]

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** What axe finds, a line each. */
async function violations(page: Page): Promise<string[]> {
  const only = { type: 'tag', values: tags }
  return page.evaluate(`axe.run(document, { runOnly: ${JSON.stringify(only)}, resultTypes: ['violations'] }).then(
    ({ violations }) => violations.flatMap(({ id, help, nodes }) =>
      nodes.slice(0, 3).map(({ html, any }) => id + ': ' + help + ' ' + html.slice(0, 160) + ' ' + (any[0]?.message ?? ''))))`)
}

/** The first two have everything that the others have, each in one of its forms. */
const variants = [
  { width: 1440, theme: 'light' },
  { width: 390, theme: 'dark' },
  { width: 1440, theme: 'dark' },
  { width: 390, theme: 'light' },
] as const

test.each(variants.slice(0, scale(2, 4)))(
  'axe finds nothing on any page: $theme, $width px; no page is wider than its window, no table than its frame',
  async ({ width, theme }) => {
    const { page, busy } = stage
    await page.setViewportSize({ width, height: 900 })
    await page.evaluate(`localStorage.setItem('firebreak-theme', '${theme}')`)
    await page.goto('about:blank')
    await page.goto(`${busy.hub.url}/#/overview`)
    await page.locator('.verdict h1').waitFor()
    await page.evaluate(axe)
    const found: string[] = []
    for (const { name, address, press, key } of views) {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
      await page.locator('main h1, main .verdict').first().waitFor()
      await page.locator('main .empty', { hasText: 'Loading …' }).first().waitFor({ state: 'detached' })
      if (press !== undefined) await page.locator(press).first().click()
      if (key !== undefined) {
        await page.keyboard.press(key)
        await page.locator('dialog').waitFor()
      }
      found.push(...(await violations(page)).map((line) => `${name}: ${line}`))
      const overflow = (await page.evaluate('document.documentElement.scrollWidth')) as number
      if (overflow > width) found.push(`${name}: ${overflow} px wide`)
      found.push(...(await beyondEdge(page)).map((line) => `${name}: ${line}`))
      // A dialog lies over the pages that follow.
      if (press !== undefined || key !== undefined) await page.keyboard.press('Escape')
    }
    expect(found).toEqual([])
  },
)

test('axe finds nothing where a hub asks who it is, is new, or is gone, in both themes', async () => {
  await stage.page.goto('about:blank')
  const found: string[] = []
  const look = async (page: Page, name: string) => {
    for (const theme of ['light', 'dark']) {
      await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
      found.push(...(await violations(page)).map((line) => `${name}, ${theme}: ${line}`))
    }
  }
  const options = { consoleFolder: pageFolder, logLevel: 'fatal' } as const
  const person = { name: 'ann', role: 'viewer', token: 'a-token-of-a-viewer' } as const
  const guarded = await startHub({ ...options, tokens: { apps: [], people: [person] } })
  const fresh = await startHub(options)
  const page = await stage.browser.newPage({ locale: 'en-US', reducedMotion: 'reduce' })
  await page.goto(guarded.url)
  await page.locator('input[name=token]').waitFor()
  await page.evaluate(axe)
  await look(page, 'sign-in')
  await page.goto(fresh.url)
  await page.locator('.first-run').waitFor()
  await page.evaluate(axe)
  await look(page, 'first run')
  await page.context().setOffline(true)
  await fresh.close()
  await page.locator('.lost-hub').waitFor({ timeout: 20_000 })
  await look(page, 'lost hub')
  await page.close()
  await guarded.close()
  expect(found).toEqual([])
})
