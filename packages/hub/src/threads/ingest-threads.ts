import { Worker } from 'node:worker_threads'
import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import type { ThreadAnswer, ThreadData, ThreadOrder } from './thread-messages.ts'

export interface IngestThreadsOptions {
  readonly count: number
  readonly maxKeys: number
  readonly hashSeed: number
  readonly timers: Timers
  readonly clock: Clock
  /** A thread answered. */
  readonly onAnswer: (shard: number, answer: ThreadAnswer) => void
  /** A thread ended by itself: its counts and unanswered work are lost. Another takes its place. */
  readonly onLost: (shard: number, error: Error) => void
  /** A new thread started, which knows nothing yet. */
  readonly onStarted: (shard: number) => void
}

/** A thread is replaced at once, … */
const quietMs = 10_000
/**
 * … but after this if the previous one ended less than `quietMs` ago: a thread that keeps crashing must not consume the
 * machine.
 */
const retryMs = 1000

interface Thread {
  readonly worker: Worker
  lastLoad: ReturnType<Worker['performance']['eventLoopUtilization']>
}

/** The ingest threads: started, fed, and replaced when one ends. */
export class IngestThreads {
  readonly #options: IngestThreadsOptions
  readonly #threads: (Thread | undefined)[] = []
  readonly #retries = new Set<TimerHandle>()
  readonly #endedAt = new Map<number, number>()
  #isClosed = false

  constructor(options: IngestThreadsOptions) {
    this.#options = options
    for (let shard = 0; shard < options.count; shard++) this.#start(shard)
  }

  get count(): number {
    return this.#options.count
  }

  /** False if the shard currently has no thread: nothing will answer. */
  post(shard: number, order: ThreadOrder): boolean {
    const thread = this.#threads[shard]
    thread?.worker.postMessage(order)
    return thread !== undefined
  }

  /** How busy the busiest thread was since the last call, 0 to 1. */
  load(): number {
    let highest = 0
    for (const thread of this.#threads) {
      if (thread === undefined) continue
      const { performance } = thread.worker
      const now = performance.eventLoopUtilization()
      highest = Math.max(highest, performance.eventLoopUtilization(now, thread.lastLoad).utilization)
      thread.lastLoad = now
    }
    return highest
  }

  /** Ends a thread; another takes its place. */
  async terminate(shard: number): Promise<void> {
    await this.#threads[shard]?.worker.terminate()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const retry of this.#retries) retry.cancel()
    await Promise.all(this.#threads.map((thread) => thread?.worker.terminate()))
  }

  #start(shard: number): void {
    const { count: shardCount, maxKeys, hashSeed, onAnswer, onStarted } = this.#options
    // The file next to this one, from source and from the build alike.
    const file = new URL(import.meta.url.endsWith('.ts') ? './ingest-thread.ts' : './ingest-thread.js', import.meta.url)
    const data: ThreadData = { shard, shardCount, maxKeys, hashSeed }
    const worker = new Worker(file, { workerData: data, name: `ingest-${shard}` })
    // The threads must not keep the process alive.
    worker.unref()
    const lastLoad = worker.performance.eventLoopUtilization()
    this.#threads[shard] = { worker, lastLoad }
    let error: Error | undefined
    worker.on('message', (answer: ThreadAnswer) => onAnswer(shard, answer))
    worker.on('error', (cause) => {
      error = cause as Error
    })
    worker.on('exit', (code) => this.#ended(shard, error ?? new Error(`it ended with code ${code}`)))
    onStarted(shard)
  }

  #ended(shard: number, error: Error): void {
    this.#threads[shard] = undefined
    if (this.#isClosed) return
    this.#options.onLost(shard, error)
    const now = this.#options.clock.now()
    const isFirst = now - (this.#endedAt.get(shard) ?? Number.NEGATIVE_INFINITY) > quietMs
    this.#endedAt.set(shard, now)
    if (isFirst) {
      this.#start(shard)
      return
    }
    const retry = this.#options.timers.setTimeout(() => {
      this.#retries.delete(retry)
      this.#start(shard)
    }, retryMs)
    this.#retries.add(retry)
  }
}
