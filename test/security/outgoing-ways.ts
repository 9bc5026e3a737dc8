import { EtcdClient, ZooKeeperClient } from '@firebreak/centre'
import { parseKafkaUrl, systemRuntime } from '@firebreak/core'
import { metricsSignal, OtlpExporter, resolveOtlpOptions } from '@firebreak/core/metrics'
import { KafkaSockets, kafkaClientOptions, openRespClient } from '@firebreak/core/node'
import { parseRedisUrl } from '@firebreak/core/resp'
import { AlarmWebhooks, openRedisStore, startHub } from '@firebreak/hub'
import { openSegmentStore } from '@firebreak/ids'
import { Shield } from '@firebreak/shield'
import { waitFor } from '@firebreak/testkit'
import { openConfigCentre } from '../../packages/hub/src/publish/config-centre.ts'

/** Goes every way out that Firebreak has, once, and prints which came through: `{ way: 'ok' or what went wrong }`. */
const ports = JSON.parse(process.argv[2]!) as Record<
  'redis' | 'etcd' | 'zookeeper' | 'nats' | 'hook' | 'hub' | 'mariadb' | 'postgres',
  number
>
const told: string[] = []
const note = (data: object, message: string) => void told.push(`${message} ${JSON.stringify(data)}`)
const quiet = {
  info: note,
  warn: note,
  error: note,
  debug() {},
  trace() {},
  fatal: note,
  child: () => quiet,
  level: 'info',
}

const ways: Record<string, () => Promise<unknown>> = {
  'store on Redis': async () => {
    const store = await openRedisStore(`rediss://localhost:${ports.redis}`)
    try {
      await store.load()
    } finally {
      await store.close()
    }
  },
  'RESP client': async () => {
    const client = await openRespClient(parseRedisUrl(`rediss://localhost:${ports.redis}`))
    await client.send(['PING']).finally(() => client.close())
  },
  'etcd, tables': () => putTable(`etcds://localhost:${ports.etcd}/t`),
  'etcd, ids': () => new EtcdClient({ endpoints: `https://localhost:${ports.etcd}` }).put('/ids', 'x'),
  'ZooKeeper, tables': () => putTable(`zookeepers://localhost:${ports.zookeeper}/t`),
  'ZooKeeper, ids': async () => {
    const client = new ZooKeeperClient({ servers: `zookeepers://localhost:${ports.zookeeper}` })
    await client.connect().finally(() => client.close())
  },
  'NATS, hub': async () => {
    const hub = await startHub({ natsUrl: `tls://localhost:${ports.nats}`, logger: quiet as never })
    await waitFor(() => told.some((line) => /NATS/.test(line)) || hub.core.alarms.list().length > 0)
    const [alarm] = hub.core.alarms.list()
    await hub.close()
    if (alarm !== undefined) throw new Error(alarm.cause)
  },
  webhooks: async () => {
    const { timers } = systemRuntime
    const retry = { tries: 0, firstMs: 1, mostMs: 1, deadlineMs: 1, atEnd: 'drop' } as const
    const url = `https://localhost:${ports.hook}/`
    const hooks = new AlarmWebhooks({ urls: [url], secret: 'x', timers, logger: quiet, retry })
    const alarm = { id: 'a', severity: 'warning', cause: 'x', retry: 'x', since: 1, count: 1 } as const
    hooks.send({ event: 'raised', hubId: 'h', at: 1, alarm })
    await waitFor(() => hooks.counts.sent + hooks.counts.failed > 0)
    if (hooks.counts.failed > 0) throw new Error(told.at(-1))
  },
  Kafka: () => {
    const address = parseKafkaUrl(`kafkas://localhost:${ports.hook}`, 'kafkaUrl')
    const { socketFactory, ssl } = kafkaClientOptions(address, new KafkaSockets(), 3000)
    return new Promise<void>((resolve, reject) => {
      const socket = socketFactory({ host: 'localhost', port: ports.hook, ssl, onConnect: resolve })
      socket.on('error', reject)
    })
  },
  'Consul, tables': () => putTable(`consuls://localhost:${ports.hook}/t`),
  'Nacos, tables': () => putTable(`nacoss://localhost:${ports.hook}/t`),
  OpenTelemetry: async () => {
    const otlp = resolveOtlpOptions({ endpoint: `https://localhost:${ports.hook}` })!
    const signal = metricsSignal(() => [{ kind: 'gauge', name: 'g', help: 'g', points: [{ labels: {}, value: 1 }] }])
    const exporter = new OtlpExporter({ otlp, resource: {}, signal, logger: quiet })
    await exporter.export()
    await exporter.close()
    if (exporter.counts.sent === 0) throw new Error(told.at(-1))
  },
  'MariaDB, ids': () => askDatabase(`mysql://root@localhost:${ports.mariadb}/test?ssl-mode=VERIFY_IDENTITY`),
  'Postgres, ids': () => askDatabase(`postgres://postgres@localhost:${ports.postgres}/postgres?sslmode=verify-full`),
  'shield to hub': async () => {
    const shield = new Shield({ hubs: [`https://localhost:${ports.hub}`], onWarning() {}, tableFile: false })
    try {
      await waitFor(() => shield.isConnected, { timeoutMs: 3000 })
    } finally {
      shield.close()
    }
  },
}

async function askDatabase(address: string): Promise<void> {
  const store = await openSegmentStore(address)
  await store.prepare().finally(() => store.close())
}

async function putTable(url: string): Promise<void> {
  const centre = openConfigCentre(url)
  await centre.write(`${centre.root}/x`, 'x').finally(() => centre.close())
}

// What retries waits on timers of ours, which keep no process alive.
setInterval(() => {}, 1000)
const results: Record<string, string> = {}
for (const [way, go] of Object.entries(ways)) {
  results[way] = await go().then(
    () => 'ok',
    (error: Error) => [error.message, (error.cause as Error | undefined)?.message].join(' / '),
  )
}
process.stdout.write(`results ${JSON.stringify(results)}\n`)
process.exit(0)
