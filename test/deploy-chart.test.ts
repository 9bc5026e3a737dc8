import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { otlpVariables } from '@firebreak/core/metrics'
import { variableOf } from '@firebreak/core/settings'
import { hubSettings, startHub } from '@firebreak/hub'
import { startProxy } from '@firebreak/proxy'
import { commands } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// Without helm this cannot check what it would do with the chart, only what the chart names.
const folder = fileURLToPath(new URL('../deploy/helm/firebreak', import.meta.url))
const read = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8')
const templates = new Map(readdirSync(join(folder, 'templates')).map((name) => [name, read('templates', name)]))
const everything = [...templates.values()].join('\n')

interface Schema {
  readonly type?: string | string[]
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minimum?: number
  readonly properties?: Record<string, Schema>
  readonly additionalProperties?: boolean
}
const values = parse(read('values.yaml')) as Record<string, unknown>
const schema = JSON.parse(read('values.schema.json')) as Schema
const chart = parse(read('Chart.yaml')) as Record<string, string>

/** The paths of all values, including those of objects that are passed on as a whole. */
function pathsOf(value: unknown, of: Schema, path = ''): string[] {
  const { properties } = of
  if (properties === undefined) return [path]
  return Object.entries(value as object).flatMap(([name, inner]) =>
    pathsOf(inner, properties[name] ?? {}, path === '' ? name : `${path}.${name}`),
  )
}

function problemsOf(value: unknown, of: Schema | undefined, path: string): string[] {
  if (of === undefined) return [`${path} is not in the schema`]
  const kind = Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value
  if (of.type !== undefined && ![of.type].flat().includes(kind)) return [`${path} is ${kind}`]
  if (of.enum !== undefined && !of.enum.includes(value)) return [`${path} is ${value}`]
  if (of.pattern !== undefined && !new RegExp(of.pattern).test(String(value))) return [`${path} is ${value}`]
  if (of.minimum !== undefined && Number(value) < of.minimum) return [`${path} is ${value}`]
  if (of.properties === undefined) return []
  if (of.additionalProperties !== false) return [`${path} takes unknown fields`]
  // `global` is Helm's own and needs no value.
  const missing = Object.keys(of.properties).filter((name) => name !== 'global' && !(name in (value as object)))
  return [
    ...missing.map((name) => `${path}.${name} has no value`),
    ...Object.entries(value as object).flatMap(([name, inner]) =>
      problemsOf(inner, of.properties?.[name], `${path}.${name}`),
    ),
  ]
}

const used = new Set([...everything.matchAll(/\.Values\.([\w.]+)/g)].map(([, path]) => path!))
const paths = pathsOf(values, schema)

test('the values match their schema, and the schema has no others', () => {
  expect(problemsOf(values, schema, 'values')).toEqual([])
})

test('every value that a template uses exists, and every value is used by a template', () => {
  expect(used.size).toBeGreaterThan(50)
  expect([...used].filter((path) => !paths.includes(path))).toEqual([])
  expect(paths.filter((path) => !used.has(path))).toEqual([])
})

test('a wrong value would be detected', () => {
  expect(problemsOf({ ...values, huub: {} }, schema, 'values')).toEqual(['values.huub is not in the schema'])
  const { hub, ...rest } = values as { hub: Record<string, unknown> }
  expect(problemsOf(rest, schema, 'values')).toEqual(['values.hub has no value'])
  expect(problemsOf({ ...rest, hub: { ...hub, replicas: 0 } }, schema, 'values')).toEqual(['values.hub.replicas is 0'])
})

test('the values that the guide shows are values of the chart', () => {
  const guide = readFileSync(join(folder, '..', '..', '..', 'docs/guides/deploy.md'), 'utf8')
  const shown = parse(guide.match(/```yaml\n([\s\S]*?)```/)![1]!) as Record<string, unknown>
  expect(Object.keys(shown).length).toBeGreaterThan(3)
  expect(problemsOf(merged(values, shown), schema, 'values')).toEqual([])
})

function merged(own: unknown, given: unknown): unknown {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject(own) || !isObject(given)) return given
  const names = new Set([...Object.keys(own as object), ...Object.keys(given as object)])
  const pick = (of: unknown, name: string) => (of as Record<string, unknown>)[name]
  return Object.fromEntries(
    Array.from(names, (name) => [
      name,
      name in (given as object) ? merged(pick(own, name), pick(given, name)) : pick(own, name),
    ]),
  )
}

test('the chart and the command have the same version', () => {
  const { version } = JSON.parse(
    readFileSync(new URL('../packages/cli/package.json', import.meta.url), 'utf8'),
  ) as Record<string, string>
  expect([chart['version'], chart['appVersion']]).toEqual([version, version])
})

test('every block of a template ends, and every part that is included is defined', () => {
  for (const [name, text] of templates) {
    const opened = text.match(/\{\{-?\s*(?:if|with|range|define)\b/g)?.length ?? 0
    const ended = text.match(/\{\{-?\s*end\b/g)?.length ?? 0
    expect([name, ended]).toEqual([name, opened])
    expect([name, text.split('{{').length]).toEqual([name, text.split('}}').length])
  }
  const defined = new Set([...everything.matchAll(/define "([\w.]+)"/g)].map(([, part]) => part))
  const included = [...everything.matchAll(/include "([\w.]+)"/g)].map(([, part]) => part)
  expect(included.length).toBeGreaterThan(20)
  expect(included.filter((part) => !defined.has(part))).toEqual([])
})

test('the pods get variables and flags that the command knows', async () => {
  const variables = [...everything.matchAll(/- name: ([A-Z][A-Z0-9_]+)$/gm)].map(([, name]) => name!)
  const proxy = await commands.find(({ name }) => name === 'proxy')!.load()
  const known = new Set<string>([
    ...['config', ...hubSettings.settings.map(({ name }) => name)].map((name) => variableOf(hubSettings, name)),
    ...Object.values(otlpVariables).flat(),
    ...proxy.flags!.map((flag) => `FIREBREAK_PROXY_${flag.toUpperCase().replaceAll('-', '_')}`),
    ...[
      'FIREBREAK_HUB',
      'FIREBREAK_TOKEN',
      'FIREBREAK_SERVICE',
      'FIREBREAK_HOST',
      'XDG_CACHE_HOME',
      'NODE_EXTRA_CA_CERTS',
      'POD_NAME',
    ],
  ])
  expect(variables.length).toBeGreaterThan(15)
  expect(variables.filter((variable) => !known.has(variable))).toEqual([])
  const flags = [...templates.get('proxy.yaml')!.matchAll(/- --([\w-]+)$/gm)].map(([, flag]) => flag!)
  expect(flags.length).toBeGreaterThan(1)
  expect(flags.filter((flag) => !proxy.flags!.includes(flag))).toEqual([])
  for (const name of ['hub', 'proxy'])
    expect(templates.get(`${name}.yaml`)).toMatch(new RegExp(`args:\\s*(\\[|- )${name}`))
})

test('ports are those of compose and of the services, and the probes ask for what a hub answers', async () => {
  const compose = readFileSync(join(folder, '..', '..', 'compose', 'compose.yaml'), 'utf8')
  for (const [name, variable] of [
    ['hub', 'FIREBREAK_HUB_PORT'],
    ['proxy', 'FIREBREAK_PROXY_PORT'],
  ] as const) {
    const text = templates.get(`${name}.yaml`)!
    const port = Number(text.match(/containerPort: (\d+)/)![1])
    expect(text).toMatch(new RegExp(`name: ${variable}\\s+value: "${port}"`))
    expect(compose).toContain(`${variable}: ${port}`)
    expect(values[name]).toMatchObject({ service: { port } })
  }
  const probed = [...templates.get('hub.yaml')!.matchAll(/path: (\/\w+)$/gm)].map(([, path]) => path!)
  const scraped = templates.get('servicemonitor.yaml')!.match(/path: (\/\w+)/)![1]!
  expect(probed).toEqual(['/livez', '/readyz'])
  const hub = await startHub({ logLevel: 'silent' })
  for (const path of [...probed, scraped]) expect((await fetch(`${hub.url}${path}`)).status).toBe(200)
  await hub.close()
})

test('the metrics port of a proxy is open, asked by the probes, and scraped', async () => {
  const text = templates.get('proxy.yaml')!
  const port = Number(text.match(/name: metrics\s+containerPort: (\d+)/)![1])
  expect(text).toMatch(new RegExp(`name: FIREBREAK_PROXY_METRICS_PORT\\s+value: "${port}"`))
  expect(templates.get('proxy-service.yaml')).toMatch(
    new RegExp(`name: metrics\\s+port: ${port}\\s+targetPort: metrics`),
  )
  expect(templates.get('networkpolicy.yaml')).toContain('- port: metrics')
  const probed = [...text.matchAll(/path: (\/\w+)\s+port: metrics$/gm)].map(([, path]) => path!)
  const scraped = templates.get('servicemonitor.yaml')!.match(/port: metrics\s+path: (\/\w+)/)![1]!
  expect(probed).toEqual(['/livez', '/readyz'])
  const proxy = await startProxy({ upstream: '127.0.0.1:1', mode: 'single', port: 0, metricsPort: 0 })
  for (const [path, status] of Object.entries({ '/livez': 200, '/readyz': 503, [scraped]: 200 }))
    expect((await fetch(`http://127.0.0.1:${proxy.metricsPort}${path}`)).status).toBe(status)
  await proxy.close()
})

test('pods run as an unprivileged user, on a read-only root, without a Kubernetes token', () => {
  expect(values['podSecurityContext']).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  expect(values['securityContext']).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  for (const name of ['hub.yaml', 'proxy.yaml']) {
    const text = templates.get(name)!
    expect(text).toContain('toYaml .Values.podSecurityContext')
    expect(text).toContain('toYaml .Values.securityContext')
    expect(text).toContain('automountServiceAccountToken: false')
    expect(text).toContain('enableServiceLinks: false')
    // All writes go to a volume.
    expect(text).toMatch(/mountPath: \/tmp/)
  }
})

test('no secret is a chart value: tokens, passwords and keys come from secrets by name', () => {
  const secrets = [...everything.matchAll(/^\s*(?:secretName|name): \{\{ .*?\.Values\.([\w.]+\.secretName)/gm)]
  expect(secrets.map(([, path]) => path).sort()).toEqual([
    'hub.store.secretName',
    'hub.tls.secretName',
    'hub.tokens.secretName',
    'otlp.headers.secretName',
    'proxy.hubCa.secretName',
    'proxy.token.secretName',
    'proxy.upstream.secretName',
    'serviceMonitor.token.secretName',
  ])
})
