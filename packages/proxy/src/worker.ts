import { parentPort, workerData } from 'node:worker_threads'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'

// One thread of a proxy with several: listens on the port that all share, and closes when it is told to.
const options = resolveProxyOptions(workerData as ProxyOptions)
try {
  const running = await runCore(options, true)
  parentPort!.on('message', async () => {
    await running.close()
    process.exit(0)
  })
  parentPort!.postMessage({ port: running.port })
} catch (error) {
  parentPort!.postMessage({ error: (error as Error).message })
  process.exit(1)
}
