import { type Clock, explainDiskTrouble, type HistoryEvent, type Runtime } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { StoreCallError } from '../errors.ts'
import type { HubLogger } from '../hub-options.ts'
import type { EntryName, HubStore, StoreChange, StoredEntry } from './hub-store.ts'
import { StoreWriter } from './store-writer.ts'

/** Versions are reserved in the store by the thousand, so that a delta does not wait for a disk. */
export const versionBlock = 1000

/** Switches thrown while the store is away; of more the oldest leave, since the later ones say the same. */
const maxPendingSwitches = 1000

export interface JournalOptions {
  readonly store: HubStore
  /** No version up to this one is given out by anybody else. */
  readonly reservedVersion: number
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly alarms: AlarmBoard
}

interface PendingSwitch {
  readonly isOff: boolean
  readonly change: () => StoreChange
}

/** What the hub writes down: decisions and who asked for what, in the log and in the store; the table, and its versions. */
export class Journal {
  readonly store: HubStore
  readonly #writer: StoreWriter
  readonly #clock: Clock
  readonly #logger: HubLogger
  readonly #alarms: AlarmBoard
  #reservedVersion: number
  /** Switches of this hub that the store does not have yet, in the order in which they were thrown. */
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

  /** What of the events goes into the store; the log and `onRecord` get all. @default everything */
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

  /** What is written in one step with a change of a rule or the switch. */
  change(who: string, what: string, before: unknown, after: unknown, name: string): StoreChange {
    this.#logger.info({ who, before, after }, what)
    return { name, audit: { at: this.#clock.now(), who, what, before, after } }
  }

  /** True while a switch of this hub is under way to the store, or waits for it: what the store says is older. */
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
      // After those that wait, which would come back over it. One that is sent twice has the same name, and is made once.
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

  /** Does something with the store as soon as it can be done; what still waits `of` the same is not done. */
  write(of: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.write(of, work)
  }

  /** Like `write`, after everything that waits. */
  writeLast(of: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.writeLast(of, work)
  }

  /** Writes a block of heat; where too many wait, the oldest are given up. */
  saveBlock(id: string, work: (store: HubStore) => Promise<unknown>): void {
    this.#writer.saveBlock(id, work)
  }

  /** What the store did not get, since it was away for too long. */
  get lost(): StoreWriter['lost'] {
    return this.#writer.lost
  }

  /** Events, entries and other writes that the store does not have yet. */
  get waiting(): number {
    return this.#writer.waiting
  }

  saveEntries(set: readonly StoredEntry[], removed: readonly EntryName[]): void {
    this.#writer.saveEntries(set, removed)
  }

  /** A version is given out: from then on nobody else may. */
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
    this.#logger.warn({ store: name, error: explainDiskTrouble(reason) }, 'a write to the store failed')
    const subject = name === 'redis' ? 'the Redis that the hubs share' : `the ${name} store`
    const cause = `${subject} failed: ${explainDiskTrouble(reason)}`
    const lost = this.lost.history === 0 ? '' : `; ${this.lost.history} events of the history are lost`
    const retry = `the write is retried every second; decisions continue from memory${lost}`
    this.#alarms.raise({ id: 'store', severity: 'critical', cause, retry })
  }
}
