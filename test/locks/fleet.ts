import { type GuardedChild, startSource, waitFor } from '@firebreak/testkit'

/** An event reported by a worker. */
export interface WorkerEvent {
  readonly event: string
  readonly pid: number
  /** Milliseconds of the machine's monotonic clock, which all processes share. */
  readonly at: number
  readonly token?: number
  readonly reason?: string
  readonly result?: boolean
  readonly isHeld?: boolean
  readonly longestMs?: number
}

/** A process that takes locks. */
export interface Worker {
  readonly child: GuardedChild
  readonly events: WorkerEvent[]
  tell(order: { do: string; name: string; [field: string]: unknown }): void
  /** Resolves with the first event of this kind that came after `from` events. */
  heard(event: string, from?: number): Promise<WorkerEvent>
}

/** Starts a process that takes locks on the Redis at this port. */
export async function startWorker(port: number, leaseMs: number): Promise<Worker> {
  const child = startSource(new URL('./worker.ts', import.meta.url), [String(port), String(leaseMs)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const events: WorkerEvent[] = []
  child.process.on('message', (event) => events.push(event as WorkerEvent))
  const worker: Worker = {
    child,
    events,
    tell: (order) => void child.process.send(order),
    heard: (event, from = 0) =>
      waitFor(() => events.slice(from).find((each) => each.event === event), {
        timeoutMs: 40_000,
        what: () => `${event}; heard ${JSON.stringify(events.slice(-5))}`,
      }),
  }
  await worker.heard('ready')
  return worker
}

/** The monotonic clock of `WorkerEvent.at`. */
export function steadyNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/**
 * A resource outside Redis that accepts a write only with the newest token it has seen, as a database with a
 * `WHERE token <= ?` does.
 */
export class Guard {
  #newest = 0

  accepts(token: number): boolean {
    if (token < this.#newest) return false
    this.#newest = token
    return true
  }
}

/** Replays the workers' events in order of time: who was inside at the same time, and were tokens in order? */
export function overlaps(events: readonly WorkerEvent[]): { count: number; entries: number; isTokenOrder: boolean } {
  const inOrder = events.filter(({ event }) => event === 'enter' || event === 'leave').sort((a, b) => a.at - b.at)
  const inside = new Set<number>()
  let count = 0
  let entries = 0
  let newest = 0
  let isTokenOrder = true
  for (const { event, token } of inOrder) {
    if (event === 'leave') {
      inside.delete(token!)
      continue
    }
    entries++
    if (inside.size > 0) count++
    inside.add(token!)
    if (token! <= newest) isTokenOrder = false
    newest = token!
  }
  return { count, entries, isTokenOrder }
}
