import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ResolvedSettings } from '@firebreak/core/settings'
import { temporaryFolder } from '@firebreak/testkit'
import { expect, test, vi } from 'vitest'
import { readTokens } from '../access/tokens-file.ts'
import { HubConfigError } from '../errors.ts'
import { resolveHubConfig } from './resolve-hub-config.ts'

const folder = temporaryFolder('config')

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

const sourcesOf = ({ all }: ResolvedSettings) =>
  Object.fromEntries(all.map(({ setting, source }) => [setting.name, source]))

test('a flag beats a variable, a variable the file, the file the default', () => {
  const config = file('hub.yaml', 'port: 1\nheartbeatMs: 300\nsettleMs: 5\nallowedHosts: [a.example]\n')
  const { options, settings } = resolveHubConfig({
    flags: { config, port: '3' },
    env: { FIREBREAK_HUB_PORT: '2', FIREBREAK_HUB_HEARTBEAT_MS: '400', PATH: 'x' },
  })
  expect(options).toMatchObject({ port: 3, heartbeatMs: 400, settleMs: 5, allowedHosts: ['a.example'] })
  expect(sourcesOf(settings)).toMatchObject({ port: 'flag', heartbeatMs: 'env', settleMs: 'file', host: 'default' })
  expect(resolveHubConfig({}).options).toEqual({ port: 7070 })
})

test("the settings of OpenTelemetry: a flag, the hub's variable, OpenTelemetry's, the file", () => {
  const config = file(
    'otlp.yaml',
    'otlpEndpoint: http://file:4318\notlpIntervalMs: 4\notlpTimeoutMs: 4\notlpServiceName: file\notlpHeaders: {key: a=b}\n',
  )
  const { options, settings } = resolveHubConfig({
    flags: { config, 'otlp-endpoint': 'http://flag:4318', 'otlp-attributes': 'a=1,b=two%2Cthree' },
    env: {
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://shared/x',
      FIREBREAK_HUB_OTLP_INTERVAL_MS: '2',
      OTEL_METRIC_EXPORT_INTERVAL: '3',
      OTEL_EXPORTER_OTLP_TIMEOUT: '3',
      OTEL_SERVICE_NAME: '',
    },
  })
  expect(options.otlp).toEqual({
    endpoint: 'http://flag:4318',
    intervalMs: 2,
    timeoutMs: 3,
    serviceName: 'file',
    headers: { key: 'a=b' },
    attributes: { a: '1', b: 'two,three' },
  })
  expect(sourcesOf(settings)).toMatchObject({ otlpEndpoint: 'flag', otlpTimeoutMs: 'env', otlpServiceName: 'file' })
  expect(settings.warnings).toEqual([])
})

test('OTEL_SDK_DISABLED ends what any place asks for; what OpenTelemetry cannot mean is passed over and told', () => {
  const flags = { 'otlp-endpoint': 'http://collector:4318' }
  expect(resolveHubConfig({ flags, env: { OTEL_SDK_DISABLED: 'true' } }).options).toEqual({ port: 7070 })
  const { options, settings } = resolveHubConfig({ flags, env: { OTEL_METRIC_EXPORT_INTERVAL: 'soon' } })
  expect(options.otlp).toEqual({ endpoint: 'http://collector:4318' })
  expect(settings.warnings).toEqual([expect.stringContaining('OTEL_METRIC_EXPORT_INTERVAL is "soon"')])
})

test.each([
  [{ flags: { 'otlp-headers': 'secret' } }, '--otlp-headers', '--otlp-headers must be name=value,name=value'],
  [
    { flags: { config: file('k.yaml', 'otlpAttributes: {a: 1}') } },
    'otlpAttributes',
    'otlpAttributes must be name=value',
  ],
  [{ flags: { prot: '1' } }, '--prot', 'unknown setting --prot; did you mean --port?'],
  [{ env: { FIREBREAK_HUB_PROT: '1' } }, 'FIREBREAK_HUB_PROT', 'did you mean FIREBREAK_HUB_PORT?'],
  [{ flags: { config: file('a.yaml', 'heartbeatms: 5') } }, 'heartbeatms', 'did you mean heartbeatMs?'],
  [{ flags: { port: 'x' } }, '--port', '--port is "x"; it must be a whole number from 0 to 65535'],
  [{ env: { FIREBREAK_HUB_PORT: '70000' } }, 'FIREBREAK_HUB_PORT', 'FIREBREAK_HUB_PORT is "70000"'],
  [{ flags: { 'log-level': 'inof' } }, '--log-level', 'did you mean info?'],
  [{ flags: { host: '' } }, '--host', 'give it a value or leave it out'],
  [{ flags: { config: join(folder, 'none.yaml') } }, 'config', 'cannot be read'],
  [{ flags: { config: file('b.yaml', '- a') } }, '', 'it must be an object of settings'],
  [{ flags: { 'tls-cert-file': 'x' } }, 'tlsKeyFile', 'TLS needs both'],
  [{ flags: { 'rules-file': file('c.yaml', 'a: 1') } }, 'rulesFile', 'a list of rules'],
  [
    { flags: { 'tokens-file': file('d.yaml', 'people: [{name: a, token: 0123456789abcdef}]') } },
    'people[0].role',
    'is missing',
  ],
  [
    { flags: { 'tokens-file': file('blank.yaml', 'apps: [{name: a, token: two words are refused}]') } },
    'apps[0].token',
    'without spaces',
  ],
  [
    { flags: { 'tokens-file': file('e.yaml', 'apps: [{name: a, token: short}]') } },
    'apps[0].token',
    '16 to 512 characters',
  ],
  [
    { flags: { config: file('g.yaml', 'watchers: [{kind: replika, redisClusterId: main}]') } },
    'watchers[0].kind',
    'did you mean replica?',
  ],
  [
    { flags: { config: file('h.yaml', 'watchers: [{kind: replica, redisClusterId: main, address: {hots: a}}]') } },
    'watchers[0].address.hots',
    'did you mean host?',
  ],
  [
    {
      flags: {
        watchers: file(
          'i.yaml',
          '[{kind: aof, redisClusterId: a, folder: f}, {kind: aof, redisClusterId: a, folder: g}]',
        ),
      },
    },
    'watchers[1].name',
    'the second “AOF tail of a”',
  ],
  [
    {
      flags: {
        config: file(
          'j.yaml',
          'watchers: [{kind: binlog, redisClusterId: a, connection: {user: u}, redis: "redis://h", mapping: {tables: {}}}]',
        ),
      },
    },
    'watchers[0].mapping',
    'names no table',
  ],
  [{ flags: { 'alarm-webhooks': 'ftp://x' } }, 'alarmWebhooks[0]', 'an http or https URL'],
  [{ flags: { 'tokens-file': file('f.yaml', 'app: []') } }, 'app', 'did you mean apps?'],
])('%j is refused with its name', (input, field, message) => {
  let caught: unknown
  try {
    resolveHubConfig(input as Parameters<typeof resolveHubConfig>[0])
  } catch (error) {
    caught = error
  }
  expect(caught).toBeInstanceOf(HubConfigError)
  expect((caught as HubConfigError).message).toContain(message)
  expect((caught as HubConfigError).field).toBe(field)
})

test('how steps are tried again comes from lines, and a wrong one is refused with its name', () => {
  const flags = { retry: ['redis tries=20 atEnd=drop', 'replica deadlineMs=60000'] }
  expect(resolveHubConfig({ flags }).options.retry).toEqual({
    redis: { tries: 20, atEnd: 'drop' },
    replica: { deadlineMs: 60_000 },
  })
  const refused = (line: string) => () => resolveHubConfig({ flags: { retry: [line] } })
  expect(refused('redsi tries=1')).toThrow('did you mean redis?')
  expect(refused('replica atEnd=drop')).toThrow('retry.replica.atEnd is "drop"; it must be one of alarm, stop')
})

test('rules and tokens come from files', () => {
  const { options } = resolveHubConfig({
    flags: {
      'rules-file': file('rules.yaml', 'rules:\n  - {id: a, prefix: p, threshold: 5}\n'),
      'tokens-file': file(
        'tokens.yaml',
        'apps: [{name: shop, token: 0123456789abcdef}]\npeople: [{name: ann, role: admin, token: fedcba9876543210}]\n',
      ),
    },
  })
  expect(options.initialRules).toEqual([{ id: 'a', prefix: 'p', threshold: 5 }])
  expect(options.tokens).toEqual({
    apps: [{ name: 'shop', token: '0123456789abcdef' }],
    people: [{ name: 'ann', role: 'admin', token: 'fedcba9876543210' }],
  })
})

test('watchers of all kinds come from the file, with the mapping from another', () => {
  const mappingFile = file(
    'mapping.yaml',
    'tables: {shop.product: [{key: "product:{id}", value: {json: all}, ttlSeconds: 60}]}',
  )
  const config = file(
    'watchers.yaml',
    `alarmWebhooks: ["https://alarms.example/hook"]
watchers:
  - {kind: replica, redisClusterId: main, address: {host: 10.0.0.1, port: 6380, password: p, tls: {caFile: ${mappingFile}, serverName: redis.example}}, guards: true}
  - {kind: aof, redisClusterId: other, folder: /var/lib/redis, maxValueBytes: 0}
  - kind: binlog
    redisClusterId: main
    connection: {host: db, user: repl, password: q}
    mappingFile: ${mappingFile}
    redis: ["redis://10.0.0.1", "redis://10.0.0.2"]
    loaderUrl: http://app/load
`,
  )
  const { options } = resolveHubConfig({ flags: { config } })
  expect(options.alarmWebhooks).toEqual(['https://alarms.example/hook'])
  expect(options.watchers).toMatchObject([
    {
      kind: 'replica',
      redisClusterId: 'main',
      address: {
        host: '10.0.0.1',
        port: 6380,
        password: 'p',
        tls: { ca: expect.stringMatching(/^tables:/), serverName: 'redis.example' },
      },
      guards: true,
    },
    { kind: 'aof', folder: '/var/lib/redis', maxValueBytes: 0 },
    { kind: 'binlog', connection: { host: 'db', port: 3306, user: 'repl' }, loaderUrl: 'http://app/load' },
  ])
  const binlog = options.watchers!.find(({ kind }) => kind === 'binlog')
  expect(binlog?.kind === 'binlog' && [...binlog.mapping.keys()]).toEqual(['shop.product'])
})

test('neither an error nor a warning about a YAML file quotes its lines, which hold secrets', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const messages: string[] = []
  const attempt = (read: () => unknown) => {
    try {
      read()
    } catch (error) {
      expect(error).toBeInstanceOf(HubConfigError)
      for (let cause = error as Error | undefined; cause !== undefined; cause = cause.cause as Error | undefined) {
        messages.push(cause.message)
      }
    }
  }
  // The first is an error of YAML, the second a warning.
  for (const line of ['secret-of-the-line: [', '- {name: a<<: *ale: viewer, token: secret-of-the-line}']) {
    attempt(() => readTokens(file('quoted.yaml', line)))
    attempt(() => resolveHubConfig({ flags: { config: file('quoted.yaml', line) } }))
  }
  for (const text of [
    'people: [{name: a, role: secret-of-the-line}]',
    'apps: [secret-of-the-line]',
    'apps: secret-of-the-line',
    'secret-of-the-line',
    'apps: [{name: a, token: 0123456789abcdef0123456789abcdef, secret-of-the-line: 1}]',
  ]) {
    const before = messages.length
    attempt(() => readTokens(file('quoted.yaml', text)))
    expect(messages.length).toBeGreaterThan(before)
  }
  expect(messages.length).toBeGreaterThan(2)
  expect(messages.filter((message) => message.includes('secret-of-the-line'))).toEqual([])
  expect(warned).not.toHaveBeenCalled()
  warned.mockRestore()
})
