import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const longestCheckMs = 60_000
const program = fileURLToPath(new URL(`./check-file.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url))

/** Calls back with true where LMDB can read a file from before, all of it, or there is none. */
export function checkFile(file: string, onChecked: (isSound: boolean) => void): void {
  if (!existsSync(file)) {
    setImmediate(onChecked, true)
    return
  }
  const child = execFile(process.execPath, [program, file], { timeout: longestCheckMs }, (error) => {
    onChecked(error === null)
  })
  child.unref()
}
