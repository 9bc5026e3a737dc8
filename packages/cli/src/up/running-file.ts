import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivateFile } from '@firebreak/core/node'

/** Where a running `firebreak up` has everything, for the other commands. */
export interface Running {
  readonly pid: number
  readonly hubUrl: string
  readonly redisUrl: string
  readonly proxyUrl?: string
}

const fileName = 'running.json'

/** Where state is kept unless `--data` or a variable names another folder. */
export const defaultDataFolder = 'firebreak-data'

/** The folder named by the environment, otherwise the default. */
export function dataFolderOf(env: Readonly<Record<string, string | undefined>>): string {
  return env['FIREBREAK_UP_DATA'] ?? env['FIREBREAK_DATA'] ?? defaultDataFolder
}

export function writeRunning(dataFolder: string, running: Running): void {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  writePrivateFile(join(dataFolder, fileName), `${JSON.stringify(running, null, 2)}\n`)
}

export function removeRunning(dataFolder: string): void {
  rmSync(join(dataFolder, fileName), { force: true })
}

/** The running `firebreak up` of this folder; undefined if there is none or its process is gone. */
export function readRunning(dataFolder: string): Running | undefined {
  try {
    const running = JSON.parse(readFileSync(join(dataFolder, fileName), 'utf8')) as Running
    process.kill(running.pid, 0)
    return running
  } catch {
    return undefined
  }
}
