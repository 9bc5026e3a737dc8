import { statSync } from 'node:fs'
import type { Timers } from '../time/clock.ts'

/** Files that are checked periodically. */
export interface WatchedFiles {
  close(): void
}

/**
 * Calls `onChange` when one of the files was written or replaced. Polls instead of using file system notifications:
 * certificates and secrets are often replaced by moving a symbolic link above them, which triggers none.
 */
export function watchFiles(
  paths: readonly string[],
  timers: Timers,
  onChange: () => void,
  everyMs = 1000,
): WatchedFiles {
  let seen = stampOf(paths)
  const timer = timers.setInterval(() => {
    const stamp = stampOf(paths)
    if (stamp === seen) return
    seen = stamp
    onChange()
  }, everyMs)
  return { close: () => timer.cancel() }
}

function stampOf(paths: readonly string[]): string {
  return paths
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found === undefined ? 'none' : `${found.ino} ${found.size} ${found.mtimeMs}`
    })
    .join('\n')
}
