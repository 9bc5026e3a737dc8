import type { CachedReply } from './cached-reply.ts'

/** Receives a load's reply; undefined if the caller has to ask Redis itself. Called in the order of the readers. */
export type LoadedHandler = (reply: CachedReply | undefined) => void

/** A load in flight: many readers, one read of Redis. */
export interface Load {
  readers: LoadedHandler[]
  /** When each of them asked. */
  askedAt: number[]
  /** When it began: its result may be that old. */
  readonly since: number
  /** True if a change became known after it was sent: its result is not kept. */
  isPoisoned: boolean
}

/** The loads of one key that are in flight, by command. */
export class Loads {
  // Usually undefined: most keys have no load in flight.
  #running: Map<string, Load> | undefined

  /**
   * Joins a load of the command that began at most `maxAgeMs` ago: an older one may return what the reader's guard
   * would no longer allow. Returns the load if it is a new one, which the caller has to carry out.
   */
  join(commandId: string, reader: LoadedHandler, now: number, maxAgeMs: number): Load | undefined {
    const running = this.#running?.get(commandId)
    if (running !== undefined && now - running.since <= maxAgeMs) {
      running.readers.push(reader)
      running.askedAt.push(now)
      return undefined
    }
    // Nobody could poison it any more.
    if (running !== undefined) running.isPoisoned = true
    const load: Load = { readers: [reader], askedAt: [now], since: now, isPoisoned: false }
    this.#running ??= new Map()
    this.#running.set(commandId, load)
    return load
  }

  /** Stops readers from joining this load. */
  leave(commandId: string, load: Load): void {
    if (this.#running?.get(commandId) !== load) return
    this.#running.delete(commandId)
    if (this.#running.size === 0) this.#running = undefined
  }

  /** `endsAt`: when the result expires, by its key's TTL or its guard's. */
  end(commandId: string, load: Load, reply: CachedReply | undefined, endsAt: number): void {
    try {
      this.leave(commandId, load)
    } finally {
      finish(load, reply, endsAt)
    }
  }

  /** Stops readers from joining the loads in flight, and marks their results not to be kept. */
  poison(): Load[] {
    if (this.#running === undefined) return []
    const loads = [...this.#running.values()]
    this.#running = undefined
    for (const load of loads) load.isPoisoned = true
    return loads
  }
}

/**
 * Gives the result to everyone still waiting, once. Over a slow link a reply may have expired before it arrives: those
 * who asked before that still get it; to those who asked later it would be a value that no longer existed.
 */
export function finish(load: Load, reply: CachedReply | undefined, endsAt: number): void {
  const { readers, askedAt } = load
  load.readers = []
  load.askedAt = []
  for (const [index, reader] of readers.entries()) reader(askedAt[index]! > endsAt ? undefined : reply)
}
