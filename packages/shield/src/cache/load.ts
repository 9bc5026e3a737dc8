import type { CachedReply } from './cached-reply.ts'

/** Gets a load's reply; undefined where the caller has to ask Redis itself. Called in the order of the readers. */
export type LoadedHandler = (reply: CachedReply | undefined) => void

/** A load in flight: many readers, one read of Redis. */
export interface Load {
  readers: LoadedHandler[]
  /** When it began: what it brings may be as old. */
  readonly since: number
  /** True where a change became known since it was sent: what it brings is not kept. */
  isPoisoned: boolean
}

/** The loads of one key that are in flight, by command. */
export class Loads {
  // Most keys have none most of the time.
  #running: Map<string, Load> | undefined

  /**
   * Waits for a command's load that began no longer than `maxAgeMs` ago: an older one may bring what the reader's guard
   * would no longer let it have. Gives the load where it is a new one, which somebody has to carry out.
   */
  join(commandId: string, reader: LoadedHandler, now: number, maxAgeMs: number): Load | undefined {
    const running = this.#running?.get(commandId)
    if (running !== undefined && now - running.since <= maxAgeMs) {
      running.readers.push(reader)
      return undefined
    }
    // Nobody could poison it any more.
    if (running !== undefined) running.isPoisoned = true
    const load: Load = { readers: [reader], since: now, isPoisoned: false }
    this.#running ??= new Map()
    this.#running.set(commandId, load)
    return load
  }

  /** Nobody joins this load any more. */
  leave(commandId: string, load: Load): void {
    if (this.#running?.get(commandId) !== load) return
    this.#running.delete(commandId)
    if (this.#running.size === 0) this.#running = undefined
  }

  end(commandId: string, load: Load, reply: CachedReply | undefined): void {
    this.leave(commandId, load)
    finish(load, reply)
  }

  /** Nobody joins the loads that are in flight, and what they bring is not kept. */
  poison(): Load[] {
    if (this.#running === undefined) return []
    const loads = [...this.#running.values()]
    this.#running = undefined
    for (const load of loads) load.isPoisoned = true
    return loads
  }
}

/** Tells all who still wait for a load, once. */
export function finish(load: Load, reply: CachedReply | undefined): void {
  const { readers } = load
  load.readers = []
  for (const reader of readers) reader(reply)
}
