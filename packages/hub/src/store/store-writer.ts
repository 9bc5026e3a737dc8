import type { HistoryEvent, Runtime, Timers } from '@firebreak/core'
import type { EntryName, HubStore, StoredEntry } from './hub-store.ts'

/**
 * Maximum writes and history events waiting while the store is unreachable; beyond that the oldest are dropped and
 * counted.
 */
const maxPending = 10_000
const retryMs = 1000

type Work = (store: HubStore) => Promise<unknown>

/**
 * Writes to the store in order and off the decision path: a slow or unreachable store delays nobody, and is reported
 * through `onTrouble`. A failed write is retried until it succeeds. History events that arrive together are written
 * together.
 */
export class StoreWriter {
  readonly #store: HubStore
  readonly #timers: Timers
  readonly #onTrouble: (error: Error | undefined) => void
  readonly #queue: Work[] = []
  readonly #history: HistoryEvent[] = []
  /** Names this writer's batches of events, so that one that got no answer is not written twice. */
  readonly #writer: string
  #batch: { readonly events: readonly HistoryEvent[]; readonly number: number } | undefined
  #batches = 0
  #pump: Promise<void> | undefined
  #isHistoryQueued = false
  #isClosing = false
  /** Ends the pause before the first write. */
  #begin: (() => void) | undefined
  #endWait: (() => void) | undefined
  #lostCount = 0

  constructor(store: HubStore, { timers, newId }: Runtime, onTrouble: (error: Error | undefined) => void) {
    this.#store = store
    this.#timers = timers
    this.#writer = newId()
    this.#onTrouble = onTrouble
  }

  /** Writes and events that found no room. */
  get lostCount(): number {
    return this.#lostCount
  }

  addHistory(event: HistoryEvent): void {
    this.#history.push(event)
    this.#bound(this.#history)
    if (this.#isHistoryQueued) return
    this.#isHistoryQueued = true
    this.write((store) => this.#writeHistory(store))
  }

  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): void {
    this.write((store) => store.saveEntries(set, removed))
  }

  write(work: Work): void {
    this.#queue.push(work)
    this.#bound(this.#queue)
    this.#start()
  }

  /** Resolves once everything so far is written. */
  async drained(): Promise<void> {
    this.#begin?.()
    await this.#pump
  }

  /** Like `drained`, but a store that fails now is not waited for. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#begin?.()
    this.#endWait?.()
    await this.#pump
  }

  async #writeHistory(store: HubStore): Promise<void> {
    // The same events under the same number until they are written: what came meanwhile is the next batch.
    this.#batch ??= { events: this.#history.splice(0), number: ++this.#batches }
    const { events, number } = this.#batch
    await store.appendHistory(events, { writer: this.#writer, number })
    this.#batch = undefined
    this.#isHistoryQueued = false
    if (this.#history.length > 0) {
      this.#isHistoryQueued = true
      this.#queue.push((again) => this.#writeHistory(again))
    }
  }

  #start(): void {
    this.#pump ??= this.#run().then(() => {
      this.#pump = undefined
      // What was written while the last one ended.
      if (this.#queue.length > 0 && !this.#isClosing) this.#start()
    })
  }

  async #run(): Promise<void> {
    // Not in this turn: a decision must leave for the sensors before the disk is asked.
    await new Promise<void>((resolve) => {
      this.#begin = resolve
      this.#timers.setImmediate(resolve)
    })
    this.#begin = undefined
    while (this.#queue.length > 0) {
      const work = this.#queue[0]!
      try {
        await work(this.#store)
        if (this.#queue[0] === work) this.#queue.shift()
        this.#onTrouble(undefined)
      } catch (error) {
        this.#onTrouble(error as Error)
        if (this.#isClosing) return
        await this.#wait()
      }
    }
  }

  async #wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#timers.setTimeout(resolve, retryMs)
      this.#endWait = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  #bound(list: unknown[]): void {
    if (list.length <= maxPending) return
    list.shift()
    this.#lostCount++
  }
}
