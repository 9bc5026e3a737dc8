import { pageFolder } from '@firebreak/console'
import type { AuditEntry, Overview } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { startRedis, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { hotKey, playIncident } from '../../examples/flash-sale/src/incident.ts'
import { startBrowser } from './browser.ts'

test('the incident of the demo: from the alarm to "limited for ten minutes" and "undone" in four clicks', async () => {
  const server = await startRedis()
  const hub = await startHub({ consoleFolder: pageFolder, logLevel: 'fatal' })
  const browser = await startBrowser()
  const page = await browser.newPage({ locale: 'en-US', viewport: { width: 1440, height: 900 } })
  const api = async <T>(path: string) => (await (await fetch(`${hub.url}${path}`)).json()) as T
  const lines: string[] = []
  const incident = playIncident({
    hubUrl: hub.url,
    redisUrl: server.url,
    readsPerSecond: 800,
    say: (line) => lines.push(line),
  })
  try {
    await page.goto(`${hub.url}/#/overview`)
    const alarm = page.locator('.alarm', { hasText: 'only observes' })
    await alarm.waitFor({ timeout: 60_000 })
    let clicks = 0
    const click = async (button: string) => {
      clicks++
      await page.locator(button).click()
    }
    await click(`.alarm a:has-text("Open ${hotKey}")`)
    await click('.key-actions .choices button:text-is("Limit")')
    await click('.preview button:text-is("Limit for 10 min")')
    await page.locator('.notice', { hasText: 'for 10 min' }).waitFor()
    // The limit is carried out, and the alarm ends by itself.
    await waitFor(async () => (await api<Overview>('/v1/overview')).rate.limited > 0, { timeoutMs: 60_000 })
    await waitFor(async () => (await api<{ alarms: unknown[] }>('/v1/alarms')).alarms.length === 0)
    await waitFor(() => lines.some((line) => line.includes('RateLimit is in force')))
    await click('.notice button:text-is("Undo")')
    await page.locator('.notice', { hasText: 'Undone' }).waitFor()
    const story = await incident
    expect(clicks).toBe(4)
    expect(story.undoneAfter).toBeGreaterThan(story.actedAfter!)
    expect(story.actedAfter).toBeGreaterThan(story.alarmAfter!)
    expect(story.refused).toBeGreaterThan(0)
    const { entries } = await api<{ entries: AuditEntry[] }>('/v1/audit')
    expect(entries.map(({ what }) => what.replace(/key:\w+/, 'key')).toReversed()).toEqual([
      'add rule demo-incident',
      'add rule key',
      'delete rule key',
      'delete rule demo-incident',
    ])
  } finally {
    await browser.close()
    await hub.close()
    await server.stop()
  }
}, 180_000)
