import { closeSync, openSync } from 'node:fs'

/**
 * Creates a file that only its own user may read, for a library that would create it by the umask. An existing file is
 * left alone: its owner may share it, and opening and closing it would end the locks that this process holds on it.
 */
export function newPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It exists or cannot be created: opening it will give a better error.
  }
}
