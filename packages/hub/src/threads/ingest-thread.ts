import { parentPort, workerData } from 'node:worker_threads'
import { IngestShard } from './ingest-shard.ts'
import type { ThreadData, ThreadOrder } from './thread-messages.ts'

/** The body of an ingest thread. */
const shard = new IngestShard(workerData as ThreadData)

parentPort!.on('message', (order: ThreadOrder) => {
  const answer = shard.handle(order)
  if (answer === undefined) return
  const { rows, slots, slotSums } = answer
  const buffers = [rows, slots, ...slotSums.map(({ pairs }) => pairs)].map(({ buffer }) => buffer as ArrayBuffer)
  parentPort!.postMessage(answer, buffers)
})
