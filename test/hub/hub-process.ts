import { type HubOptions, startHub } from '@firebreak/hub'

/** A hub in a process of its own, for tests that kill it: options as JSON in the first argument. */
const hub = await startHub({ logLevel: 'error', ...(JSON.parse(process.argv[2] ?? '{}') as HubOptions) })
process.stdout.write(`listening ${hub.url}\n`)

process.once('SIGTERM', () => {
  void hub.close().then(() => process.stdout.write('closed\n'))
})
