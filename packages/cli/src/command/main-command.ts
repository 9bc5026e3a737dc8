import { constants } from 'node:os'
import { commands } from '../commands/index.ts'
import { runCommand } from './run-command.ts'

/** Runs the command that the process was started with; returns its exit code. */
export async function main(): Promise<number> {
  const ended = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // A second signal ends the process at once, with the exit code of a process killed by that signal.
      if (ended.signal.aborted) process.exit(128 + constants.signals[name])
      ended.abort()
    })
  }
  endWithNpm(ended)
  // A closed pipe (`firebreak find … | head`) means that the reader has enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
  })
  const code = await runCommand(commands, process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: ended.signal,
  })
  // A driver that still holds a connection or a timer must not keep a process that is done or was told to end.
  const leave = () => process.exit(code)
  if (ended.signal.aborted) setTimeout(leave, lingerMs).unref()
  else ended.signal.addEventListener('abort', leave)
  return code
}

/** How long a command that was stopped, and has returned, may still hold its process. */
const lingerMs = 2000

/** How often to check whether npm's shell is still running. */
const npmCheckMs = 250

/**
 * `npx firebreak up` runs us inside a shell of npm's. npm passes SIGTERM only to that shell, which dies: when this
 * parent is gone we stop as if we had got the signal, or a supervisor that stops npx would leave hub, proxy and Redis
 * running.
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
