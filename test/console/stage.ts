import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pageFolder } from '@firebreak/console'
import type { AuditEntry } from '@firebreak/core'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { startBrowser } from './browser.ts'
import { type BusyHub, startBusyHub } from './busy-hub.ts'

/** A busy hub, a browser and one page on it, with the short ways of the tests. */
export interface Stage {
  readonly busy: BusyHub
  readonly browser: Browser
  readonly page: Page
  /** What the page threw. */
  readonly errors: readonly string[]
  /** Opens an address of the page. */
  at(address: string): Promise<void>
  notice(text: string | RegExp): Locator
  section(label: string): Locator
  /** What people did, newest first. */
  audited(what: RegExp): Promise<AuditEntry[]>
  close(): Promise<void>
}

export async function openStage(options: BrowserContextOptions = {}): Promise<Stage> {
  expect(existsSync(join(pageFolder, 'index.html')), 'the console is built (npm run build)').toBe(true)
  const busy = await startBusyHub()
  const browser = await startBrowser()
  const page = await browser.newPage({ locale: 'en-US', viewport: { width: 1440, height: 900 }, ...options })
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  await page.goto(busy.hub.url)
  return {
    busy,
    browser,
    page,
    errors,
    at: (address) => page.evaluate(`location.hash = ${JSON.stringify(address)}`),
    notice: (text) => page.locator('.notice', { hasText: text }),
    section: (label) => page.locator(`section[aria-label="${label}"]`).first(),
    async audited(what) {
      const { entries } = await busy.api<{ entries: AuditEntry[] }>('GET', '/v1/audit?limit=100')
      return entries.filter((entry) => what.test(entry.what))
    },
    async close() {
      await browser.close()
      await busy.close()
    },
  }
}
