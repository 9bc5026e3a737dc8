// A hub that tells how much of its heap is in use after a collection: options as JSON in the first argument, then one line
// of input for each answer.
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type HubOptions, startHub } from '@firebreak/hub'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const hub = await startHub({ logLevel: 'error', ...(JSON.parse(process.argv[2] ?? '{}') as HubOptions) })
process.stdout.write(`listening ${hub.url}\n`)
for await (const _ of createInterface({ input: process.stdin })) {
  collect()
  // What is freed by finalizers is free after the second.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  const { reportCount } = hub.core.collector
  process.stdout.write(`heap ${JSON.stringify({ inUse: heapUsed + external, rss, reportCount })}\n`)
}
await hub.close()
