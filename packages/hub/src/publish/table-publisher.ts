import type { ConfigCentre } from '@firebreak/centre'
import {
  publishEveryMs,
  type Runtime,
  readPublishedTable,
  type StrategyList,
  type TableEntry,
  type TimerHandle,
  toPublishedTable,
  toStrategyList,
} from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { ServiceView } from '../deliver/service-view.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'

export interface TablePublisherOptions {
  readonly centre: ConfigCentre
  readonly runtime: Runtime
  readonly delivery: TableDelivery
  readonly alarms: AlarmBoard
  /** How long a table that is not rewritten stays valid. */
  readonly entryTtlMs: number
  /** What this hub knows about the store that it may share with others. */
  readonly standing: PublisherStanding
}

/** Whether a hub's decisions can be trusted. */
export interface PublisherStanding {
  /** False: its store has not answered since it started, so it knows nothing. */
  readonly isHeard: boolean
  /** True: it is cut off from the store that it shares. */
  readonly isAlone: boolean
}

/** How often changes are looked for, and how long a failed write waits. */
const lookMs = 100
const retryMs = 1000
/** While another hub is alive, its table is younger than this. */
const otherMs = publishEveryMs + 5000
const alarmId = 'publish'

/**
 * Writes each service's strategy table to a config centre whenever it changes, for fleets whose processes read their
 * settings there. One document per service; it contains its expiry, so that nobody acts on tables of hubs that are
 * gone.
 */
export class TablePublisher {
  readonly #options: TablePublisherOptions
  readonly #written = new Map<string, { readonly version: number; readonly at: number }>()
  /** Services whose table the centre did not accept. */
  readonly #tooLarge = new Set<string>()
  #timer: TimerHandle | undefined
  #writing: Promise<void> | undefined
  #isClosed = false

  constructor(options: TablePublisherOptions) {
    this.#options = options
    options.delivery.isPublished = true
  }

  start(): void {
    if (this.#isClosed) return
    this.#writing = this.#writeChanges()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#writing
    await this.#options.centre.close()
  }

  async #writeChanges(): Promise<void> {
    const { alarms, centre, delivery, runtime } = this.#options
    let pauseMs = lookMs
    try {
      for (const [serviceId, view] of delivery.services()) await this.#write(serviceId, view)
      if (this.#tooLarge.size === 0) alarms.clear(alarmId)
      else
        this.#raise(
          `over ${centre.maxBytes} bytes: the table of ${[...this.#tooLarge].join(', ')}`,
          'when it is smaller',
        )
    } catch (error) {
      pauseMs = retryMs
      this.#raise(`${centre.name}: ${(error as Error).message}`, `every ${retryMs} ms`)
    }
    if (!this.#isClosed) this.#timer = runtime.timers.setTimeout(() => this.start(), pauseMs)
  }

  /** Writes a table that changed or is due to be renewed. */
  async #write(serviceId: string, view: ServiceView): Promise<void> {
    const { centre, runtime, delivery, standing, entryTtlMs } = this.#options
    const { epoch, isOff } = delivery
    const { isAlone } = standing
    // Its empty table would remove what others wrote; a switch thrown here is published.
    if (!standing.isHeard && !isOff) return
    const { version } = view
    const now = runtime.clock.now()
    const last = this.#written.get(serviceId)
    if (last?.version === version && now - last.at < Math.min(publishEveryMs, entryTtlMs / 3)) return
    const path = `${centre.root}/${encodeURIComponent(serviceId)}`
    if (isAlone && !isOff && (await this.#isOthers(path))) return
    const snapshot = { epoch, version, isOff, entries: [...view.entries()], rules: view.rules }
    const writing = { writtenAt: runtime.wallClock.now(), forMs: entryTtlMs, isAlone }
    const text = JSON.stringify(toPublishedTable(snapshot, writing))
    if (Buffer.byteLength(text) > centre.maxBytes) {
      this.#tooLarge.add(serviceId)
    } else {
      await centre.write(path, text)
      this.#tooLarge.delete(serviceId)
    }
    this.#written.set(serviceId, { version, at: now })
  }

  /** True if a hub that is not cut off writes there: it takes precedence. */
  async #isOthers(path: string): Promise<boolean> {
    const { centre, runtime, delivery } = this.#options
    const found = readPublishedTable((await centre.read(path)) ?? '', '')
    if (found === undefined || found.isAlone || found.snapshot.epoch === delivery.epoch) return false
    return runtime.wallClock.now() - found.writtenAt < otherMs
  }

  #raise(cause: string, retry: string): void {
    this.#options.alarms.raise({ id: alarmId, severity: 'warning', cause, retry })
  }
}

/** Entries as config centres and the API write them, by cluster. */
export function byCluster(entries: Iterable<TableEntry>): Record<string, StrategyList> {
  const clusters = new Map<string, TableEntry[]>()
  for (const entry of entries) {
    const known = clusters.get(entry.redisClusterId)
    if (known === undefined) clusters.set(entry.redisClusterId, [entry])
    else known.push(entry)
  }
  return Object.fromEntries([...clusters].map(([id, list]) => [id, toStrategyList(list)]))
}
