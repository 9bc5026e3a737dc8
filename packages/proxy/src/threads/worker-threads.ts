import type { Worker } from 'node:worker_threads'
import { ProxyStartError } from '../errors.ts'

/** How the threads of a proxy are started and replaced. */
export interface WorkerThreadsOptions {
  readonly count: number
  /** The port that they share; 0 for a free one, which the first thread picks. */
  readonly port: number
  /** Starts a thread, which posts its port, a number, once it is listening, and ends on `close`. */
  readonly make: (index: number, port: number) => Worker
  /** A thread ended by itself, and its clients with it; another takes its place. */
  readonly onLost: (index: number, cause: Error) => void
  /** How long to wait after a thread has ended, or could not be restarted, before the next attempt. @default 200 */
  readonly restartMs?: number
}

/** Threads that share one port. One that ends by itself, because of a bug for example, is replaced. */
export class WorkerThreads {
  readonly #options: WorkerThreadsOptions
  readonly #workers = new Set<Worker>()
  readonly #listening = new Map<number, Worker>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #port: number
  #isClosing = false

  private constructor(options: WorkerThreadsOptions) {
    this.#options = options
    this.#port = options.port
  }

  /** Starts them one after another; resolves once all are listening. */
  static async start(options: WorkerThreadsOptions): Promise<WorkerThreads> {
    const threads = new WorkerThreads(options)
    try {
      for (let index = 0; index < options.count; index++) await threads.#start(index)
    } catch (error) {
      await threads.close()
      throw error
    }
    return threads
  }

  get port(): number {
    return this.#port
  }

  /** The thread at a place, unless there is none at the moment. */
  at(index: number): Worker | undefined {
    return this.#listening.get(index)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(
      [...this.#workers].map(async (worker) => {
        const exited = new Promise((resolve) => worker.once('exit', resolve))
        worker.postMessage('close')
        await exited
      }),
    )
  }

  #start(index: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = this.#options.make(index, this.#port)
      this.#workers.add(worker)
      let cause: Error | undefined
      let isListening = false
      worker.on('message', (port: unknown) => {
        if (typeof port !== 'number') return
        this.#port = port
        isListening = true
        this.#listening.set(index, worker)
        resolve()
      })
      worker.on('error', (error) => {
        cause = error
      })
      worker.once('exit', (code) => {
        this.#workers.delete(worker)
        this.#listening.delete(index)
        const why = cause?.message ?? `it ended with ${code}`
        if (!isListening) reject(new ProxyStartError(`a thread cannot start: ${why}`, { cause }))
        else if (!this.#isClosing) this.#lost(index, cause ?? new Error(why))
      })
    })
  }

  #lost(index: number, cause: Error): void {
    this.#options.onLost(index, cause)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#start(index).catch((error: Error) => {
        if (!this.#isClosing) this.#lost(index, error)
      })
    }, this.#options.restartMs ?? 200)
    this.#timers.add(timer)
  }
}
