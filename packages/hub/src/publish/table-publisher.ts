import { type Runtime, type StrategyList, type TableEntry, type TimerHandle, toStrategyList } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { ServiceView } from '../deliver/service-view.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { ConfigCentre } from './config-centre.ts'

/** What stands in the config centre for one service. */
export interface PublishedTable {
  readonly epoch: string
  readonly version: number
  /** True while the kill switch is thrown: nobody acts on anything. */
  readonly isOff: boolean
  /** Milliseconds since 1970; a table that is older than this belongs to hubs that are gone. */
  readonly validUntil: number
  /** The strategies with their keys, by the cluster that the keys are on. */
  readonly clusters: Readonly<Record<string, StrategyList>>
}

export interface TablePublisherOptions {
  readonly centre: ConfigCentre
  readonly runtime: Runtime
  readonly delivery: TableDelivery
  readonly alarms: AlarmBoard
}

/** How often changes are looked for, and how long a failed write waits. */
const lookMs = 100
const retryMs = 1000
/** A published table is good for so long, and written again well before. */
const validMs = 60_000
const renewMs = 20_000
/** ZooKeeper takes no more in one node, etcd not much more. */
const maxBytes = 1_000_000
const alarmId = 'publish'

/**
 * Writes each service's strategy table to a config centre whenever it changes, for fleets whose processes read their
 * settings there. One document a service; it carries its own end, so that nobody acts on the word of hubs that are gone.
 */
export class TablePublisher {
  readonly #options: TablePublisherOptions
  readonly #written = new Map<string, { readonly version: number; readonly at: number }>()
  /** Services whose table the centre would not take. */
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
      else this.#raise(`over ${maxBytes} bytes: the table of ${[...this.#tooLarge].join(', ')}`, 'when it is smaller')
    } catch (error) {
      pauseMs = retryMs
      this.#raise(`${centre.name}: ${(error as Error).message}`, `every ${retryMs} ms`)
    }
    if (!this.#isClosed) this.#timer = runtime.timers.setTimeout(() => this.start(), pauseMs)
  }

  /** Writes a table that changed or is due to be renewed. */
  async #write(serviceId: string, view: ServiceView): Promise<void> {
    const { centre, runtime, delivery } = this.#options
    const { epoch, isOff } = delivery
    const { version } = view
    const now = runtime.clock.now()
    const last = this.#written.get(serviceId)
    if (last?.version === version && now - last.at < renewMs) return
    const clusters = byCluster(view.entries())
    const table: PublishedTable = { epoch, version, isOff, validUntil: runtime.wallClock.now() + validMs, clusters }
    const text = JSON.stringify(table)
    if (Buffer.byteLength(text) > maxBytes) {
      this.#tooLarge.add(serviceId)
    } else {
      await centre.put(`${centre.root}/${encodeURIComponent(serviceId)}`, text)
      this.#tooLarge.delete(serviceId)
    }
    this.#written.set(serviceId, { version, at: now })
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
