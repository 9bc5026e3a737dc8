import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const alerts = fileURLToPath(new URL('../deploy/prometheus/alerts.yaml', import.meta.url))

test('Prometheus accepts the alerts', () => {
  expect(execFileSync('promtool', ['check', 'rules', alerts], { encoding: 'utf8' })).toMatch(/SUCCESS: \d+ rules found/)
})

/** What a hub would show, minute by minute, and the alerts that fire in the end. */
function alertsAfter(series: Readonly<Record<string, string>>, names: readonly string[], at = '5m'): string {
  const file = join(temporaryFolder('alerts'), 'test.yaml')
  const inputs = Object.entries(series).map(([name, values]) => `      - { series: '${name}', values: '${values}' }`)
  const expected = names.map((name) => `      - { eval_time: ${at}, alertname: ${name}, exp_alerts: [] }`)
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

test('a key that is hot and not handled for a minute fires an alert, on whichever hub', () => {
  const said = alertsAfter({ [unhandled('a')]: '0x6', [unhandled('b')]: '0 0 2x4' }, ['FirebreakHotAndNotHandled'])
  expect(said).toContain('alertname: FirebreakHotAndNotHandled')
  expect(said).toContain('2 hot keys reach Redis unprotected')
})

test('a key that is handled, or was unhandled only for a moment, fires no alert', () => {
  const series = {
    [unhandled('a')]: '0 0 0 0 3 0',
    'firebreak_hot_keys_by_handling{handling="handled",instance="a"}': '5x6',
    'up{job="firebreak-hub",instance="a"}': '1x6',
    firebreak_switch_off: '0x6',
  }
  const names = ['FirebreakHotAndNotHandled', 'FirebreakHubDown', 'FirebreakSwitchedOff']
  expect(alertsAfter(series, names)).toContain('SUCCESS')
})

const share = (handling: string) => `firebreak_hot_key_share{handling="${handling}",instance="a"}`

test('the incident of the runbook fires an alert: one key takes much of the load, and a rule only observes', () => {
  const said = alertsAfter({ [share('observed')]: '0.34x6', [share('handled')]: '0.5x6' }, ['FirebreakHotKeyLeftAlone'])
  expect(said).toContain('One key takes 34% of all accesses and is only observed')
  expect(said).toContain('handling="observed"')
})

test('a rule in shadow mode is distinguished from one that observes', () => {
  const said = alertsAfter({ [share('shadow')]: '0.5x6', [share('observed')]: '0.1x6' }, ['FirebreakHotKeyLeftAlone'])
  expect(said).toContain('shown what a rule in shadow mode would do')
  expect(said).not.toContain('handling="observed"')
})

test('keys that are observed and take little of the load fire no alert', () => {
  const series = { [share('observed')]: '0.05x6', [share('shadow')]: '0 0.9 0 0 0 0', [share('handled')]: '0.9x6' }
  expect(alertsAfter(series, ['FirebreakHotKeyLeftAlone'])).toContain('SUCCESS')
})

test.each([
  [
    'FirebreakHubDown',
    { 'up{job="firebreak-hub",instance="a"}': '1 1 0x4', 'up{job="firebreak-hub",instance="b"}': '1x6' },
    'instance="a"',
  ],
  [
    'FirebreakAlarm',
    { 'firebreak_alarms{severity="critical"}': '0 1x5', 'firebreak_alarms{severity="warning"}': '0x6' },
    'critical',
  ],
  ['FirebreakSourceDown', { 'firebreak_source_up{source="replica:main"}': '1 0x5' }, 'replica:main is not live'],
  [
    'FirebreakRedisAway',
    { 'firebreak_proxy_upstream_up{node="10.0.0.5:6379",instance="p"}': '1 0x5' },
    '10.0.0.5:6379',
  ],
])('%s fires', (name, series, said) => {
  expect(alertsAfter(series, [name])).toContain(said)
})

test.each([
  [
    'FirebreakReportsRefused',
    'firebreak_reports_refused_total{cause="scope",instance="a"}',
    '0+600x20',
    'Reports are refused: scope',
  ],
  ['FirebreakNoRoomForKeys', 'firebreak_tracked_keys_overflow_total{instance="a"}', '0+60x20', 'no room for more keys'],
  [
    'FirebreakConnectionsLost',
    'firebreak_proxy_upstream_lost_total{node="n",instance="p"}',
    '0+600x20',
    'loses connections',
  ],
])(
  '%s fires while its counter rises, even if the process restarts and counts from zero',
  (name, series, values, said) => {
    expect(alertsAfter({ [series]: values }, [name], '15m')).toContain(said)
    const step = values.split('+')[1]!.split('x')[0]
    expect(alertsAfter({ [series]: `1000000+${step}x10 0+${step}x10` }, [name], '12m')).toContain(said)
    expect(alertsAfter({ [series]: '5000x20' }, [name], '15m')).toContain('SUCCESS')
  },
)

test('the kill switch fires an alert after ten minutes', () => {
  expect(alertsAfter({ firebreak_switch_off: '1x20' }, ['FirebreakSwitchedOff'], '5m')).toContain('SUCCESS')
  expect(alertsAfter({ firebreak_switch_off: '1x20' }, ['FirebreakSwitchedOff'], '11m')).toContain(
    'The kill switch is thrown',
  )
})

test('every alert has a scenario here', () => {
  const names = [...readFileSync(alerts, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name!)
  const here = readFileSync(fileURLToPath(import.meta.url), 'utf8')
  expect(names.filter((name) => !here.includes(`'${name}'`))).toEqual([])
})
