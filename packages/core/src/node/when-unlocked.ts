import { type Runtime, systemRuntime } from '../time/runtime.ts'

const busy = 5
const longestPauseMs = 50

/**
 * Runs a transaction on an SQLite file, and again while another process has the file locked, for at most `waitMs`.
 *
 * SQLite's own wait blocks the thread: everything else in this process would stand still for as long as somebody keeps a
 * transaction open. So connections that use this have a `busy_timeout` of 0.
 */
export async function whenUnlocked<T>(run: () => T, waitMs: number, runtime: Runtime = systemRuntime): Promise<T> {
  const { clock, timers } = runtime
  const endsAt = clock.now() + waitMs
  for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return run()
    } catch (error) {
      // The low byte is the code; the higher bytes give its kind.
      const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff
      if (code !== busy || clock.now() >= endsAt) throw error
    }
    const jittered = pauseMs * (0.5 + runtime.random() / 2)
    await new Promise<void>((resolve) => void timers.setTimeout(resolve, jittered))
  }
}
