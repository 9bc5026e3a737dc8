import {
  type Clock,
  decodeFrame,
  decodeInvalidation,
  encodeInvalidation,
  type Invalidation,
  type TimerHandle,
  type Timers,
} from '@firebreak/core'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import type { LaneRelay } from './lane-relay.ts'

/** Sends bytes to one listener's sensors. */
export type Broadcast = (bytes: Uint8Array) => void

export interface InvalidationLaneOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly timers: Timers
  /** If several hubs share a store: carries messages between them. */
  readonly relay?: LaneRelay | undefined
  /** How to retry a failing relay. */
  readonly retry: RetryPolicy
  /** A message of another hub could not be read. */
  readonly onUnreadable: (error: Error) => void
  /** The relay fails, or (undefined) has recovered. `isOverdue`: it has failed for longer than its policy allows. */
  readonly onRelay: (failure: { readonly error: Error; readonly isOverdue: boolean } | undefined) => void
}

/**
 * The hub's lane of invalidations: one sequence for all sensors. Every sensor gets every message, whatever clusters it
 * uses: with a sequence per cluster or key, a lost message could not be distinguished from one that was never sent.
 *
 * It starts at a random number. A restarted hub with the same name has forgotten what it sent: if both had started at
 * 0, its head could equal the last one that a sensor heard, which would hide what changed in between.
 *
 * What the relay did not accept is owed to the other hubs. Once it is late, its keys no longer matter: only the
 * clusters are kept, and are flushed at the other hubs as soon as the relay accepts that.
 */
export class InvalidationLane {
  readonly #options: InvalidationLaneOptions
  readonly #listeners = new Set<Broadcast>()
  #head: number
  readonly #hearing: Retry
  readonly #telling: Retry
  readonly #owed = new Set<string>()
  #hearAgain: TimerHandle | undefined
  #tellAgain: TimerHandle | undefined
  #isClosed = false

  constructor(options: InvalidationLaneOptions) {
    this.#options = options
    this.#hearing = new Retry(options.retry, options)
    this.#telling = new Retry(options.retry, options)
    this.#head = Math.floor(options.random() * 2 ** 47)
  }

  /** Starts receiving what other hubs send; as soon as possible, if the relay is unreachable. */
  async open(): Promise<void> {
    const { relay, timers, retry } = this.#options
    try {
      await relay?.open(
        (bytes) => this.#relayed(bytes),
        () => this.skip(),
      )
      // What others sent since the first attempt was missed.
      if (this.#hearAgain !== undefined) this.skip()
      this.#hearing.succeeded()
      this.#tellState()
    } catch (error) {
      if (this.#isClosed) return
      // Receiving is retried forever, whatever happens to sending.
      const pauseMs = this.#hearing.failed() ?? retry.mostMs
      this.#tellState(error as Error)
      this.#hearAgain = timers.setTimeout(() => void this.open(), pauseMs)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#hearAgain?.cancel()
    this.#tellAgain?.cancel()
  }

  #relayed(bytes: Uint8Array): void {
    let invalidation: Invalidation
    try {
      invalidation = decodeInvalidation(decodeFrame(bytes))
    } catch (error) {
      // A hub of a later version sent a change that this one cannot read: for the sensors this is a gap.
      this.skip()
      this.#options.onUnreadable(error as Error)
      return
    }
    this.#send(invalidation)
  }

  /** The sequence of the newest message; in every heartbeat. */
  get head(): number {
    return this.#head
  }

  /** Adds a listener; the returned function removes it. */
  join(broadcast: Broadcast): () => void {
    this.#listeners.add(broadcast)
    return () => void this.#listeners.delete(broadcast)
  }

  /** Something may have been missed: the next message, or heartbeat, shows every sensor a gap, and it flushes. */
  skip(): void {
    this.#head++
  }

  /** Notifies the sensors of all hubs, this one's first; returns the sequence here. */
  publish(invalidation: Omit<Invalidation, 'sequence'>): number {
    const sequence = this.#send(invalidation)
    this.#relay(invalidation)?.catch((error: Error) => {
      this.#owed.add(invalidation.redisClusterId)
      if (this.#tellAgain === undefined) this.#owe(error)
    })
    return sequence
  }

  #relay(invalidation: Omit<Invalidation, 'sequence'>): Promise<void> | undefined {
    return this.#options.relay?.publish(encodeInvalidation({ ...invalidation, sequence: 0 }))
  }

  /** The relay did not accept something: it is sent as a flush later, or given up. */
  #owe(error: Error): void {
    if (this.#isClosed) return
    const pauseMs = this.#telling.failed()
    this.#tellState(error)
    this.#tellAgain = undefined
    if (pauseMs === undefined) this.#owed.clear()
    else this.#tellAgain = this.#options.timers.setTimeout(() => void this.#settle(), pauseMs)
  }

  async #settle(): Promise<void> {
    try {
      for (const redisClusterId of this.#owed) {
        // What fails while this one is in flight is owed again.
        this.#owed.delete(redisClusterId)
        await this.#relay({ redisClusterId, database: -1, kind: 'flush', items: [] })?.catch((error: Error) => {
          this.#owed.add(redisClusterId)
          throw error
        })
      }
    } catch (error) {
      this.#owe(error as Error)
      return
    }
    this.#tellAgain = undefined
    this.#telling.succeeded()
    this.#tellState()
  }

  #tellState(error?: Error): void {
    const isOverdue = this.#hearing.isOver || this.#telling.isOver
    if (error !== undefined) this.#options.onRelay({ error, isOverdue })
    else if (this.#hearing.failures + this.#telling.failures === 0) this.#options.onRelay(undefined)
  }

  #send(invalidation: Omit<Invalidation, 'sequence'>): number {
    this.#head++
    const bytes = encodeInvalidation({ ...invalidation, sequence: this.#head })
    for (const broadcast of this.#listeners) broadcast(bytes)
    return this.#head
  }
}
