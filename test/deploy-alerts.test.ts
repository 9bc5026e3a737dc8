import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const alerts = fileURLToPath(new URL('../deploy/prometheus/alerts.yaml', import.meta.url))

test('Prometheus takes the alerts', () => {
  expect(execFileSync('promtool', ['check', 'rules', alerts], { encoding: 'utf8' })).toMatch(/SUCCESS: \d+ rules found/)
})

/** What a hub would show, minute by minute, and the alerts that are there after five. */
function alertsAfter(series: Readonly<Record<string, string>>, names: readonly string[]): string {
  const file = join(temporaryFolder('alerts'), 'test.yaml')
  const inputs = Object.entries(series).map(([name, values]) => `      - { series: '${name}', values: '${values}' }`)
  const expected = names.map((name) => `      - { eval_time: 5m, alertname: ${name}, exp_alerts: [] }`)
  const text = `rule_files: ['${alerts}']
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
${inputs.join('\n')}
    alert_rule_test:
${expected.join('\n')}
`
  writeFileSync(file, text)
  const { stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
  return `${stdout}${stderr}`
}

const unhandled = (hub: string) => `firebreak_hot_keys_by_handling{handling="unhandled",instance="${hub}"}`

test('a key that is hot and not handled for a minute wakes somebody up, on whichever hub', () => {
  const said = alertsAfter({ [unhandled('a')]: '0x6', [unhandled('b')]: '0 0 2x4' }, ['FirebreakHotAndNotHandled'])
  expect(said).toContain('alertname: FirebreakHotAndNotHandled')
  expect(said).toContain('2 hot keys reach Redis unprotected')
})

test('one that is handled, or was not for a moment only, wakes nobody', () => {
  const series = {
    [unhandled('a')]: '0 0 0 0 3 0',
    'firebreak_hot_keys_by_handling{handling="handled",instance="a"}': '5x6',
    'up{job="firebreak-hub",instance="a"}': '1x6',
    firebreak_switch_off: '0x6',
  }
  const names = ['FirebreakHotAndNotHandled', 'FirebreakHubDown', 'FirebreakSwitchedOff']
  expect(alertsAfter(series, names)).toContain('SUCCESS')
})
