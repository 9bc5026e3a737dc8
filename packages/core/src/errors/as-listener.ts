/**
 * A listener of the application's that cannot end what is under way: what it throws is its own error, and comes to the
 * process as an uncaught one, as from any emitter. The state of whoever tells is right before and after.
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
