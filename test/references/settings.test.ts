import { readFileSync } from 'node:fs'
import { flagOf, settingsSchema, variablesOf } from '@firebreak/core/settings'
import type { ProxyOptions } from '@firebreak/proxy'
import { proxySettings } from '@firebreak/proxy'
import { commands, settingTables } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { settingsPage, writtenSettingsPage } from './settings-pages.ts'

test('the page of settings is what the tables say (npm run references writes it)', () => {
  expect(readFileSync(settingsPage, 'utf8')).toBe(writtenSettingsPage())
})

test.each(settingTables)('$command: help, flags and schema hold every setting and its variables', async (table) => {
  const { help, flags } = await commands.find(({ name }) => name === table.command)!.load()
  const { properties } = settingsSchema(table) as { properties: Record<string, unknown> }
  const page = readFileSync(settingsPage, 'utf8')
  expect(Object.keys(properties)).toEqual(table.settings.map(({ name }) => name))
  const own = ['config', ...table.settings.map(({ name }) => flagOf(name))]
  expect(flags?.slice(0, own.length)).toEqual(own)
  for (const setting of table.settings) {
    expect(help).toContain(`--${flagOf(setting.name)}`)
    for (const variable of variablesOf(table, setting)) {
      expect(help).toContain(variable)
      expect(page).toContain(`\`${variable}\``)
    }
  }
})

test('every option of the proxy has a setting', () => {
  // The compiler holds this list complete; functions are left to those who embed a proxy.
  const settingsOf: Record<Exclude<keyof ProxyOptions, 'logger'>, readonly string[]> = {
    upstream: ['upstream'],
    mode: ['mode'],
    sentinelGroup: ['sentinelGroup'],
    sentinelPassword: ['sentinelPassword'],
    host: ['host'],
    allowAnyone: ['allowAnyone'],
    port: ['port'],
    path: ['path'],
    tls: [],
    tlsFiles: ['tlsCert', 'tlsKey', 'tlsCa'],
    upstreamTls: ['upstreamCa', 'upstreamCert', 'upstreamKey'],
    users: ['user', 'certificateUser'],
    shield: ['hub', 'tables', 'token', 'service', 'clusterId', 'tableFile', 'leaseMs', 'redactKeys', 'redactSecret'],
    workers: ['workers'],
    transport: ['transport'],
    maxClients: ['maxClients'],
    maxRequestBytes: ['maxRequestBytes'],
    maxHeldBytes: ['maxHeldBytes'],
    maxOutputBytes: ['maxOutputBytes'],
    maxTotalOutputBytes: ['maxTotalOutputBytes'],
    maxQueuedBytes: ['maxQueuedBytes'],
    maxInFlight: ['maxInFlight'],
    slowReaderMs: ['slowReaderMs'],
    idleTimeoutMs: ['idleTimeout'],
    connectWaitMs: ['connectWaitMs'],
    retryForMs: ['retryForMs'],
    maxIdleConnections: ['maxIdleConnections'],
    idleConnectionMs: ['idleConnectionMs'],
    slowLogMs: ['slowLogMs'],
    slowLogLength: ['slowLogLength'],
    sharedPort: ['sharedPort'],
    lingerMs: ['lingerMs'],
    drainMs: ['drainMs'],
    metricsPort: ['metricsPort'],
    metricsHost: ['metricsHost'],
    otlp: proxySettings.settings.flatMap(({ name, otlp }) => (otlp === undefined ? [] : [name])),
    asCluster: ['asCluster'],
    announce: ['announce'],
  }
  const known = proxySettings.settings.map(({ name }) => name)
  expect(Object.values(settingsOf).flat().sort()).toEqual([...known].sort())
})
