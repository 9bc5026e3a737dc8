// A proxy in a process of its own, with every key hot: `node hot-proxy.mjs PORT UPSTREAM-PORT [WAY]`.
import { startProxy } from '@firebreak/proxy'
import { makeEveryKeyHot, strategies } from './every-key-hot.mjs'

const [port, upstreamPort, way = 'cache'] = process.argv.slice(2)
makeEveryKeyHot(strategies[way])
await startProxy({
  upstream: `redis://127.0.0.1:${upstreamPort}`,
  port: Number(port),
  drainMs: 1,
  logger: { info() {}, warn() {}, error() {} },
  shield: { hubs: [], serviceId: 'suites', redisClusterId: 'main', tableFile: false, onWarning() {} },
})
process.stdout.write('ready\n')
