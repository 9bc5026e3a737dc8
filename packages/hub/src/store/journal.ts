import type { Clock, HistoryEvent, Runtime } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { StoreCallError } from '../errors.ts'
import type { HubLogger } from '../hub-options.ts'
import type { EntryName, HubStore, StoreChange, StoredEntry } from './hub-store.ts'
import { explainStoreTrouble, storeName } from './store-trouble.ts'
import { StoreWriter } from './store-writer.ts'

/** Versions are reserved in the store by the thousand, so that a delta need not wait for a disk. */
export const versionBlock = 1000

/**
 * Switches thrown while the store is unreachable; beyond that the oldest are dropped, because later ones supersede
 * them.
 */
const maxPendingSwitches = 1000

export interface JournalOptions {
  readonly store: HubStore
  /** Nobody else uses a version up to this one. */
  readonly reservedVersion: number
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly alarms: AlarmBoard
}

interface PendingSwitch {
  readonly isOff: boolean
  readonly change: () => StoreChange
}

/**
 * Writes what the hub records: decisions and audit entries, in the log and in the store; the table and its versions.
 */
export class Journal {
  readonly store: HubStore
  readonly #writer: StoreWriter
  readonly #clock: Clock
  readonly #logger: HubLogger
  readonly #alarms: AlarmBoard
  #reservedVersion: number
  /** This hub's switches that are not in the store yet, in the order in which they were thrown. */
  #pendingSwitches: readonly PendingSwitch[] = []

  constructor({ store, reservedVersion, runtime, logger, alarms }: JournalOptions) {
    this.store = store
    this.#writer = new StoreWriter(store, runtime, (error) => this.#onTrouble(error))
    this.#clock = runtime.clock
    this.#logger = logger
    this.#alarms = alarms
    this.#reservedVersion = reservedVersion
  }

  /** Also called for every recorded event. */
  onRecord: ((event: HistoryEvent) => void) | undefined

  /** Which events go into the store; the log and `onRecord` get all. @default all */
  keeps: ((event: HistoryEvent) => boolean) | undefined

  record(event: HistoryEvent): void {
    if (this.keeps?.(event) ?? true) this.#writer.addHistory(event)
    this.onRecord?.(event)
    const { kind, redisClusterId, key, ruleId, text } = event
    this.#logger.info({ kind, redisClusterId, key, ruleId }, text)
  }

  /** Resolves once the store has it. */
  async audit(who: string, what: string, before: unknown, after: unknown): Promise<void> {
    this.#logger.info({ who, before, after }, what)
    await this.store.appendAudit({ at: this.#clock.now(), who, what, before, after })
  }

  /** What is written atomically with a change of a rule or the switch. */
  change(who: string, what: string, before: unknown, after: unknown, name: string): StoreChange {
    this.#logger.info({ who, before, after }, what)
    return { name, audit: { at: this.#clock.now(), who, what, before, after } }
  }

  /** True while a switch of this hub is being written or waits for the store: the store's value is older. */
  get isSwitchPending(): boolean {
    return this.#pendingSwitches.length > 0
  }

  /**
   * Writes the switch with its audit entry; `onStored` is awaited before it counts as written. If the store is
   * unreachable, switching off is stored when it recovers, and false is returned; switching on is refused. `change` is
   * called at every attempt.
   */
  async saveSwitch(isOff: boolean, change: () => StoreChange, onStored: () => Promise<void>): Promise<boolean> {
    const own: PendingSwitch = { isOff, change }
    const saveAll = async (store: HubStore) => {
      // After those waiting, which would otherwise overwrite it. One that is sent twice has the same id and is made
      // once.
      const saved = this.#pendingSwitches
      for (const pending of saved) await store.saveSwitch(pending.isOff, pending.change())
      await onStored()
      this.#pendingSwitches = this.#pendingSwitches.filter((pending) => !saved.includes(pending))
    }
    this.#pendingSwitches = [...this.#pendingSwitches, own].slice(-maxPendingSwitches)
    try {
      await saveAll(this.store)
      return true
    } catch (error) {
      if (!isOff) {
        this.#pendingSwitches = this.#pendingSwitches.filter((pending) => pending !== own)
        throw error
      }
      this.#writer.write('switch', saveAll)
      return false
    }
  }

  /** Runs a write as soon as possible; it replaces one `of` the same that is still waiting. */
  write(of: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.write(of, work)
  }

  /** Like `write`, after everything that is waiting. */
  writeLast(of: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.writeLast(of, work)
  }

  /** Writes a heat block; if too many are waiting, the oldest are dropped. */
  saveBlock(id: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.saveBlock(id, work)
  }

  /** What was lost because the store was unreachable for too long. */
  get lost(): StoreWriter['lost'] {
    return this.#writer.lost
  }

  /** Events, entries and other writes waiting for the store. */
  get waiting(): number {
    return this.#writer.waiting
  }

  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): void {
    this.#writer.saveEntries(set, removed)
  }

  /** Reserves a version: nobody else may use it from then on. */
  reserve(version: number): void {
    if (version < this.#reservedVersion) return
    const upTo = version + versionBlock
    this.#reservedVersion = upTo
    this.#writer.write('versions', (store) => store.reserveVersions(upTo))
  }

  /** Resolves once the store has everything so far. */
  stored(): Promise<void> {
    return this.#writer.drained()
  }

  async close(): Promise<void> {
    await this.#writer.close()
    await this.store.close()
  }

  #onTrouble(error: Error | undefined): void {
    if (error === undefined) {
      this.#alarms.clear('store')
      return
    }
    const { name } = this.store
    const reason = error instanceof StoreCallError ? error.cause : error
    this.#logger.warn({ store: name, error: explainStoreTrouble(reason) }, 'a write to the store failed')
    const subject = storeName(this.store)
    const cause = `${subject} failed: ${explainStoreTrouble(reason)}`
    const lost = this.lost.history === 0 ? '' : `; ${this.lost.history} events of the history are lost`
    const retry = `the write is retried every second; decisions continue from memory${lost}`
    this.#alarms.raise({ id: 'store', severity: 'critical', cause, retry })
  }
}
