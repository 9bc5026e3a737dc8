import { closeSync, fchmodSync, fstatSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'

/**
 * What is wrong with the permissions of a file with secrets, and the command that fixes it; undefined if they are fine.
 */
export function privateFileProblem(path: string): string | undefined {
  if (process.platform === 'win32') return undefined
  const { mode } = statSync(path)
  if ((mode & 0o007) === 0) return undefined
  const shown = (mode & 0o777).toString(8).padStart(4, '0')
  return `${path} holds secrets but every user of this machine can read it (mode ${shown}); run: chmod 600 ${path}`
}

/** The text of a file with one secret, without the trailing newline. Throws if other users can read it. */
export function readSecretFile(path: string): string {
  const problem = privateFileProblem(path)
  if (problem !== undefined) throw new Error(problem)
  return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
}

/** Writes a file that only its own user may read, also where one is there that others may read. */
export function writePrivateFile(path: string, text: string): void {
  const file = openSync(path, 'w', 0o600)
  try {
    // Not a pipe or a terminal.
    if (fstatSync(file).isFile()) fchmodSync(file, 0o600)
    writeFileSync(file, text)
  } finally {
    closeSync(file)
  }
}
