import type { HistoryEvent, Runtime, Timers } from '@firebreak/core'
import { type EntryName, entryId, type HubStore, type StoredEntry } from './hub-store.ts'

/** How many of each may wait while the store is unreachable; beyond that the oldest are dropped and counted. */
const maxWaiting = { history: 10_000, entries: 10_000, blocks: 500 }
const retryMs = 1000

type Work = (store: HubStore) => Promise<unknown>
type Removed = { readonly removed: EntryName }

/**
 * Writes to the store off the decision path: a slow or unreachable store delays nobody, and is reported through
 * `onTrouble`. A failed write is retried until it succeeds; the others go ahead meanwhile.
 *
 * Every write names its subject, and a waiting one is replaced by the next with the same subject: however long the
 * store is unreachable, no more writes wait than there are subjects, and a flood of decisions cannot push out a switch
 * or a version. Only history, entries and heat blocks grow with time; each has its own bound.
 */
export class StoreWriter {
  readonly #store: HubStore
  readonly #timers: Timers
  readonly #onTrouble: (error: Error | undefined) => void
  /** By subject, in the order in which they are written. */
  readonly #queue = new Map<string, { readonly work: Work }>()
  readonly #history: HistoryEvent[] = []
  /** The last state of each entry that is not in the store yet. */
  readonly #entries = new Map<string, StoredEntry | Removed>()
  /** Queued blocks, oldest first. */
  readonly #blocks = new Set<string>()
  readonly #lost = { history: 0, entries: 0, blocks: 0 }
  /** Writes that the store refused last time. */
  readonly #failing = new Set<string>()
  /** Identifies this writer's batches of events, so that an unanswered one is not written twice. */
  readonly #writer: string
  #batch: { readonly events: readonly HistoryEvent[]; readonly number: number } | undefined
  #batches = 0
  #pump: Promise<void> | undefined
  #isClosing = false
  #isClosed = false
  /** Ends the pause before the first write. */
  #begin: (() => void) | undefined
  #endWait: (() => void) | undefined

  constructor(store: HubStore, { timers, newId }: Runtime, onTrouble: (error: Error | undefined) => void) {
    this.#store = store
    this.#timers = timers
    this.#writer = newId()
    this.#onTrouble = onTrouble
  }

  /** What found no room, by kind. */
  get lost(): Readonly<Record<keyof typeof maxWaiting, number>> {
    return this.#lost
  }

  /** Events, entries and other writes waiting for the store. */
  get waiting(): number {
    const others = [...this.#queue.keys()].filter((of) => of !== 'history' && of !== 'entries').length
    return others + this.#history.length + (this.#batch?.events.length ?? 0) + this.#entries.size
  }

  addHistory(event: HistoryEvent): void {
    this.#history.push(event)
    if (this.#history.length > maxWaiting.history) {
      this.#history.shift()
      this.#lost.history++
    }
    this.write('history', (store) => this.#writeHistory(store))
  }

  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): void {
    for (const name of removed) this.#keep(name, { removed: name })
    for (const stored of set) this.#keep(stored.entry, stored)
    if (this.#entries.size > 0) this.write('entries', (store) => this.#writeEntries(store))
  }

  /** A heat block: each is written repeatedly as it fills. */
  saveBlock(id: string, work: Work): void {
    const of = `block ${id}`
    this.#blocks.delete(of)
    this.#blocks.add(of)
    this.write(of, work)
    if (this.#blocks.size <= maxWaiting.blocks) return
    const oldest = this.#blocks.values().next().value!
    this.#blocks.delete(oldest)
    this.#queue.delete(oldest)
    this.#lost.blocks++
  }

  /** A write that is kept until the store has it, or until the next one `of` the same subject, which supersedes it. */
  write(of: string, work: Work): void {
    // The store is closed: what comes this late has nowhere to go.
    if (this.#isClosed) return
    this.#queue.set(of, { work })
    this.#start()
  }

  /** Resolves once everything so far is written. */
  async drained(): Promise<void> {
    this.#begin?.()
    await this.#pump
  }

  /** Like `drained`, but does not wait for a failing store. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#begin?.()
    this.#endWait?.()
    await this.#pump
    this.#isClosed = true
  }

  /** Like `write`, after everything that is waiting; not for continual writes, which would never get their turn. */
  writeLast(of: string, work: Work): void {
    this.#queue.delete(of)
    this.write(of, work)
  }

  #keep(name: EntryName, state: StoredEntry | Removed): void {
    const id = entryId(name)
    this.#entries.delete(id)
    this.#entries.set(id, state)
    if (this.#entries.size <= maxWaiting.entries) return
    this.#entries.delete(this.#entries.keys().next().value!)
    this.#lost.entries++
  }

  async #writeHistory(store: HubStore): Promise<void> {
    // The same events keep their number until they are written: later ones form the next batch.
    if (this.#batch === undefined && this.#history.length === 0) return
    this.#batch ??= { events: this.#history.splice(0), number: ++this.#batches }
    const { events, number } = this.#batch
    await store.appendHistory(events, { writer: this.#writer, number })
    this.#batch = undefined
    if (this.#history.length > 0) this.write('history', (again) => this.#writeHistory(again))
  }

  async #writeEntries(store: HubStore): Promise<void> {
    const states = [...this.#entries]
    const set = states.flatMap(([, state]) => ('removed' in state ? [] : [state]))
    const removed = states.flatMap(([, state]) => ('removed' in state ? [state.removed] : []))
    await store.saveEntries(set, removed)
    // What has changed meanwhile is written next.
    for (const [id, state] of states) if (this.#entries.get(id) === state) this.#entries.delete(id)
  }

  #start(): void {
    this.#pump ??= this.#run().then(() => {
      this.#pump = undefined
      // What was added while the last write ended.
      if (this.#queue.size > 0 && !this.#isClosing) this.#start()
    })
  }

  async #run(): Promise<void> {
    // Not in this turn: a decision must leave for the sensors before the disk is used.
    await new Promise<void>((resolve) => {
      this.#begin = resolve
      this.#timers.setImmediate(resolve)
    })
    this.#begin = undefined
    for (;;) {
      const next = this.#queue.entries().next().value
      if (next === undefined) return
      const [of, write] = next
      try {
        await write.work(this.#store)
        this.#failing.delete(of)
        if (this.#failing.size === 0) this.#onTrouble(undefined)
        this.#passOn(of, write, true)
      } catch (error) {
        this.#failing.add(of)
        this.#onTrouble(error as Error)
        if (this.#isClosing) return
        this.#passOn(of, write, false)
        await this.#wait()
      }
    }
  }

  /** Moves a write to the end: one that the store refused, or that was replaced while being written. */
  #passOn(of: string, write: { readonly work: Work }, isWritten: boolean): void {
    const waiting = this.#queue.get(of)
    this.#queue.delete(of)
    if (waiting !== undefined && !(isWritten && waiting === write)) this.#queue.set(of, waiting)
    else this.#blocks.delete(of)
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
}
