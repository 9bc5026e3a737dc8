import type { Timers } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'
import type { ReadCommand } from '../cache/read-command.ts'

/**
 * Reads of hot keys that Redis answers on the application's own connection although memory could have. Such an answer
 * may be ahead of what the watcher's connection has read and been notified about: whoever saw it must not be given
 * anything older. So what was read before the answer is dropped with it, and what memory lacked is reloaded after it,
 * once for all answers of a turn.
 */
export class ReadsAround {
  readonly #timers: Timers
  readonly #reloads = new Map<HotKey, ReadCommand>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** A read was answered, and the application is about to learn of it; `wanted` should be in memory next time. */
  answered(hot: HotKey, wanted: ReadCommand | undefined): void {
    hot.overtaken()
    if (wanted === undefined) return
    if (this.#reloads.size === 0) this.#timers.setImmediate(() => this.#reload())
    this.#reloads.set(hot, wanted)
  }

  #reload(): void {
    const reloads = [...this.#reloads]
    this.#reloads.clear()
    for (const [hot, command] of reloads) hot.reload(command)
  }
}
