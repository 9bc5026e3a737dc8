import { type Runtime, systemRuntime } from '@firebreak/core'
import { checkAddress, formatAddress, type NodeAddress, parseAddress } from '../address/node-address.ts'
import type { IdsError } from '../errors.ts'
import { workerCount } from '../snowflake/layout.ts'
import { sleep } from '../time/in-time.ts'
import {
  addressTaken,
  defaultRecycleAfterMs,
  defaultSessionTimeoutMs,
  parseRecord,
  pickRecyclable,
  type RegisteredWorker,
  type RegistryOptions,
  type WorkerRecord,
  workerLost,
  workersFull,
} from './worker-registry.ts'

/** A stored record: text under a worker id, and the version needed to change exactly this state. */
export interface StoredRecord {
  readonly workerId: number
  readonly text: string
  readonly version: string
}

/** What registration needs from a registry with one entry per worker id. */
export interface RecordTable {
  all(): Promise<readonly StoredRecord[]>
  /** The addresses that are claimed. */
  live(): Promise<readonly string[]>
  /** Writes the record if its state is still `version`, undefined if there was none. */
  write(workerId: number, record: WorkerRecord, version: string | undefined): Promise<boolean>
}

const claimRetryMs = 50

/** A node in its registry: its identity, how long it counts as alive, and the logic common to all registries. */
export class RegistryMember {
  /** A random name of this process. */
  readonly owner: string
  readonly address: NodeAddress
  /** The address as text. */
  readonly name: string
  readonly sessionTimeoutMs: number
  readonly recycleAfterMs: number
  readonly runtime: Runtime

  constructor(options: RegistryOptions) {
    this.runtime = options.runtime ?? systemRuntime
    this.owner = this.runtime.newId()
    this.address = checkAddress(options.address)
    this.name = formatAddress(this.address)
    this.sessionTimeoutMs = options.sessionTimeoutMs ?? defaultSessionTimeoutMs
    this.recycleAfterMs = options.recycleAfterMs ?? defaultRecycleAfterMs
  }

  /** Tries to claim until `attempt` names no other owner; `FB_IDS_ADDRESS_TAKEN` after `waitMs`. */
  async claim(waitMs: number, attempt: () => Promise<string | undefined>): Promise<void> {
    const { clock, timers } = this.runtime
    const deadline = clock.now() + waitMs
    for (;;) {
      const holder = await attempt()
      if (holder === undefined) return
      if (clock.now() >= deadline) throw addressTaken(this.address, holder)
      await sleep(timers, claimRetryMs)
    }
  }

  /** Takes the lowest free worker id, otherwise one that may be recycled. */
  async register(table: RecordTable, record: WorkerRecord): Promise<number> {
    for (;;) {
      const all = await table.all()
      const free = freeWorkerId(all.map(({ workerId }) => workerId))
      if (free !== undefined) {
        if (await table.write(free, record, undefined)) return free
        continue
      }
      const old = this.pickRecyclable(toWorkers(all), await table.live(), record.timestamp)
      if (await table.write(old.workerId, record, old.version)) return old.workerId
    }
  }

  /** The worker whose id may be taken; `FB_IDS_WORKERS_FULL` if none is safe. */
  pickRecyclable(workers: readonly RegisteredWorker[], live: readonly string[], nowMs: number): RegisteredWorker {
    const old = pickRecyclable(workers, live, nowMs, this.recycleAfterMs)
    if (old === undefined) throw workersFull(this.recycleAfterMs)
    return old
  }

  /** The records of this address. */
  own(all: readonly StoredRecord[]): RegisteredWorker[] {
    return toWorkers(all).filter(({ record }) => formatAddress(record) === this.name)
  }

  /** The records of the other nodes whose addresses are live. */
  fleet(all: readonly StoredRecord[], live: readonly string[]): RegisteredWorker[] {
    const others = new Set(live.filter((name) => name !== this.name))
    return toWorkers(all).filter(({ record }) => others.has(formatAddress(record)))
  }

  /** The other nodes among the live addresses. */
  peers(live: readonly string[]): NodeAddress[] {
    return live.filter((name) => name !== this.name).flatMap((name) => parseAddress(name) ?? [])
  }

  /** Throws `FB_IDS_WORKER_LOST` unless the text is this process' own record. */
  checkOwned(workerId: number, text: string | undefined): void {
    if (text === undefined || parseRecord(text)?.owner !== this.owner) throw this.lost(workerId)
  }

  lost(workerId: number): IdsError {
    return workerLost(workerId, this.address)
  }
}

/** The lowest worker id that is not taken. */
export function freeWorkerId(taken: Iterable<number>): number | undefined {
  const known = new Set(taken)
  for (let workerId = 0; workerId < workerCount; workerId++) if (!known.has(workerId)) return workerId
  return undefined
}

/** The records that can be read, by worker id. */
export function toWorkers(all: readonly StoredRecord[]): RegisteredWorker[] {
  return all.flatMap(({ workerId, text, version }) => {
    const record = parseRecord(text)
    return record === undefined || !(workerId < workerCount) ? [] : [{ workerId, record, version }]
  })
}
