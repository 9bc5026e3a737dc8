import { protect, shieldOf, unprotect } from '@firebreak/client'
import type { MetricFamily } from '@firebreak/core/metrics'
import { startHub } from '@firebreak/hub'
import { limiterFamilies } from '@firebreak/limits'
import { Locks, lockFamilies } from '@firebreak/locks'
import { startProxy } from '@firebreak/proxy'
import { startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'

/** The page of all metrics, written from the output of running processes. */
export const metricsPage = new URL('../../docs/reference/metrics.md', import.meta.url)

type Row = Pick<MetricFamily, 'name' | 'kind' | 'help'>

const head = `# Metrics

Everything that Firebreak measures about itself. Keys of users are never labels. Written by \`npm run references\` from what
running processes tell, in Prometheus' form at \`/metrics\`; the same names go to
[OpenTelemetry](../guides/deploy.md#opentelemetry). [Alerts](../guides/runbook.md) are built on them.
`

/** The page as it should be. */
export async function writtenMetricsPage(): Promise<string> {
  const redis = await startRedis()
  const hub = await startHub({ logLevel: 'silent' })
  const hubs = [hub.url]
  const proxy = await startProxy({
    upstream: `redis://127.0.0.1:${redis.port}`,
    port: 0,
    metricsPort: 0,
    shield: { hubs, serviceId: 'reference', redisClusterId: 'main', tableFile: false },
  })
  const client = protect(new Redis(redis.port), { hubs, serviceId: 'reference', tableFile: false })
  const locks = new Locks(client)
  try {
    const shield = shieldOf(client)!.families()
    const shieldNames = new Set(shield.map(({ name }) => name))
    const proxyRows = rowsOf(await (await fetch(`http://127.0.0.1:${proxy.metricsPort}/metrics`)).text())
    const sections: [string, string, readonly Row[]][] = [
      ['Hub', '`GET /metrics` of a hub, for a viewer.', rowsOf(await (await fetch(`${hub.url}/metrics`)).text())],
      [
        'Shield',
        'Of every process that protects: a proxy has them at `/metrics`, an application by `shieldOf(client).families()` or its own meter.',
        shield,
      ],
      [
        'Proxy',
        '`/metrics` at `--metrics-port`, beside those of its shield.',
        proxyRows.filter(({ name }) => !shieldNames.has(name)),
      ],
      ['Locks', '`lockFamilies(locks.metrics())`.', lockFamilies(locks.metrics())],
      ['Limits', '`limiterFamilies(limiters)`, and `GET /v1/limits/metrics` of the rule service.', limiterFamilies([])],
    ]
    return `${head}${sections.map(([title, place, rows]) => section(title, place, rows)).join('')}`
  } finally {
    await locks.close()
    unprotect(client)
    client.disconnect()
    await proxy.close()
    await hub.close()
    await redis.stop()
  }
}

function section(title: string, place: string, rows: readonly Row[]): string {
  const lines = rows.map(
    ({ name, kind, help }) => `| \`${name}\` | ${kind} | ${help.replaceAll('|', '\\|').replace(/\.$/, '')} |`,
  )
  return `\n## ${title}\n\n${place}\n\n| metric | kind | what it tells |\n|---|---|---|\n${lines.join('\n')}\n`
}

/** The families of a text in Prometheus' form. */
function rowsOf(text: string): Row[] {
  return [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$/gm)].map(([, name, help, kind]) => ({
    name: name!,
    help: help!,
    kind: kind as MetricFamily['kind'],
  }))
}
