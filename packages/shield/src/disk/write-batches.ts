import type { RootDatabase } from 'lmdb'

/** What LMDB's write thread reports about an unfinished batch. */
const progress = new Set([1, 2])

interface WriteThread {
  startWriting(instructions: unknown, onStatus: (status: number) => unknown): unknown
}

/**
 * The batches that LMDB's write thread is working on. LMDB resolves a write as soon as it is committed, while its
 * thread still reads the file's state, which its own `close` frees: closed at that moment, the process dies. So closing
 * has to wait for the thread itself.
 */
export class WriteBatches {
  readonly #committed: PromiseLike<unknown>
  #running = 0
  #onDone: (() => void) | undefined

  constructor(database: RootDatabase<Buffer, string>) {
    this.#committed = database.committed
    const { env } = database as unknown as { env: WriteThread }
    const start = env.startWriting.bind(env)
    const startCounted: WriteThread['startWriting'] = (instructions, onStatus) => {
      this.#running++
      return start(instructions, (status) => {
        if (!progress.has(status)) this.#ended()
        return onStatus(status)
      })
    }
    // Assigning is refused: the method of its class is read-only.
    Object.defineProperty(env, 'startWriting', { value: startCounted })
  }

  /** Resolves when every write so far has succeeded or failed, and the thread has released the file. */
  async allDone(): Promise<void> {
    // The writer learns of a failure; here only the end counts.
    await this.#committed.then(undefined, () => {})
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#onDone = resolve))
  }

  #ended(): void {
    this.#running--
    if (this.#running === 0) this.#onDone?.()
  }
}
