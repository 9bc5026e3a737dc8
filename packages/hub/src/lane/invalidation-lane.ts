import {
  decodeFrame,
  decodeInvalidation,
  encodeInvalidation,
  type Invalidation,
  type TimerHandle,
  type Timers,
} from '@firebreak/core'
import type { LaneRelay } from './lane-relay.ts'

/** Sends bytes to the sensors of one listener. */
export type Broadcast = (bytes: Uint8Array) => void

/** How often a relay that cannot be joined is tried again. */
const retryMs = 1000

export interface InvalidationLaneOptions {
  readonly random: () => number
  readonly timers: Timers
  /** Where several hubs share a store: carries messages between them. */
  readonly relay?: LaneRelay | undefined
  readonly onRelayFailure: (error: Error) => void
}

/**
 * The hub's lane of invalidations: one sequence for all sensors. Every sensor gets every message, whatever clusters it
 * uses: with a sequence per cluster or key a lost message could not be told from one that was never meant.
 *
 * It begins anywhere. A hub that was started again under its old name has forgotten what it sent: where both had begun at
 * 0, its head could happen to be the one that a sensor heard last, and what changed in between would not show.
 */
export class InvalidationLane {
  readonly #options: InvalidationLaneOptions
  readonly #listeners = new Set<Broadcast>()
  #head: number
  #retry: TimerHandle | undefined
  #isClosed = false

  constructor(options: InvalidationLaneOptions) {
    this.#options = options
    this.#head = Math.floor(options.random() * 2 ** 47)
  }

  /** Begins to hear what other hubs send; as soon as it can, where the relay is away. */
  async open(): Promise<void> {
    const { relay, onRelayFailure, timers } = this.#options
    try {
      await relay?.open(
        (bytes) => this.#relayed(bytes),
        () => this.skip(),
      )
      // What others sent since the first attempt was not heard.
      if (this.#retry !== undefined) this.skip()
    } catch (error) {
      if (this.#isClosed) return
      if (this.#retry === undefined) onRelayFailure(error as Error)
      this.#retry = timers.setTimeout(() => void this.open(), retryMs)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
  }

  #relayed(bytes: Uint8Array): void {
    let invalidation: Invalidation
    try {
      invalidation = decodeInvalidation(decodeFrame(bytes))
    } catch (error) {
      // Another hub of a later version told of a change that this one cannot read: to the sensors it is a gap.
      this.skip()
      this.#options.onRelayFailure(error as Error)
      return
    }
    this.#send(invalidation)
  }

  /** The sequence of the newest message; in every heartbeat. */
  get head(): number {
    return this.#head
  }

  /** Joins a listener; gives how to leave. */
  join(broadcast: Broadcast): () => void {
    this.#listeners.add(broadcast)
    return () => void this.#listeners.delete(broadcast)
  }

  /** Something may have been missed: the next message, or heartbeat, shows every sensor a gap, and it flushes. */
  skip(): void {
    this.#head++
  }

  /** Tells the sensors of all hubs, those of this one first; gives the sequence here. */
  publish(invalidation: Omit<Invalidation, 'sequence'>): number {
    const { relay, onRelayFailure } = this.#options
    const sequence = this.#send(invalidation)
    relay?.publish(encodeInvalidation({ ...invalidation, sequence: 0 })).catch(onRelayFailure)
    return sequence
  }

  #send(invalidation: Omit<Invalidation, 'sequence'>): number {
    this.#head++
    const bytes = encodeInvalidation({ ...invalidation, sequence: this.#head })
    for (const broadcast of this.#listeners) broadcast(bytes)
    return this.#head
  }
}
