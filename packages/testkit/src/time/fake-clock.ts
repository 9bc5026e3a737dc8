import type { Clock, TimerHandle, Timers } from '@firebreak/core'

interface FakeTimer {
  at: number
  readonly order: number
  readonly everyMs: number | undefined
  readonly callback: () => void
}

/** A clock and timers that only advance when told; timers fire in order of their time, then of their creation. */
export class FakeClock implements Clock, Timers {
  #now: number
  #order = 0
  readonly #timers = new Set<FakeTimer>()

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs
  }

  now(): number {
    return this.#now
  }

  setTimeout(callback: () => void, delayMs: number): TimerHandle {
    return this.#add(callback, delayMs, undefined)
  }

  setInterval(callback: () => void, periodMs: number): TimerHandle {
    return this.#add(callback, periodMs, Math.max(1, periodMs))
  }

  setImmediate(callback: () => void): TimerHandle {
    return this.#add(callback, 0, undefined)
  }

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size
  }

  /** Advances time and fires whatever is due on the way. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      let next: FakeTimer | undefined
      for (const timer of this.#timers) {
        if (timer.at > end) continue
        if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer
      }
      if (next === undefined) break
      this.#now = Math.max(this.#now, next.at)
      if (next.everyMs === undefined) this.#timers.delete(next)
      else next.at += next.everyMs
      next.callback()
    }
    this.#now = end
  }

  /** Like `advance`, but lets promises settle after each step of `stepMs`. */
  async advanceAsync(ms: number, stepMs = 10): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.advance(Math.min(stepMs, left))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Sets the time without firing timers, as a stepping wall clock does. */
  step(ms: number): void {
    this.#now += ms
  }

  #add(callback: () => void, delayMs: number, everyMs: number | undefined): TimerHandle {
    const timer: FakeTimer = { at: this.#now + Math.max(0, delayMs), order: this.#order++, everyMs, callback }
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }
}
