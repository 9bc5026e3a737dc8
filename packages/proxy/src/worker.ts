import { BroadcastChannel, parentPort, workerData } from 'node:worker_threads'
import type { MetricFamily } from '@firebreak/core/metrics'
import { type LogLine, lineLogger } from './observe/proxy-logger.ts'
import { type ProxyOptions, resolveProxyOptions } from './options.ts'
import type { ThreadNews } from './proxy-core.ts'
import { runCore } from './run-core.ts'
import type { ThreadPlace } from './threads/thread-place.ts'

/** What a thread can be told: to close, or to report its metrics. */
export type WorkerOrder = 'close' | 'metrics'

/** What a thread posts: its port once it is listening, its metrics, and entries for its proxy's logger. */
export type WorkerWord = number | readonly MetricFamily[] | LogLine

/** What a thread is started with. */
export interface WorkerData {
  readonly options: ProxyOptions
  /** The channel on which the threads of one proxy share news. */
  readonly channel: string
  readonly place: ThreadPlace
}

// One thread of a proxy with several: listens on the shared port, reports its metrics, and closes when told to.
const { options, channel, place } = workerData as WorkerData
const say = (word: WorkerWord) => parentPort!.postMessage(word)
// All threads see the same events: one logs them.
const logger = lineLogger((line) => place.index === 0 && say(line))
const running = await runCore(resolveProxyOptions({ ...options, logger }), place)
const threads = new BroadcastChannel(channel)
const takeNews = running.core.share((news) => threads.postMessage(news))
threads.onmessage = (message) => takeNews((message as { data: ThreadNews }).data)
threads.unref()
parentPort!.on('message', async (order: WorkerOrder) => {
  if (order === 'metrics') {
    say(running.core.families())
    return
  }
  await running.close()
  process.exit(0)
})
say(running.port)
