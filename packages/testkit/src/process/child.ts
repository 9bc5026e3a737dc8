import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from '../time/wait-for.ts'

const running = new Set<ChildProcess>()
const folders = new Set<string>()

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
// The test runner ends its workers with a signal, and a signal ends a process without that event.
process.once('SIGTERM', () => process.exit(143))

/** A child process that dies with this one, with its output. */
export interface GuardedChild {
  readonly process: ChildProcess
  readonly pid: number
  /** All of stdout and stderr so far. */
  output(): string
  /**
   * Resolves with the first match once the output contains it; rejects if the child ends first, or after `timeoutMs`.
   */
  printed(pattern: RegExp, timeoutMs?: number): Promise<RegExpMatchArray>
  /** Resolves with the exit code, null where a signal ended it. */
  readonly exited: Promise<number | null>
  /** Sends a signal by pid. */
  signal(name: NodeJS.Signals): void
  /** SIGTERM, SIGKILL after `graceMs`, and waits for the end. */
  stop(graceMs?: number): Promise<void>
}

/** Starts a program that never outlives this process. */
export function startChild(program: string, args: readonly string[], options: SpawnOptions = {}): GuardedChild {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  running.add(child)
  let output = ''
  const collect = (chunk: Buffer) => {
    output += chunk.toString('latin1')
    if (output.length > 4_000_000) output = output.slice(-2_000_000)
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  let hasEnded = false
  const exited = new Promise<number | null>((resolve) => {
    const ended = (code: number | null) => {
      hasEnded = true
      running.delete(child)
      resolve(code)
    }
    child.on('exit', ended)
    child.on('error', (error) => {
      output += `\n${error.message}`
      ended(-1)
    })
  })
  return {
    process: child,
    get pid() {
      return child.pid ?? -1
    },
    output: () => output,
    exited,
    async printed(pattern, timeoutMs = 30_000) {
      const match = await waitFor(() => output.match(pattern) ?? (hasEnded ? 'ended' : undefined), {
        timeoutMs,
        what: () => `${program} to print ${pattern}; it printed:\n${output.slice(-2000)}`,
      })
      if (match === 'ended')
        throw new Error(`${program} ended before it printed ${pattern}; it printed:\n${output.slice(-2000)}`)
      return match
    },
    signal: (name) => void child.kill(name),
    async stop(graceMs = 5000) {
      if (hasEnded) return
      child.kill('SIGTERM')
      child.kill('SIGCONT')
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
      await exited
      clearTimeout(timer)
    },
  }
}

/** Node's arguments for running a source file of this repository directly. */
export const sourceArgs: readonly string[] = ['--conditions=firebreak-source', '--disable-warning=ExperimentalWarning']

/** Starts a TypeScript file of this repository in its own Node process. */
export function startSource(
  file: string | URL,
  args: readonly string[] = [],
  options: SpawnOptions = {},
): GuardedChild {
  const path = file instanceof URL ? file.pathname : file
  return startChild(process.execPath, [...sourceArgs, path, ...args], options)
}

/** A new folder in the system's temporary folder, removed when this process ends. */
export function temporaryFolder(purpose = 'test'): string {
  const folder = mkdtempSync(join(tmpdir(), `firebreak-${purpose}-`))
  folders.add(folder)
  return folder
}
