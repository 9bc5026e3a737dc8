import type { TimerHandle, Timers } from '@firebreak/core'
import type { WaitLine } from './wait-line.ts'

/**
 * Periodically tells Redis that the waiters in this process' fair lines are still there: one timer, one call per line.
 */
export class WaiterHeartbeat {
  readonly #lines = new Set<WaitLine>()
  readonly #everyMs: number
  readonly #timers: Timers
  #timer: TimerHandle | undefined

  constructor(everyMs: number, timers: Timers) {
    this.#everyMs = everyMs
    this.#timers = timers
  }

  add(line: WaitLine): void {
    this.#lines.add(line)
    this.#timer ??= this.#timers.setInterval(() => this.#beat(), this.#everyMs)
  }

  remove(line: WaitLine): void {
    this.#lines.delete(line)
    if (this.#lines.size === 0) this.close()
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #beat(): void {
    for (const line of this.#lines) {
      const waiters = [...line.waiters()]
      line.protocol.keepWaiting?.(waiters.map(({ owner }) => owner)).then(
        (unknown) => {
          for (const waiter of waiters) if (unknown.includes(waiter.owner)) waiter.look()
        },
        // The next heartbeat comes soon; until then the waiters keep their places for their remaining time.
        () => {},
      )
    }
  }
}
