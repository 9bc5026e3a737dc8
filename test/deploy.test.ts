import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { resolveHubConfig, startHub } from '@firebreak/hub'
import { startProxy } from '@firebreak/proxy'
import { commands } from 'firebreak/cli'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = fileURLToPath(new URL('../deploy', import.meta.url))
const read = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8')

interface Compose {
  readonly services: Record<string, { command?: string[]; environment?: Record<string, string | number> }>
}
const { services } = parse(read('compose', 'compose.yaml')) as Compose
const tokensFile = join(folder, 'compose', 'tokens.yaml')

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

test('compose gives the hub settings that it knows, and tokens that it takes', () => {
  const env = Object.fromEntries(
    Object.entries(services['hub']!.environment!).map(([name, value]) => [name, String(value)]),
  )
  const { options } = resolveHubConfig({ flags: {}, env: { ...env, FIREBREAK_HUB_TOKENS_FILE: tokensFile } })
  expect(options).toMatchObject({ host: '0.0.0.0', port: 7070, dataFolder: '/data' })
  const tokens = [...options.tokens!.apps, ...options.tokens!.people].map(({ token }) => token)
  expect(tokens).toContain(services['proxy']!.environment!['FIREBREAK_TOKEN'])
  expect(tokens).toContain(read('compose', 'prometheus.yaml').match(/credentials: ([\w-]+)/)![1])
})

test('compose runs commands that there are, with flags and variables that they have', async () => {
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

test('every file that compose mounts is there', () => {
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
