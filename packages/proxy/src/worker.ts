import { BroadcastChannel, parentPort, workerData } from 'node:worker_threads'
import type { Claim } from '@firebreak/shield'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import { runCore } from './run-core.ts'

/** What a thread is started with. */
export interface WorkerData {
  readonly options: ProxyOptions
  /** Where the threads of one proxy tell each other which keys they find hot. */
  readonly channel: string
}

// One thread of a proxy with several: listens on the port that all share, and closes when it is told to.
const { options, channel } = workerData as WorkerData
const running = await runCore(resolveProxyOptions(options), true)
const claims = new BroadcastChannel(channel)
const takeClaim = running.core.shareClaims((claim) => claims.postMessage(claim))
claims.onmessage = (message) => takeClaim((message as { data: Claim }).data)
claims.unref()
parentPort!.on('message', async () => {
  await running.close()
  process.exit(0)
})
parentPort!.postMessage(running.port)
