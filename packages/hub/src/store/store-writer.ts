import type { HistoryEvent } from '@firebreak/core'
import type { EntryName, HubStore, StoredEntry } from './hub-store.ts'

/** History events that wait; beyond it the oldest are let go, counted. */
const maxPending = 10_000

/**
 * Writes to the store in order and off the way of decisions: a store that is slow or away delays nobody, and is told of by
 * `onTrouble`. What belongs together is written together.
 */
export class StoreWriter {
  readonly #store: HubStore
  readonly #onTrouble: (error: Error | undefined) => void
  #tail: Promise<void> = Promise.resolve()
  #history: HistoryEvent[] = []
  #isHistoryQueued = false
  #lostEvents = 0

  constructor(store: HubStore, onTrouble: (error: Error | undefined) => void) {
    this.#store = store
    this.#onTrouble = onTrouble
  }

  /** History events that found no room. */
  get lostEvents(): number {
    return this.#lostEvents
  }

  addHistory(event: HistoryEvent): void {
    this.#history.push(event)
    if (this.#history.length > maxPending) {
      this.#history.shift()
      this.#lostEvents++
    }
    if (this.#isHistoryQueued) return
    this.#isHistoryQueued = true
    this.write(async (store) => {
      this.#isHistoryQueued = false
      const events = this.#history
      this.#history = []
      await store.appendHistory(events)
    })
  }

  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): void {
    this.write((store) => store.saveEntries(set, removed))
  }

  write(work: (store: HubStore) => Promise<unknown>): void {
    // Not in this turn: a decision must leave for the sensors before the disk is asked.
    this.#tail = this.#tail
      .then(() => new Promise<void>((resolve) => setImmediate(resolve)))
      .then(() => work(this.#store))
      .then(
        () => this.#onTrouble(undefined),
        (error: Error) => this.#onTrouble(error),
      )
  }

  /** Resolves once everything so far is written, or has failed. */
  drained(): Promise<void> {
    return this.#tail
  }
}
