import chromium from '@sparticuz/chromium'
import { type Browser, type Page, chromium as playwright } from 'playwright-core'

/** One headless Chromium for a whole file. */
export async function startBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: await chromium.executablePath(),
    // One process for all pages would end with the first page that is closed.
    args: chromium.args.filter((one) => one !== '--single-process'),
    headless: true,
  })
}

/** Every page of the console, by its name in the address. */
export const pageNames = [
  'overview',
  'keys',
  'heat',
  'timeline',
  'reports',
  'rules',
  'autopilot',
  'alerts',
  'audit',
  'limits',
  'locks',
  'ids',
  'sale',
  'finders',
  'fleet',
  'settings',
] as const

/** Tables whose columns stand beyond their frame, by their names; those of a chart's figures may. */
export function beyondEdge(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('main .scroll:not(.chart-table)')]
    .filter((frame) => frame.scrollWidth > frame.clientWidth)
    .map((frame) => frame.getAttribute('aria-label') + ' ' + frame.scrollWidth + ' > ' + frame.clientWidth)`)
}
