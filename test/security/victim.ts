import { pathToFileURL } from 'node:url'

/**
 * One of our servers in a process of its own, so that an attack's price can be told: which one, its options as JSON, and
 * the folder of a built checkout, of another version perhaps. @default this one's sources
 */
const [kind, json = '{}', folder] = process.argv.slice(2)
const options = JSON.parse(json)
const room = (name: string) =>
  import(folder === undefined ? `@firebreak/${name}` : pathToFileURL(`${folder}/packages/${name}/dist/index.js`).href)
const { openHubServices, startHub, startIdsServer, startLimitsServer }: typeof import('@firebreak/hub') =
  await room('hub')
const { SegmentIds, sqliteSegmentStore }: typeof import('@firebreak/ids') = await room('ids')
const { startProxy }: typeof import('@firebreak/proxy') = await room('proxy')

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
