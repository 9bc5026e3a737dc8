import { type ChildProcess, spawn } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RedisTarget } from '@firebreak/core/resp'

/** The orders that the guard gets when it starts. */
export interface GuardOrders {
  readonly target: RedisTarget
  /** The client that runs MONITOR. */
  readonly clientId: number
  /** It is killed after this long in any case. */
  readonly maxMs: number
  /** It is killed when this many bytes are waiting for it in the server. */
  readonly maxServerBytes: number
}

/**
 * A separate process that ends a MONITOR from the server's side.
 *
 * A client that runs MONITOR and stops reading (Ctrl-Z, a stopped container, a swapping machine) makes the server
 * buffer every command for it, without any limit, until the server dies. The reading process cannot prevent that, since
 * it is the one that hangs. So the guard is a separate process, in its own session that Ctrl-Z does not reach: it
 * watches the client's output buffer, and kills the client when that grows, when the time is up, or when the reader is
 * gone.
 */
export function startGuard(orders: GuardOrders): ChildProcess {
  const file = fileURLToPath(import.meta.url)
  const program = file.replace(/monitor-guard\.[jt]s$/, `guard-main${extname(file)}`)
  const child = spawn(process.execPath, [...process.execArgv.filter(isForSources), program], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.on('error', () => {})
  // Orders go through the pipe and not the command line, because they may contain a password.
  child.stdin!.on('error', () => {})
  child.stdin!.write(`${JSON.stringify(orders)}\n`)
  return child
}

function isForSources(arg: string): boolean {
  return arg.startsWith('--conditions') || arg.startsWith('--disable-warning')
}
