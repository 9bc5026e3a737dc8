/**
 * Wraps an application's listener so that it cannot break the work in progress: whatever it throws reaches the process
 * as an uncaught exception, as from any emitter, and the caller's state stays consistent.
 */
export function asListener<Args extends readonly unknown[]>(
  listener: (...args: Args) => unknown,
): (...args: Args) => void {
  return (...args) => {
    try {
      listener(...args)
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown
      })
    }
  }
}
