import { readFileSync } from 'node:fs'
import { flagOf, settingsSchema, variablesOf } from '@firebreak/core/settings'
import type { ProxyOptions } from '@firebreak/proxy'
import { proxySettings } from '@firebreak/proxy'
import { commands, settingTables } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { settingsPage, writtenSettingsPage } from './settings-pages.ts'

test('the page of settings matches the tables (npm run references writes it)', () => {
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
  // The compiler holds these lists complete; functions are left to those who embed a proxy.
  type OfShield = keyof NonNullable<ProxyOptions['shield']>
  type Embedded = 'redactKey' | 'onWarning' | 'runtime' | 'hubTransport' | 'agent'
  const settingsOfShield: Record<Exclude<OfShield, Embedded>, readonly string[]> = {
    hubs: ['hub'],
    tables: ['tables'],
    token: ['token'],
    // `token` in a file: every setting with a secret has the variable for it by itself.
    tokenFile: [],
    serviceId: ['service'],
    hostId: ['hostId'],
    instanceId: ['instanceId'],
    redisClusterId: ['clusterId'],
    tableFile: ['tableFile'],
    redactKeys: ['redactKeys'],
    redactSecret: ['redactSecret'],
    showsValues: ['showsValues'],
    leaseMs: ['leaseMs'],
    retry: ['retry'],
    fallbackTtlMs: ['fallbackTtlMs'],
    canaryMs: ['canaryMs'],
    maxKeys: ['maxKeys'],
    maxQueuedReports: ['maxQueuedReports'],
    maxQueuedEntries: ['maxQueuedEntries'],
    limitProcesses: ['limitProcesses'],
    maxLimitWaiting: ['maxLimitWaiting'],
    maxLimitWaitMs: ['maxLimitWaitMs'],
    limitDeadlineMs: ['limitDeadlineMs'],
    diskTier: ['diskFolder', 'diskMaxBytes', 'diskRetryAfterMs', 'diskSurvivesRestart'],
  }
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
    shield: Object.values(settingsOfShield).flat(),
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
    authTimeoutMs: ['authTimeoutMs'],
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
    metricsToken: ['metricsToken'],
    otlp: proxySettings.settings.flatMap(({ name, otlp }) => (otlp === undefined ? [] : [name])),
    asCluster: ['asCluster'],
    announce: ['announce'],
  }
  const known = proxySettings.settings.map(({ name }) => name)
  expect(Object.values(settingsOf).flat().sort()).toEqual([...known].sort())
})
