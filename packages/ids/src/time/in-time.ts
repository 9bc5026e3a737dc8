import type { TimerHandle, Timers } from '@firebreak/core'

/** The promise's own outcome, or an error after `timeoutMs`; a later value goes to `onLate`. */
export async function inTime<T>(
  promise: Promise<T>,
  timers: Timers,
  timeoutMs: number,
  sentence: string,
  onLate: (value: T) => void = () => {},
): Promise<T> {
  let timer: TimerHandle | undefined
  const late = new Promise<never>((_, reject) => {
    timer = timers.setTimeout(() => {
      promise.then(onLate, () => {})
      reject(new Error(sentence))
    }, timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    timer?.cancel()
  }
}

/** Waits for this long. */
export function sleep(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => void timers.setTimeout(resolve, delayMs))
}
