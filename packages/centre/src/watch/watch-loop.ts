import type { Runtime, TimerHandle } from '@firebreak/core'
import type { CentreWatch, WatchListener } from '../centre.ts'

/** What a round of a watch works with. */
export interface WatchRound {
  /** Aborted when nobody is watching any more. */
  readonly signal: AbortSignal
  /** Reports the current text. */
  deliver(text: string | undefined): void
}

const firstRetryMs = 100
const maxRetryMs = 5000
/**
 * A round without news that was shorter than this did not wait for a change: the centre is then polled at this
 * interval.
 */
const pollMs = 1000

/**
 * Follows a text in rounds: each reads the current text, then waits for it to change. A failed round is retried after a
 * random wait that grows to 5 s, for as long as anybody watches; each round begins with a read, so nothing that was
 * missed stays unknown. A centre that answers at once instead of waiting, say behind a proxy that strips its headers, is
 * polled.
 */
export class WatchLoop implements CentreWatch {
  readonly #listener: WatchListener
  readonly #runtime: Runtime
  readonly #round: (round: WatchRound) => Promise<void>
  readonly #controller = new AbortController()
  #told: { readonly text: string | undefined } | undefined
  #isLive = false
  #isDownTold = false
  #retryMs = firstRetryMs
  #pollMs = firstRetryMs
  #timer: TimerHandle | undefined

  constructor(listener: WatchListener, runtime: Runtime, round: (round: WatchRound) => Promise<void>) {
    this.#listener = listener
    this.#runtime = runtime
    this.#round = round
    void this.#run()
  }

  get isLive(): boolean {
    return this.#isLive
  }

  close(): void {
    this.#timer?.cancel()
    this.#isLive = false
    this.#controller.abort()
  }

  async #run(): Promise<void> {
    const { signal } = this.#controller
    const round: WatchRound = { signal, deliver: (text) => this.#deliver(text) }
    while (!signal.aborted) {
      const [startedAt, told] = [this.#runtime.clock.now(), this.#told]
      try {
        await this.#round(round)
        const isIdle = this.#told === told && this.#runtime.clock.now() - startedAt < pollMs
        if (!isIdle || signal.aborted) {
          this.#pollMs = firstRetryMs
          continue
        }
        await this.#wait(this.#pollMs)
        this.#pollMs = Math.min(pollMs, this.#pollMs * 2)
      } catch (error) {
        if (signal.aborted) return
        this.#down(error as Error)
        await this.#wait(this.#retryMs)
        this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
      }
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = this.#runtime.timers.setTimeout(resolve, ms * (0.5 + this.#runtime.random() / 2))
    })
  }

  #deliver(text: string | undefined): void {
    if (this.#controller.signal.aborted) return
    this.#isLive = true
    this.#retryMs = firstRetryMs
    if (this.#isDownTold) this.#listener.onUp?.()
    this.#isDownTold = false
    if (this.#told !== undefined && this.#told.text === text) return
    this.#told = { text }
    this.#listener.onText(text)
  }

  #down(error: Error): void {
    this.#isLive = false
    if (this.#isDownTold) return
    this.#isDownTold = true
    this.#listener.onDown?.(error)
  }
}
