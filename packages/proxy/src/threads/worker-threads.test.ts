import { Worker } from 'node:worker_threads'
import { waitFor } from '@firebreak/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { WorkerThreads } from './worker-threads.ts'

/** A thread that does not listen, fails on request, and may not start at all. */
const source = `
  const { parentPort, workerData } = require('node:worker_threads')
  if (workerData.isBroken) throw new Error('no start')
  parentPort.postMessage(workerData.port || 4711)
  parentPort.on('message', (message) => {
    if (message === 'close') process.exit(0)
    throw new Error('a fault')
  })`

async function start(count: number, isBroken: (nth: number) => boolean = () => false) {
  const made: { index: number; port: number; worker: Worker }[] = []
  const lost: string[] = []
  const threads = await WorkerThreads.start({
    count,
    port: 0,
    restartMs: 1,
    make: (index, port) => {
      const worker = new Worker(source, { eval: true, workerData: { port, isBroken: isBroken(made.length) } })
      made.push({ index, port, worker })
      return worker
    },
    onLost: (index, { message }) => lost.push(`${index}: ${message}`),
  })
  onTestFinished(() => threads.close())
  return { threads, made, lost }
}

test('a thread that fails is replaced on the same port, however often it fails', async () => {
  const { threads, made, lost } = await start(2, (nth) => nth === 2 || nth === 3)
  expect(threads.port).toBe(4711)
  made[1]!.worker.postMessage('break')
  await waitFor(() => made.length === 5 && threads.at(1) !== undefined)
  expect(threads.at(0)).toBe(made[0]!.worker)
  expect(threads.at(1)).toBe(made[4]!.worker)
  expect(lost).toEqual(['1: a fault', '1: a thread cannot start: no start', '1: a thread cannot start: no start'])
  expect(made.map(({ index, port }) => [index, port])).toEqual([
    [0, 0],
    [1, 4711],
    [1, 4711],
    [1, 4711],
    [1, 4711],
  ])
})

test('failed threads do not delay the shutdown', async () => {
  const { threads, made, lost } = await start(2)
  for (const { worker } of made) worker.postMessage('break')
  await waitFor(() => lost.length === 2)
  await threads.close()
})

test('if the first thread cannot start, the others are not tried, and the cause is reported', async () => {
  await expect(start(2, () => true)).rejects.toThrow(
    expect.objectContaining({ code: 'FB_PROXY_START', message: 'a thread cannot start: no start' }),
  )
})
