import type { HostView, StatusPayload, WatcherStatus } from '@firebreak/core'
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
  /** How much it has said of late. */
  use = new InstanceUse()
  agent = 'http'
  /** Open sensor connections; more than one only for a moment, when a sensor reconnects. */
  connections = 0
  lastSeenAt: number
  tableVersion = 0
  isOff = false
  droppedReports = 0
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

  takeStatus({ version, isOff, counters, watchers }: StatusPayload, now: number): void {
    this.lastStatusAt = now
    this.lastSeenAt = now
    this.tableVersion = version
    this.isOff = isOff
    this.droppedReports += counters.droppedReports
    this.watchers = watchers.slice(0, maxWatchers)
  }

  view(now: number): HostView {
    return {
      serviceId: this.serviceId,
      hostId: this.hostId,
      instanceId: this.instanceId,
      agent: this.agent,
      connectedAt: this.connectedAt,
      lastSeenAt: this.lastSeenAt,
      clockOffsetMs: Math.round(this.clock.offsetMs),
      tableVersion: this.tableVersion,
      ratePerSecond: Math.round(this.accesses.sum(now) / 2),
      droppedReports: this.droppedReports,
      watchers: this.watchers,
      isOff: this.isOff,
      isConnected: this.connections > 0,
    }
  }
}

export interface HostRegisterOptions {
  /** A process without a connection is forgotten after this long without a report. */
  readonly hostTimeoutMs: number
  readonly maxInstances: number
}

/** A cluster that no sensor has spoken of for this long is gone. */
const clusterTimeoutMs = 86_400_000
const maxClusters = 1000

/** Redis clusters that a process watches and that are shown. */
const maxWatchers = 100

const othersPrefix = 'processes\u0000'
const clusterPrefix = 'cluster\u0000'

/** The live list of processes that report, by their own heartbeats and reports. */
export class HostRegister {
  readonly #instances = new Map<string, Instance>()
  /** Processes by service: asked for every key that is posted or becomes hot. */
  readonly #sizes = new Map<string, number>()
  /** Those of other hubs. */
  readonly #others = new Map<string, number>()
  /** When sensors last spoke of each cluster. */
  readonly #clusters = new Map<string, number>()
  #othersClusters: readonly string[] = []
  readonly #options: HostRegisterOptions

  constructor(options: HostRegisterOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#instances.size
  }

  /** The process, made where it is new; undefined where the register is full. */
  find(serviceId: string, hostId: string, instanceId: string, now: number): Instance | undefined {
    const id = `${serviceId}\u0000${hostId}\u0000${instanceId}`
    let instance = this.#instances.get(id)
    if (instance === undefined) {
      if (this.#instances.size >= this.#options.maxInstances) return undefined
      instance = new Instance(serviceId, hostId, instanceId, now)
      this.#instances.set(id, instance)
      this.#sizes.set(serviceId, (this.#sizes.get(serviceId) ?? 0) + 1)
    }
    instance.lastSeenAt = now
    return instance
  }

  /** How many processes each service has here, and which clusters, under a name of its own among a hub's totals. */
  own(): Record<string, number> {
    return Object.fromEntries([
      ...[...this.#sizes].map(([serviceId, size]) => [`${othersPrefix}${serviceId}`, size] as const),
      ...[...this.#clusters.keys()].map((id) => [`${clusterPrefix}${id}`, 1] as const),
    ])
  }

  /** The same of the other hubs. */
  setOthers(totals: readonly Readonly<Record<string, number>>[]): void {
    this.#others.clear()
    const all = totals.flatMap((hub) => Object.entries(hub))
    this.#othersClusters = all.flatMap(([name]) =>
      name.startsWith(clusterPrefix) ? [name.slice(clusterPrefix.length)] : [],
    )
    for (const [name, size] of all) {
      if (!name.startsWith(othersPrefix)) continue
      const serviceId = name.slice(othersPrefix.length)
      this.#others.set(serviceId, (this.#others.get(serviceId) ?? 0) + size)
    }
  }

  /** Services with a process at any hub. */
  services(): string[] {
    return [...new Set([...this.#sizes.keys(), ...this.#others.keys()])]
  }

  /** A sensor has spoken of the cluster. */
  seeCluster(redisClusterId: string, now: number): void {
    if (this.#clusters.has(redisClusterId) || this.#clusters.size < maxClusters) this.#clusters.set(redisClusterId, now)
  }

  /** Clusters that sensors of any hub have spoken of. */
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

  /** Whether a process of these services can carry strategies out: one with a link to this hub, or any of another's. */
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

  /** Forgets who has not been heard of. */
  expire(now: number): void {
    for (const [id, seenAt] of this.#clusters) if (now - seenAt > clusterTimeoutMs) this.#clusters.delete(id)
    for (const [id, { serviceId, connections, lastSeenAt }] of this.#instances) {
      if (connections > 0 || now - lastSeenAt <= this.#options.hostTimeoutMs) continue
      this.#instances.delete(id)
      const size = this.#sizes.get(serviceId)! - 1
      if (size > 0) this.#sizes.set(serviceId, size)
      else this.#sizes.delete(serviceId)
    }
  }
}
