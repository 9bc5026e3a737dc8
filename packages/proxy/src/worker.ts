import { parentPort, workerData } from 'node:worker_threads'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'

// One thread of a proxy with several: listens on the port that all share, and closes when it is told to.
const running = await runCore(resolveProxyOptions(workerData as ProxyOptions), true)
parentPort!.on('message', async () => {
  await running.close()
  process.exit(0)
})
parentPort!.postMessage(running.port)
