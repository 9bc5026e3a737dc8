import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Timers } from '@firebreak/core'

const longestCheckMs = 60_000
const program = fileURLToPath(new URL(`./check-file.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url))

/** Calls back with true where LMDB can read a file from before, all of it, or there is none. */
export function checkFile(file: string, timers: Timers, onChecked: (isSound: boolean) => void): void {
  if (!existsSync(file)) {
    timers.setImmediate(() => onChecked(true))
    return
  }
  const child = spawn(process.execPath, [program, file], { stdio: 'ignore', timeout: longestCheckMs })
  // Without a process to look at it, nobody can say that it is sound.
  child.on('error', () => onChecked(false))
  child.on('exit', (code) => onChecked(code === 0))
  child.unref()
}
