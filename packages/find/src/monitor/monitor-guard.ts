import { type ChildProcess, spawn } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RedisTarget } from '@firebreak/core/resp'

/** What the guard is told when it starts. */
export interface GuardOrders {
  readonly target: RedisTarget
  /** The client that runs MONITOR. */
  readonly clientId: number
  /** It is ended after this long whatever happens. */
  readonly maxMs: number
  /** It is ended when this many bytes wait for it in the server. */
  readonly maxServerBytes: number
}

/**
 * A process of its own that ends a MONITOR from the server's side.
 *
 * A client that runs MONITOR and stops reading (Ctrl-Z, a stopped container, a machine that swaps) makes the server
 * keep every command for it in memory, without any limit, until it dies. The process that reads cannot prevent that,
 * since it is the one that stands still. So the guard is another one, in a session of its own that no Ctrl-Z reaches:
 * it watches the client's output buffer, and kills the client when that grows, when the time is over, or when the
 * reader has gone.
 */
export function startGuard(orders: GuardOrders): ChildProcess {
  const file = fileURLToPath(import.meta.url)
  const program = file.replace(/monitor-guard\.[jt]s$/, `guard-main${extname(file)}`)
  const child = spawn(process.execPath, [...process.execArgv.filter(isForSources), program], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.on('error', () => {})
  // Orders go through the pipe and not the command line: they may hold a password.
  child.stdin!.on('error', () => {})
  child.stdin!.write(`${JSON.stringify(orders)}\n`)
  return child
}

function isForSources(arg: string): boolean {
  return arg.startsWith('--conditions') || arg.startsWith('--disable-warning')
}
