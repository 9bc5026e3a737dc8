import { readFileSync, readlinkSync } from 'node:fs'
import { hostname, platform } from 'node:os'
import { threadId } from 'node:worker_threads'

let known: string | undefined

/**
 * The scope of process numbers: this boot of the machine and, on Linux, the pid namespace. Containers that share a host
 * name each have their own, with a process 1 in every one. Empty if unknown.
 */
export function pidSpace(): string {
  known ??= read()
  return known
}

function read(): string {
  if (platform() !== 'linux') return hostname()
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** The name of a source of this process: `id|host|pid.thread|space`. */
export function processName(id: string): string {
  return `${id}|${hostname()}|${process.pid}.${threadId}|${pidSpace()}`
}

/** True if the holder was a process of this host and pid space that is gone; `living` has the names of this process. */
export function isDead(holder: string, living: ReadonlySet<string>): boolean {
  const [, host, process_, space] = holder.split('|')
  const [pid, thread] = (process_ ?? '').split('.')
  if (host !== hostname() || !space || space !== pidSpace() || !/^\d+$/.test(pid ?? '')) return false
  if (Number(pid) === process.pid) return Number(thread) === threadId && !living.has(holder)
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as { code?: string }).code === 'ESRCH'
  }
}
