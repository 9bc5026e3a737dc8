import type { TimerHandle, Timers } from '@firebreak/core'

/** When a request stops waiting: after its time, or when its caller aborts. */
export class GiveUp {
  /** Set once it has stopped. */
  reason: 'timeout' | 'abort' | undefined
  readonly #signal: AbortSignal | undefined
  readonly #timer: TimerHandle | undefined
  readonly #listeners = new Set<() => void>()
  readonly #onAbort = (): void => this.abort()

  constructor(waitMs: number, signal: AbortSignal | undefined, timers: Timers) {
    this.#signal = signal
    if (signal?.aborted) this.reason = 'abort'
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (Number.isFinite(waitMs)) this.#timer = timers.setTimeout(() => this.#stop('timeout'), waitMs)
  }

  /** Stops waiting as if the caller had aborted. */
  abort(): void {
    this.#stop('abort')
  }

  onGiveUp(listener: () => void): void {
    if (this.reason !== undefined) listener()
    else this.#listeners.add(listener)
  }

  /** The promise's value, or 'gave-up' if that comes first; `late` then gets the value that nobody is waiting for. */
  race<T>(promise: Promise<T>, late: (value: T) => void): Promise<T | 'gave-up'> {
    return new Promise((resolve, reject) => {
      const onGiveUp = () => {
        resolve('gave-up')
        promise.then(late, () => {})
      }
      this.onGiveUp(onGiveUp)
      promise.then(resolve, reject).finally(() => this.#listeners.delete(onGiveUp))
    })
  }

  dispose(): void {
    this.#timer?.cancel()
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#listeners.clear()
  }

  #stop(reason: 'timeout' | 'abort'): void {
    if (this.reason !== undefined) return
    this.reason = reason
    for (const listener of [...this.#listeners]) listener()
  }
}
