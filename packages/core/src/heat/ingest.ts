import { maxPreload } from '../dict/dict.ts'
import { BinaryReportCursor } from '../report/binary-report.ts'
import type { HeatWindow } from './heat-window.ts'
import { HostNumbers } from './host-numbers.ts'
import { SlidingTotals } from './sliding-totals.ts'

/** What an ingest needs. */
export interface IngestOptions {
  /**
   * Makes the window of a scope that is named for the first time; undefined refuses its entries. A scope is a cluster,
   * or a cluster and service where `scopeOf` says so.
   */
  readonly makeWindow: (scope: string, nowMs: number) => HeatWindow | undefined
  /**
   * Which entries share a window. Services for which rules of their own exist need one of their own, since a key's rule
   * is kept with its entry. @default the cluster's id
   */
  readonly scopeOf?: (redisClusterId: string, serviceId: string) => string
  /** The window of the totals of services and clusters. @default 1000 */
  readonly totalsWindowMs?: number
  /** Scopes at one time. @default 256 */
  readonly maxScopes?: number
  /** @default new HostNumbers() */
  readonly hosts?: HostNumbers
}

/** What came in since the start. */
export interface IngestCounters {
  readonly reports: number
  readonly entries: number
  /** Entries of scopes that were refused, or that found no room. */
  readonly refusedEntries: number
}

/**
 * Takes binary reports into the windows: straight from the buffer they came in, no object and no string per entry.
 *
 * A report is walked twice. The first walk only checks it, since a report is taken whole or refused whole; at some tens
 * of nanoseconds an entry that is cheaper than being able to take an entry back.
 */
export class Ingest {
  readonly hosts: HostNumbers
  /** Accesses by service and by cluster, sampled-away ones included. */
  readonly services: SlidingTotals
  readonly clusters: SlidingTotals
  readonly #options: IngestOptions
  readonly #windows = new Map<string, HeatWindow>()
  readonly #maxScopes: number
  /** Entries that are decoded together, so that the dict can fetch for all of them at once. */
  readonly #batch = {
    hashes: new Int32Array(maxPreload),
    starts: new Int32Array(maxPreload),
    ends: new Int32Array(maxPreload),
    counts: new Float64Array(maxPreload),
    writes: new Float64Array(maxPreload),
    byteCounts: new Float64Array(maxPreload),
  }
  readonly #counters = { reports: 0, entries: 0, refusedEntries: 0 }

  constructor(options: IngestOptions) {
    const { totalsWindowMs = 1000, maxScopes = 256, hosts = new HostNumbers() } = options
    this.#options = options
    this.#maxScopes = maxScopes
    this.hosts = hosts
    this.services = new SlidingTotals({ windowMs: totalsWindowMs })
    this.clusters = new SlidingTotals({ windowMs: totalsWindowMs })
  }

  get counters(): IngestCounters {
    return this.#counters
  }

  /** The windows by scope. */
  get windows(): ReadonlyMap<string, HeatWindow> {
    return this.#windows
  }

  /**
   * Takes one report, the payload of a `report` frame; gives its number of entries. Throws a `ReportRefusedError`, and
   * takes nothing, where it is malformed.
   */
  take(bytes: Uint8Array, nowMs: number): number {
    BinaryReportCursor.validate(bytes)
    const cursor = new BinaryReportCursor(bytes)
    const { serviceId } = cursor
    const host = this.hosts.numberOf(`${serviceId}/${cursor.hostId}`, nowMs)
    let entries = 0
    while (cursor.nextSection()) {
      const { redisClusterId, totalCount } = cursor
      this.services.add(serviceId, totalCount, nowMs)
      this.clusters.add(redisClusterId, totalCount, nowMs)
      entries += this.#takeSection(cursor, this.#windowOf(redisClusterId, serviceId, nowMs), host, nowMs)
    }
    this.#counters.reports++
    this.#counters.entries += entries
    return entries
  }

  /** Moves every window to now and evaluates its warm keys. */
  evaluate(nowMs: number): void {
    for (const window of this.#windows.values()) {
      window.moveTo(nowMs)
      window.evaluate()
    }
  }

  #takeSection(cursor: BinaryReportCursor, window: HeatWindow | undefined, host: number, nowMs: number): number {
    let entries = 0
    if (window === undefined) {
      while (cursor.nextEntry()) entries++
      this.#counters.refusedEntries += entries
      return entries
    }
    window.moveTo(nowMs)
    const { bytes } = cursor
    const { dict } = window
    const { hashes, starts, ends, counts, writes, byteCounts } = this.#batch
    for (let hasMore = true; hasMore; ) {
      let size = 0
      while (size < maxPreload && (hasMore = cursor.nextEntry())) {
        hashes[size] = dict.hash(bytes, cursor.keyStart, cursor.keyEnd)
        starts[size] = cursor.keyStart
        ends[size] = cursor.keyEnd
        counts[size] = cursor.count
        writes[size] = cursor.writes
        byteCounts[size] = cursor.byteCount
        size++
      }
      dict.preload(hashes, size)
      for (let nth = 0; nth < size; nth++) {
        const [start, end, hash] = [starts[nth]!, ends[nth]!, hashes[nth]!]
        const index = window.add(bytes, start, end, counts[nth]!, writes[nth]!, byteCounts[nth]!, host, hash)
        if (index < 0) this.#counters.refusedEntries++
      }
      entries += size
    }
    return entries
  }

  #windowOf(redisClusterId: string, serviceId: string, nowMs: number): HeatWindow | undefined {
    const scope = this.#options.scopeOf?.(redisClusterId, serviceId) ?? redisClusterId
    const known = this.#windows.get(scope)
    if (known !== undefined || this.#windows.size >= this.#maxScopes) return known
    const made = this.#options.makeWindow(scope, nowMs)
    if (made !== undefined) this.#windows.set(scope, made)
    return made
  }
}
