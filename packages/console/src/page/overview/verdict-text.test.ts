import type { Overview } from '@firebreak/core'
import { expect, test, vi } from 'vitest'

vi.stubGlobal('localStorage', { getItem: () => null, setItem() {} })
vi.stubGlobal('document', { documentElement: {} })
const { verdictText } = await import('./verdict-text.ts')
const { setLanguage } = await import('../text/text.ts')

const hotBy = { sensor: 0, table: 0, centre: 0, reports: 0, none: 0 }
const overview = {
  alarms: [],
  sensors: { connected: 0, hosts: 1, services: 1 },
  hot: { handled: 0, observed: 0, unhandled: 0 },
  hotBy,
  rules: { total: 0, handling: 0 },
} as unknown as Overview

test('in Chinese too it is said that there are no rules, or none that handles anything', async () => {
  await setLanguage('zh')
  expect(verdictText(overview, 'unknown')).toContain('没有任何规则')
  expect(verdictText({ ...overview, sensors: { connected: 0, hosts: 0, services: 0 } }, 'unknown')).not.toContain(
    '规则',
  )
  expect(verdictText({ ...overview, rules: { total: 1, handling: 0 } }, 'observed')).toContain('没有规则会处理')
})

test('in Chinese too keys of services that only report are told from those handled by who reads the table', async () => {
  await setLanguage('zh')
  const reported = { ...overview, hot: { handled: 0, observed: 2, unhandled: 0 }, hotBy: { ...hotBy, reports: 2 } }
  expect(verdictText(reported, 'observed')).toContain('只上报')
  const mixed = { ...reported, hot: { handled: 1, observed: 2, unhandled: 0 } }
  expect(verdictText(mixed, 'observed')).toContain('2 个是因为其服务只上报')
  const polled = { ...overview, hot: { handled: 2, observed: 0, unhandled: 0 }, hotBy: { ...hotBy, table: 2 } }
  expect(verdictText(polled, 'safe')).toContain('/v1/table')
})
