import { constants } from 'node:os'
import { commands } from '../commands/index.ts'
import { runCommand } from './run-command.ts'

/** Runs the command that the process was started with; its exit code. */
export function main(): Promise<number> {
  const ended = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // A second one means now; the code is that of a process which the signal has ended.
      if (ended.signal.aborted) process.exit(128 + constants.signals[name])
      ended.abort()
    })
  }
  // A closed pipe (`firebreak find … | head`) is the reader's way to say enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
  })
  return runCommand(commands, process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: ended.signal,
  })
}
