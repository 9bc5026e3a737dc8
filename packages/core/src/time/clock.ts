/** Where a structure reads the time: milliseconds since 1970, possibly with a fraction. */
export interface Clock {
  now(): number
}

/** Timers, injected; the system's own are `systemTimers`. */
export interface Timers {
  setTimeout(callback: () => void, delayMs: number): TimerHandle
  setInterval(callback: () => void, periodMs: number): TimerHandle
  /** Runs the callback after the events of the current turn of the loop, before any later timer. */
  setImmediate(callback: () => void): TimerHandle
}

/** A running timer. */
export interface TimerHandle {
  cancel(): void
}

/** The wall clock; it may step when the machine's time is set. */
export const wallClock: Clock = { now: () => Date.now() }

/** A clock that never steps: wall time at start plus the time elapsed since; for durations, leases and TTLs. */
export const steadyClock: Clock = { now: () => timeOrigin + performance.now() }

// Read once: the getter costs more than the time itself, and locks and limits read it on every call.
const { timeOrigin } = performance

// An SDK must never keep the application's process alive; in a browser a timer is a number without `unref`.
function handle(timer: unknown, cancel: () => void): TimerHandle {
  const maybeUnref = timer as { unref?: () => void }
  maybeUnref.unref?.()
  return { cancel }
}

/** Node treats a longer delay as zero and fires at once. */
const longestDelayMs = 2 ** 31 - 1

/** The runtime's timers, unref'd so that they never keep a process alive; a delay beyond 24.8 days ends after 24.8 days. */
export const systemTimers: Timers = {
  setTimeout(callback, delayMs) {
    const timer = setTimeout(callback, Math.min(delayMs, longestDelayMs))
    return handle(timer, () => clearTimeout(timer))
  },
  setInterval(callback, periodMs) {
    const timer = setInterval(callback, Math.min(periodMs, longestDelayMs))
    return handle(timer, () => clearInterval(timer))
  },
  setImmediate(callback) {
    // Browsers have none; what would run at the end of this turn runs at the start of the next.
    if (typeof setImmediate !== 'function') return systemTimers.setTimeout(callback, 0)
    const immediate = setImmediate(callback)
    // Not unref'd: it is due within this turn, and its work must not be lost if the process ends after it.
    return { cancel: () => clearImmediate(immediate) }
  },
}
