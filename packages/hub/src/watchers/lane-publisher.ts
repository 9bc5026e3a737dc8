import { type InvalidatedKey, type Invalidation, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'

/** Sends one message on the hub's lane. */
export type PublishInvalidation = (invalidation: Omit<Invalidation, 'sequence'>) => void

/** How changes become messages. */
export interface LanePublisherOptions {
  readonly redisClusterId: string
  readonly publish: PublishInvalidation
  /** A key that changes again within this time is sent once more at its end, not each time. @default 5 */
  readonly coalesceMs?: number
  /** Keys that may wait for that; beyond that everything is flushed instead. @default 10000 */
  readonly maxWaiting?: number
  readonly timers?: Timers
}

interface Waiting {
  readonly database: number
  /** The newest state, undefined until the key changes again. */
  item: InvalidatedKey | undefined
}

/**
 * Notifies shields of changed keys: the first change of a key at once, further ones within `coalesceMs` together at its
 * end. The last state is always sent; a counter written ten thousand times per second costs two hundred messages, and
 * no reader sees it older than `coalesceMs`.
 */
export class LanePublisher {
  readonly #options: Required<LanePublisherOptions>
  readonly #waiting = new Map<string, Waiting>()
  #timer: TimerHandle | undefined
  #overflows = 0

  constructor(options: LanePublisherOptions) {
    this.#options = { coalesceMs: 5, maxWaiting: 10_000, timers: systemTimers, ...options }
  }

  /** How many times too many keys were waiting and everything was flushed. */
  get overflows(): number {
    return this.#overflows
  }

  changed(database: number, items: readonly InvalidatedKey[]): void {
    const now: InvalidatedKey[] = []
    for (const item of items) {
      const id = `${database} ${item.key}`
      const waiting = this.#waiting.get(id)
      if (waiting !== undefined) {
        waiting.item = item
        continue
      }
      if (this.#waiting.size >= this.#options.maxWaiting) {
        this.#overflows++
        this.flush(-1)
        return
      }
      this.#waiting.set(id, { database, item: undefined })
      now.push(item)
    }
    if (now.length > 0) this.#send(database, now)
    this.#timer ??= this.#options.timers.setTimeout(() => this.#trailingEdge(), this.#options.coalesceMs)
  }

  /** Any key of a database (−1: of all) may have changed. */
  flush(database: number): void {
    for (const [id, waiting] of this.#waiting)
      if (database === -1 || waiting.database === database) this.#waiting.delete(id)
    this.#options.publish({ redisClusterId: this.#options.redisClusterId, database, kind: 'flush', items: [] })
  }

  close(): void {
    this.#timer?.cancel()
    this.#trailingEdge()
  }

  #trailingEdge(): void {
    this.#timer = undefined
    const byDatabase = new Map<number, InvalidatedKey[]>()
    for (const { database, item } of this.#waiting.values()) {
      if (item === undefined) continue
      const items = byDatabase.get(database)
      if (items === undefined) byDatabase.set(database, [item])
      else items.push(item)
    }
    this.#waiting.clear()
    for (const [database, items] of byDatabase) this.#send(database, items)
  }

  #send(database: number, items: readonly InvalidatedKey[]): void {
    this.#options.publish({ redisClusterId: this.#options.redisClusterId, database, kind: 'keys', items })
  }
}
