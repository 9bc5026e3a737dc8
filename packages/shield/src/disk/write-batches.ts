import type { RootDatabase } from 'lmdb'

/** What LMDB's write thread says of a batch that it has not finished. */
const progress = new Set([1, 2])

interface WriteThread {
  startWriting(instructions: unknown, onStatus: (status: number) => unknown): unknown
}

/**
 * The batches that LMDB's write thread works on. LMDB resolves a write as soon as it is committed, while its thread still
 * looks at the file's state, and its own `close` frees that state: closed at that moment, the process dies. So whoever
 * closes waits for the thread itself.
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

  /** Resolves when every write so far is through, or has failed, and the thread has let go of the file. */
  async allDone(): Promise<void> {
    // Who wrote hears of a failure; here only the end counts.
    await this.#committed.then(undefined, () => {})
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#onDone = resolve))
  }

  #ended(): void {
    this.#running--
    if (this.#running === 0) this.#onDone?.()
  }
}
