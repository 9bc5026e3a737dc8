import { openHubServices, startHub, startIdsServer, startLimitsServer } from '@firebreak/hub'
import { SegmentIds, sqliteSegmentStore } from '@firebreak/ids'
import { startProxy } from '@firebreak/proxy'

/** One of our servers in a process of its own, so that an attack's price can be told: which one, and its options as JSON. */
const [kind, json = '{}'] = process.argv.slice(2)
const options = JSON.parse(json)

async function start(): Promise<Record<string, number | undefined>> {
  switch (kind) {
    case 'hub': {
      const { plugins } = await openHubServices()
      const { port } = await startHub({ logLevel: 'silent', plugins, ...options })
      return { http: port }
    }
    case 'limits': {
      const { url } = await startLimitsServer({ port: 0, ...options })
      return { http: Number(new URL(url).port) }
    }
    case 'ids': {
      const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
      await segments.addTag('orders', { step: 100 })
      const { port, respPort } = await startIdsServer({ segments, respPort: 0, ...options })
      return { http: port, resp: respPort }
    }
    default: {
      const { port, metricsPort } = await startProxy(options)
      return { resp: port, http: metricsPort }
    }
  }
}

process.stdout.write(`listening ${JSON.stringify(await start())}\n`)
