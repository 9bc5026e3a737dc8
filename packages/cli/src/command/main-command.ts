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
  endWithNpm(ended)
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

/** How often it is looked whether the shell of npm still runs. */
const npmCheckMs = 250

/**
 * `npx firebreak up` is a shell of npm's with us inside. npm passes SIGTERM on to that shell alone, which dies of it: whoever has lost
 * this parent ends as if the signal had come to us, or a supervisor that stops npx would leave hub, proxy and Redis behind.
 */
function endWithNpm(ended: AbortController): void {
  // A script that puts us into the background and ends means us to stay; so does a test runner that npm has started.
  if (!/^['"]?firebreak\b[^&;|]*$/.test(process.env['npm_lifecycle_script'] ?? '')) return
  const parent = process.ppid
  const look = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(look)
    ended.abort()
  }, npmCheckMs)
  look.unref()
}
