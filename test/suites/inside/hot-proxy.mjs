// A proxy in a process of its own, with every key hot: `node hot-proxy.mjs PORT UPSTREAM-PORT [WAY]`. What it did goes to
// the file of facts when it ends.
import { appendFileSync } from 'node:fs'
import { startProxy } from '@firebreak/proxy'
import { makeEveryKeyHot, strategies, sumOf } from './every-key-hot.mjs'

const [port, upstreamPort, way = 'cache'] = process.argv.slice(2)
const clusters = new Map()
const warnings = []
makeEveryKeyHot(strategies[way], (cluster, keys) => clusters.set(cluster, keys))
const proxy = await startProxy({
  upstream: `redis://127.0.0.1:${upstreamPort}`,
  port: Number(port),
  drainMs: 1,
  logger: { info() {}, warn() {}, error() {} },
  shield: {
    hubs: [],
    serviceId: 'suites',
    redisClusterId: 'main',
    tableFile: false,
    onWarning: ({ kind }) => void (warnings.includes(kind) || warnings.push(kind)),
  },
})
process.once('SIGTERM', async () => {
  const file = process.env['FIREBREAK_SUITE_FACTS']
  const taken = (await proxy.families()).find(({ name }) => name === 'firebreak_proxy_connections_total')
  const facts = { clients: taken?.points[0]?.value ?? 0, refused: 0, ...sumOf(clusters), warnings }
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(facts)}\n`)
  process.exit(0)
})
process.stdout.write('ready\n')
