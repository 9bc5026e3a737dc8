import { closeSync, openSync } from 'node:fs'

/**
 * Makes a file that only its own user may read, for a library that would make it as the umask says. One that exists is left as
 * it is: its owner may share it, and closing it again would end the locks that this process holds on it.
 */
export function newPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It exists, or cannot be made: who opens it says so better.
  }
}
