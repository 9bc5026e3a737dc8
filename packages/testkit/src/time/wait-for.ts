/** How long and for what a test waits. */
export interface WaitForOptions {
  /** @default 15000 */
  readonly timeoutMs?: number
  /** How often to check. @default 5 */
  readonly everyMs?: number
  /** What is being waited for, for the error message. @default the source of the condition */
  readonly what?: string | (() => string)
}

/** Checks until `condition` returns something other than undefined, null or false, and returns that. */
export async function waitFor<T>(
  condition: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  options: WaitForOptions = {},
): Promise<T> {
  const { timeoutMs = 15_000, everyMs = 5, what = sourceOf(condition) } = options
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

/**
 * Lets time pass, when a test checks that nothing happens meanwhile or paces its own load; never to wait for something.
 */
export function letTimePass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const longestSource = 300

/** A condition's own words, on one line. */
function sourceOf(condition: () => unknown): string {
  const text = String(condition)
    .replace(/\s+/g, ' ')
    .replace(/^(async )?\(\) => /, '')
  return text.length <= longestSource ? text : `${text.slice(0, longestSource)} …`
}
