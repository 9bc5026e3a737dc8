/** How long and for what a test waits. */
export interface WaitOptions {
  /** @default 15000 */
  readonly timeoutMs?: number
  /** How often to look. @default 5 */
  readonly everyMs?: number
  /** What is waited for, for the error's sentence. */
  readonly what?: string | (() => string)
}

/** Looks until `condition` gives something other than undefined, null or false, and gives that. */
export async function waitFor<T>(
  condition: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  options: WaitOptions = {},
): Promise<T> {
  const { timeoutMs = 15_000, everyMs = 5, what = 'a condition' } = options
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== null && value !== false) return value
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${typeof what === 'function' ? what() : what}`)
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}
