import { readFileSync, statSync } from 'node:fs'

/** What is wrong with the mode of a file with secrets, and the command that mends it; undefined where nothing is. */
export function privateFileProblem(path: string): string | undefined {
  if (process.platform === 'win32') return undefined
  const { mode } = statSync(path)
  if ((mode & 0o007) === 0) return undefined
  const shown = (mode & 0o777).toString(8).padStart(4, '0')
  return `${path} holds secrets and is open to every user of this machine (mode ${shown}); run: chmod 600 ${path}`
}

/** The text of a file with one secret, without the end of its line. Throws where others can read it. */
export function readSecretFile(path: string): string {
  const problem = privateFileProblem(path)
  if (problem !== undefined) throw new Error(problem)
  return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
}
