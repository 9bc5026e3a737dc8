import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Timers } from '@firebreak/core'

const longestCheckMs = 60_000
const isSource = import.meta.url.endsWith('.ts')
const program = fileURLToPath(new URL(`./check-file.${isSource ? 'ts' : 'js'}`, import.meta.url))
const flags = isSource ? ['--conditions=firebreak-source'] : []

/** Calls back with true if LMDB can read all of an existing file, or there is none. */
export function checkFile(file: string, timers: Timers, onChecked: (isSound: boolean) => void): void {
  if (!existsSync(file)) {
    timers.setImmediate(() => onChecked(true))
    return
  }
  const child = spawn(process.execPath, [...flags, program, file], { stdio: 'ignore', timeout: longestCheckMs })
  // Without a process to check it, it cannot be assumed to be sound.
  child.on('error', () => onChecked(false))
  child.on('exit', (code) => onChecked(code === 0))
  child.unref()
}
