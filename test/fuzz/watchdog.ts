import { Worker } from 'node:worker_threads'
import { maxInputBytes } from './mutate.ts'

/** An input that takes more processor time than this counts as endless. */
const hangMs = 15_000
/** An input that only waits counts as endless after this: on a busy machine a tenth of a second of work may take half a minute. */
const waitMs = 120_000

/**
 * Watches from a thread of its own that inputs end: a parser in an endless loop cannot tell of itself. The input lies in
 * shared memory, so that it can be printed while the main thread is stuck; then the process is ended.
 */
export class Watchdog {
  readonly #head = new Int32Array(new SharedArrayBuffer(8))
  readonly #bytes = new Uint8Array(new SharedArrayBuffer(maxInputBytes))
  readonly #worker: Worker

  constructor(replay: (base64: string) => string) {
    const data = { head: this.#head, bytes: this.#bytes, hangMs, waitMs, before: replay('@') }
    this.#worker = new Worker(watch, { eval: true, workerData: data })
    this.#worker.unref()
  }

  started(input: Uint8Array): void {
    this.#bytes.set(input.subarray(0, maxInputBytes))
    Atomics.store(this.#head, 1, Math.min(input.length, maxInputBytes))
    Atomics.add(this.#head, 0, 1)
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }
}

const watch = `
const { workerData: { head, bytes, hangMs, waitMs, before } } = require('node:worker_threads')
const { writeSync } = require('node:fs')
const usedMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000
let last = -1
let began = { atMs: 0, usedMs: 0 }
setInterval(() => {
  const now = Atomics.load(head, 0)
  if (now !== last) {
    last = now
    began = { atMs: performance.now(), usedMs: usedMs() }
    return
  }
  const [tookMs, tookCpuMs] = [performance.now() - began.atMs, usedMs() - began.usedMs]
  if (tookCpuMs < hangMs && tookMs < waitMs) return
  const base64 = Buffer.from(bytes.subarray(0, Atomics.load(head, 1))).toString('base64')
  writeSync(2, 'FAILED: an input did not end within ' + Math.round(tookMs) + ' ms\\n' + before.replace('@', base64) + '\\n')
  process.kill(process.pid, 'SIGKILL')
}, 1000)
`
