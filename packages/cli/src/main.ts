#!/usr/bin/env node
import { runCommand } from './command/run-command.ts'
import { commands } from './commands/index.ts'

const ended = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // A second Ctrl-C means now.
    if (ended.signal.aborted) process.exit(130)
    ended.abort()
  })
}
// A closed pipe (`firebreak find … | head`) is the reader's way to say enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
})

process.exitCode = await runCommand(commands, process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: ended.signal,
})
