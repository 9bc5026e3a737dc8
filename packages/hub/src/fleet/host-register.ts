import type { HostView, KeyView, ReportTransport, StatusPayload, WatcherStatus } from '@firebreak/core'
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
  #intervalMs = 0
  /** Its rate by its last report, if that says how much time it covers. */
  #reported = { perSecond: 0, until: 0 }
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

  /** How much time each of its reports covers, if it says so; 0 if not. */
  get intervalMs(): number {
    return this.#intervalMs
  }

  /** How long it may be silent and still be there: a process that reports once a minute is, all the time. */
  get silentMs(): number {
    return this.#intervalMs * 2.5
  }

  /** It has reported so many accesses of an interval. */
  takeInterval(intervalMs: number, accesses: number, now: number): void {
    this.#intervalMs = intervalMs
    const perSecond = intervalMs === 0 ? 0 : (accesses * 1000) / intervalMs
    this.#reported = { perSecond, until: now + this.silentMs }
  }

  /** Its accesses a second; between the reports of a long interval, those of the last. */
  ratePerSecond(now: number): number {
    const counted = this.accesses.sum(now) / 2
    return this.#intervalMs === 0 ? counted : now <= this.#reported.until ? this.#reported.perSecond : 0
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
      ratePerSecond: Math.round(this.ratePerSecond(now)),
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
/** Accesses a second of all processes of a hub. */
const rateName = 'accessesPerSecond\u0000'
const linkedPrefix = 'linked\u0000'
const clusterPrefix = 'cluster\u0000'
const readerPrefix = 'reader\u0000'
const maxReaders = 10_000

/** Who can carry out the strategies of a service, the best first. */
export type KeyCarrier = NonNullable<KeyView['carrier']>
const carriers: readonly KeyCarrier[] = ['sensor', 'table', 'centre', 'reports', 'none']

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
  /** Services with a sensor that is linked to another hub. */
  #othersLinked: ReadonlySet<string> = new Set()
  /** When sensors last named each cluster. */
  readonly #clusters = new Map<string, number>()
  /**
   * Services that read their table over HTTP, and until when they count as present: a process may take part without
   * reporting.
   */
  readonly #readers = new Map<string, number>()
  #othersClusters: readonly string[] = []
  #othersReaders: readonly string[] = []
  #othersRate = 0
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
  own(now: number): Record<string, number> {
    const linked = new Map<string, number>()
    for (const instance of this.#instances.values()) {
      const { serviceId } = instance
      linked.set(serviceId, (linked.get(serviceId) ?? 0) + (canServe(instance) ? 1 : 0))
    }
    return Object.fromEntries([
      [rateName, Math.round(this.#ownRate(now))],
      ...[...this.#sizes].map(([serviceId, size]) => [`${othersPrefix}${serviceId}`, size] as const),
      ...[...linked].map(([serviceId, count]) => [`${linkedPrefix}${serviceId}`, count] as const),
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
    this.#othersRate = totals.reduce((sum, hub) => sum + (hub[rateName] ?? 0), 0)
    // A hub of an earlier version does not tell links apart: its processes count as linked, as they do there.
    const isLinked = (hub: Readonly<Record<string, number>>, serviceId: string) =>
      (hub[`${linkedPrefix}${serviceId}`] ?? hub[`${othersPrefix}${serviceId}`] ?? 0) > 0
    this.#othersLinked = new Set(
      totals.flatMap((hub) => {
        const names = Object.keys(hub).filter((name) => name.startsWith(othersPrefix))
        return names.map((name) => name.slice(othersPrefix.length)).filter((serviceId) => isLinked(hub, serviceId))
      }),
    )
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

  /** Accesses a second of all processes, over all hubs. */
  ratePerSecond(now: number): number {
    return this.#ownRate(now) + this.#othersRate
  }

  #ownRate(now: number): number {
    let rate = 0
    for (const instance of this.#instances.values()) rate += instance.ratePerSecond(now)
    return rate
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
   * Tells who can carry out strategies for services, as of now: one pass over the processes, however many keys are asked
   * about. `isPublished`: tables are also in a config centre.
   */
  carriers(isPublished: boolean): (services: ReadonlySet<string>) => KeyCarrier {
    const best = new Map<string, number>()
    const consider = (serviceId: string, carrier: KeyCarrier) => {
      const rank = carriers.indexOf(carrier)
      if (rank < (best.get(serviceId) ?? carriers.length)) best.set(serviceId, rank)
    }
    for (const instance of this.#instances.values()) {
      if (canServe(instance)) consider(instance.serviceId, 'sensor')
      else if (onlyReports(instance)) consider(instance.serviceId, 'reports')
    }
    for (const serviceId of this.#others.keys())
      consider(serviceId, this.#othersLinked.has(serviceId) ? 'sensor' : 'reports')
    for (const serviceId of [...this.#readers.keys(), ...this.#othersReaders]) consider(serviceId, 'table')
    const centre = isPublished ? carriers.indexOf('centre') : carriers.length
    return (services) => {
      let rank = Math.min(carriers.length - 1, centre)
      for (const serviceId of services) rank = Math.min(rank, best.get(serviceId) ?? rank)
      return carriers[rank]!
    }
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
    for (const [id, { serviceId, connections, lastSeenAt, silentMs }] of this.#instances) {
      const timeoutMs = Math.max(this.#options.hostTimeoutMs, silentMs)
      if (connections > 0 || now - lastSeenAt <= timeoutMs) continue
      this.#instances.delete(id)
      const size = this.#sizes.get(serviceId)! - 1
      if (size > 0) this.#sizes.set(serviceId, size)
      else this.#sizes.delete(serviceId)
    }
  }
}

function canServe({ connections, isOff }: Instance): boolean {
  return connections > 0 && !isOff
}

/** A process that never had a link: one that lost its link reported over it. */
function onlyReports({ connections, newestReport }: Instance): boolean {
  return connections === 0 && newestReport !== undefined && newestReport.by !== 'websocket'
}

function registerId({ serviceId, hostId, instanceId }: Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>): string {
  return `${serviceId}\u0000${hostId}\u0000${instanceId}`
}
