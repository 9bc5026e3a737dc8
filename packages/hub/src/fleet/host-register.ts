import type { HostView, ReportTransport, StatusPayload, WatcherStatus } from '@firebreak/core'
import { ClockOffset } from '../collect/clock-offset.ts'
import { SequenceWindow } from '../collect/sequence-window.ts'
import { SlidingWindow } from '../heat/sliding-window.ts'
import { InstanceUse } from './sensor-bounds.ts'

/** One process that reports, over whatever transport. */
export class Instance {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  readonly connectedAt: number
  readonly clock = new ClockOffset()
  readonly sequences = new SequenceWindow()
  readonly accesses = new SlidingWindow(2000)
  /** How much time each of its reports covers, if it says so. */
  intervalMs = 0
  /** Its recent volume of reports. */
  use = new InstanceUse()
  /** By its own hello; undefined for who has only reported. */
  agent: string | undefined
  /** Open sensor connections; more than one only for a moment, when a sensor reconnects. */
  connections = 0
  lastSeenAt: number
  tableVersion = 0
  /** The table that it has not confirmed yet, and since when that is due. */
  #awaited: { readonly version: number; readonly since: number } | undefined
  isOff = false
  hitRate: number | null = null
  droppedReports = 0
  failures = 0
  #lastLossAt: number | null = null
  cachedBytes: number | null = null
  /** How its newest report came, and how old its counts were then. */
  newestReport: { readonly by: ReportTransport; readonly lagMs: number } | undefined
  /** Statuses tell who answered; before the first, all reads count as Redis'. */
  lastStatusAt: number | undefined
  watchers: readonly WatcherStatus[] = []

  constructor(serviceId: string, hostId: string, instanceId: string, now: number) {
    this.serviceId = serviceId
    this.hostId = hostId
    this.instanceId = instanceId
    this.connectedAt = now
    this.lastSeenAt = now
  }

  /** `newest` is the version that its service's table has now. */
  takeStatus(status: StatusPayload, now: number, newest = status.version): void {
    const { version, isOff, counters, watchers, cachedBytes } = status
    // A table may change with every status: a sensor is behind only by one that it has had the time to confirm.
    if (this.#awaited === undefined || version >= this.#awaited.version)
      this.#awaited = version < newest ? { version: newest, since: now } : undefined
    this.lastStatusAt = now
    this.lastSeenAt = now
    this.tableVersion = version
    this.isOff = isOff
    this.droppedReports += counters.droppedReports
    this.failures += counters.errors
    if (counters.droppedReports + counters.errors > 0) this.#lastLossAt = now
    this.cachedBytes = cachedBytes ?? null
    if (counters.reads > 0) this.hitRate = Math.min(1, counters.localHits / counters.reads)
    this.watchers = watchers.slice(0, maxWatchers)
  }

  /** `tables` is how processes of its service get their table that have no link. */
  view(now: number, tables: 'http' | 'centre' | null = null): HostView {
    return {
      serviceId: this.serviceId,
      hostId: this.hostId,
      instanceId: this.instanceId,
      agent: this.agent ?? this.newestReport?.by ?? 'http',
      connectedAt: this.connectedAt,
      lastSeenAt: this.lastSeenAt,
      clockOffsetMs: Math.round(this.clock.offsetMs),
      tableVersion: this.tableVersion,
      tableBehindMs: this.#awaited === undefined ? 0 : Math.round(now - this.#awaited.since),
      ratePerSecond: Math.round(this.accesses.sum(now) / 2),
      droppedReports: this.droppedReports,
      watchers: this.watchers,
      isOff: this.isOff,
      isConnected: this.connections > 0,
      hitRate: this.hitRate,
      reportsBy: this.newestReport?.by ?? null,
      reportLagMs: this.newestReport === undefined ? null : Math.round(this.newestReport.lagMs),
      tablesBy: this.connections > 0 ? 'websocket' : tables,
      cachedBytes: this.cachedBytes,
      failures: this.failures,
      lastLossAt: this.#lastLossAt,
    }
  }
}

export interface HostRegisterOptions {
  /** A process without a connection is forgotten after this long without a report. */
  readonly hostTimeoutMs: number
  readonly maxInstances: number
}

/** A cluster that no sensor has named for this long is gone. */
const clusterTimeoutMs = 86_400_000
const maxClusters = 1000

/** Number of watched Redis clusters shown per process. */
const maxWatchers = 100

const othersPrefix = 'processes\u0000'
const clusterPrefix = 'cluster\u0000'
const readerPrefix = 'reader\u0000'
const maxReaders = 10_000

/** The name of the process count among the totals that a hub shares with the others. */
export function processesIn(totals: Readonly<Record<string, number>>): number {
  return Object.entries(totals).reduce((sum, [name, size]) => sum + (name.startsWith(othersPrefix) ? size : 0), 0)
}

/** The live list of reporting processes, by their own heartbeats and reports. */
export class HostRegister {
  readonly #instances = new Map<string, Instance>()
  /** Processes by service: needed for every key that is posted or becomes hot. */
  readonly #sizes = new Map<string, number>()
  /** The same for other hubs. */
  readonly #others = new Map<string, number>()
  /** When sensors last named each cluster. */
  readonly #clusters = new Map<string, number>()
  /**
   * Services that read their table over HTTP, and until when they count as present: a process may take part without
   * reporting.
   */
  readonly #readers = new Map<string, number>()
  #othersClusters: readonly string[] = []
  #othersReaders: readonly string[] = []
  readonly #options: HostRegisterOptions

  constructor(options: HostRegisterOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#instances.size
  }

  /** The process, added if it is new; undefined if the register is full. */
  find(serviceId: string, hostId: string, instanceId: string, now: number): Instance | undefined {
    const instance = this.lookUp(serviceId, hostId, instanceId, now)
    return this.add(instance) ? instance : undefined
  }

  /** The process, or a new one that is not in the register yet. */
  lookUp(serviceId: string, hostId: string, instanceId: string, now: number): Instance {
    const known = this.#instances.get(registerId({ serviceId, hostId, instanceId }))
    if (known !== undefined) known.lastSeenAt = now
    return known ?? new Instance(serviceId, hostId, instanceId, now)
  }

  /** False if the register is full and the process is not in it. */
  add(instance: Instance): boolean {
    const id = registerId(instance)
    if (this.#instances.has(id)) return true
    if (this.#instances.size >= this.#options.maxInstances) return false
    this.#instances.set(id, instance)
    this.#sizes.set(instance.serviceId, (this.#sizes.get(instance.serviceId) ?? 0) + 1)
    return true
  }

  /** How many processes each service has here, and which clusters exist, under separate names among a hub's totals. */
  own(): Record<string, number> {
    return Object.fromEntries([
      ...[...this.#sizes].map(([serviceId, size]) => [`${othersPrefix}${serviceId}`, size] as const),
      ...[...this.#clusters.keys()].map((id) => [`${clusterPrefix}${id}`, 1] as const),
      ...[...this.#readers.keys()].map((serviceId) => [`${readerPrefix}${serviceId}`, 1] as const),
    ])
  }

  /** The same for the other hubs. */
  setOthers(totals: readonly Readonly<Record<string, number>>[]): void {
    this.#others.clear()
    const all = totals.flatMap((hub) => Object.entries(hub))
    const named = (prefix: string) =>
      all.flatMap(([name]) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []))
    this.#othersClusters = named(clusterPrefix)
    this.#othersReaders = named(readerPrefix)
    for (const [name, size] of all) {
      if (!name.startsWith(othersPrefix)) continue
      const serviceId = name.slice(othersPrefix.length)
      this.#others.set(serviceId, (this.#others.get(serviceId) ?? 0) + size)
    }
  }

  /** Services with a process at any hub that reports or reads its table. */
  services(): string[] {
    const others = [...this.#others.keys(), ...this.#othersReaders]
    return [...new Set([...this.#sizes.keys(), ...this.#readers.keys(), ...others])]
  }

  /** A process of the service reads its table, and will not ask again for `waitMs`. */
  seeReader(serviceId: string, waitMs: number, now: number): void {
    if (!this.#readers.has(serviceId) && this.#readers.size >= maxReaders) return
    const until = now + waitMs + this.#options.hostTimeoutMs
    this.#readers.set(serviceId, Math.max(until, this.#readers.get(serviceId) ?? 0))
  }

  /** `isPublished`: tables are also in a config centre. */
  views(now: number, isPublished: boolean): HostView[] {
    return [...this.#instances.values()].map((instance) =>
      instance.view(now, this.#readers.has(instance.serviceId) ? 'http' : isPublished ? 'centre' : null),
    )
  }

  /** A sensor has spoken of the cluster. */
  seeCluster(redisClusterId: string, now: number): void {
    if (this.#clusters.has(redisClusterId) || this.#clusters.size < maxClusters) this.#clusters.set(redisClusterId, now)
  }

  /** Clusters that sensors of any hub have named. */
  clusters(): string[] {
    return [...new Set([...this.#clusters.keys(), ...this.#othersClusters])]
  }

  all(): Iterable<Instance> {
    return this.#instances.values()
  }

  counts(): { readonly connected: number; readonly hosts: number; readonly services: number } {
    const hosts = new Set<string>()
    let connected = 0
    for (const { hostId, connections } of this.#instances.values()) {
      hosts.add(hostId)
      if (connections > 0) connected++
    }
    return { connected, hosts: hosts.size, services: this.#sizes.size }
  }

  /**
   * Whether a process of these services can carry out strategies: one with a link to this hub, or any at another hub.
   */
  canHandle(services: ReadonlySet<string>): boolean {
    for (const serviceId of services) if (this.#others.has(serviceId)) return true
    for (const { serviceId, connections, isOff } of this.#instances.values()) {
      if (connections > 0 && !isOff && services.has(serviceId)) return true
    }
    return false
  }

  /** Processes of these services, over all hubs. */
  countOf(services: ReadonlySet<string>): number {
    let count = 0
    for (const serviceId of services) count += (this.#sizes.get(serviceId) ?? 0) + (this.#others.get(serviceId) ?? 0)
    return count
  }

  /** Forgets processes that have been silent for too long. */
  expire(now: number): void {
    for (const [serviceId, until] of this.#readers) if (now > until) this.#readers.delete(serviceId)
    for (const [id, seenAt] of this.#clusters) if (now - seenAt > clusterTimeoutMs) this.#clusters.delete(id)
    for (const [id, { serviceId, connections, lastSeenAt, intervalMs }] of this.#instances) {
      // A process that reports once a minute counts as present all the time.
      const timeoutMs = Math.max(this.#options.hostTimeoutMs, intervalMs * 2.5)
      if (connections > 0 || now - lastSeenAt <= timeoutMs) continue
      this.#instances.delete(id)
      const size = this.#sizes.get(serviceId)! - 1
      if (size > 0) this.#sizes.set(serviceId, size)
      else this.#sizes.delete(serviceId)
    }
  }
}

function registerId({ serviceId, hostId, instanceId }: Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>): string {
  return `${serviceId}\u0000${hostId}\u0000${instanceId}`
}
