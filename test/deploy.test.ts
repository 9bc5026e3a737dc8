import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { resolveHubConfig, startHub } from '@firebreak/hub'
import { startProxy } from '@firebreak/proxy'
import { sourceArgs, startChild, temporaryFolder } from '@firebreak/testkit'
import { commands } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = fileURLToPath(new URL('../deploy', import.meta.url))
const read = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8')

interface Compose {
  readonly services: Record<string, { command?: string[]; environment?: Record<string, string | number> }>
}
const { services } = parse(read('compose', 'compose.yaml')) as Compose
const work = temporaryFolder('deploy')

test('the dashboard and the alerts ask for metrics that a hub or a proxy has', async () => {
  const hub = await startHub({ logLevel: 'fatal' })
  const proxy = await startProxy({ upstream: '127.0.0.1:1', mode: 'single', port: 0, metricsPort: 0 })
  const pages = [`${hub.url}/metrics`, `http://127.0.0.1:${proxy.metricsPort}/metrics`]
  const metrics = (await Promise.all(pages.map(async (page) => (await fetch(page)).text()))).join('')
  await Promise.all([hub.close(), proxy.close()])
  const asked = new Set(
    `${read('grafana', 'firebreak.json')}${read('prometheus', 'alerts.yaml')}`.match(/firebreak_\w+/g),
  )
  expect(asked.size).toBeGreaterThan(10)
  for (const name of asked) expect(metrics, name).toContain(`# TYPE ${name.replace(/_bucket$/, '')} `)
  expect(asked).toContain('firebreak_proxy_upstream_up')
})

test('compose gives the hub settings that it knows, and creates tokens that the hub accepts', async () => {
  const env = Object.fromEntries(
    Object.entries(services['hub']!.environment!).map(([name, value]) => [name, String(value)]),
  )
  const { options } = resolveHubConfig({ flags: {}, env })
  expect(options).toMatchObject({ host: '0.0.0.0', port: 7070, dataFolder: '/data' })
  const [bin, DATA, SECRETS] = ['bin', 'data', 'secrets'].map((name) => join(work, name)) as [string, string, string]
  for (const name of [bin, SECRETS]) mkdirSync(name)
  const main = fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url))
  const firebreak = `#!/bin/sh\nexec '${process.execPath}' ${sourceArgs.join(' ')} '${main}' "$@"\n`
  writeFileSync(join(bin, 'firebreak'), firebreak, { mode: 0o755 })
  const make = async () => {
    const PATH = `${bin}:${process.env['PATH']}`
    const script = join(folder, 'compose', 'make-tokens.sh')
    const child = startChild('sh', [script], { env: { ...process.env, PATH, DATA, SECRETS } })
    expect(await child.exited, child.output()).toBe(0)
  }
  await make()
  const secret = (place: string) => readFileSync(join(SECRETS, place.replace('/secrets/', '')), 'utf8').trim()
  const app = secret(String(services['proxy']!.environment!['FIREBREAK_TOKEN_FILE']))
  const viewer = secret(read('compose', 'prometheus.yaml').match(/credentials_file: ([\w/]+)/)![1]!)
  const hub = await startHub({ ...options, host: '127.0.0.1', port: 0, dataFolder: DATA, logLevel: 'fatal' })
  const ask = async (path: string, token: string, method = 'GET') =>
    (await fetch(hub.url + path, { method, headers: { authorization: `Bearer ${token}` } })).status
  expect([await ask('/metrics', viewer), await ask('/metrics', app), await ask('/v1/reports', app, 'POST')]).toEqual([
    200, 401, 400,
  ])
  expect(await ask('/v1/tokens', secret('/secrets/admin'))).toBe(200)
  await hub.close()
  // A second start changes nothing.
  await make()
  expect(secret('/secrets/app')).toBe(app)
}, 120_000)

test('compose runs existing commands, with flags and variables that they have', async () => {
  for (const name of ['hub', 'proxy']) {
    const { command, environment } = services[name]!
    const { flags = [], help } = await commands.find((entry) => entry.name === command![0])!.load()
    for (const word of command!.filter((one) => one.startsWith('--'))) expect(flags).toContain(word.slice(2))
    for (const variable of Object.keys(environment!)) {
      const twin = variable.match(/^FIREBREAK_PROXY_(\w+)$/)?.[1]
      if (twin === undefined) expect(help).toContain(variable)
      else expect(flags).toContain(twin.toLowerCase().replaceAll('_', '-'))
    }
  }
})

test('every file that compose mounts exists', () => {
  const mounted = read('compose', 'compose.yaml').matchAll(/- (\.[^:\s]+):/g)
  const places = [...mounted].map(([, path]) => join(folder, 'compose', path!))
  expect(places.length).toBeGreaterThan(3)
  for (const place of places) expect(() => readdirSync(join(place, '..'))).not.toThrow()
  for (const place of places) expect(readdirSync(join(place, '..'))).toContain(place.split('/').at(-1))
})

test('Prometheus asks every process of compose that serves metrics, at the port that it serves them on', () => {
  const { scrape_configs: jobs } = parse(read('compose', 'prometheus.yaml')) as {
    scrape_configs: { static_configs: { targets: string[] }[] }[]
  }
  const targets = jobs.flatMap(({ static_configs }) => static_configs.flatMap((one) => one.targets))
  const portOf = (name: string, variable: string) => `${name}:${services[name]!.environment![variable]}`
  expect(targets).toEqual([portOf('hub', 'FIREBREAK_HUB_PORT'), portOf('proxy', 'FIREBREAK_PROXY_METRICS_PORT')])
})
