import type { HostView, WatcherStatus } from '@firebreak/core'
import { ClockOffset } from '../collect/clock-offset.ts'
import { SequenceWindow } from '../collect/sequence-window.ts'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** One process that reports, over whatever transport. */
export class Instance {
  readonly serviceId: string
  readonly hostId: string
  readonly instanceId: string
  readonly connectedAt: number
  readonly clock = new ClockOffset()
  readonly sequences = new SequenceWindow()
  readonly accesses = new SlidingWindow(2000)
  agent = 'http'
  /** Open sensor connections; more than one only for a moment, when a sensor reconnects. */
  connections = 0
  lastSeenAt: number
  tableVersion = 0
  /** When the table's newest version was first not confirmed by the last status; 0: it is. */
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
    }
  }
}

export interface HostRegisterOptions {
  /** A process without a connection is forgotten after this long without a report. */
  readonly hostTimeoutMs: number
  readonly maxInstances: number
}

/** The live list of processes that report, by their own heartbeats and reports. */
export class HostRegister {
  readonly #instances = new Map<string, Instance>()
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
    }
    instance.lastSeenAt = now
    return instance
  }

  all(): Iterable<Instance> {
    return this.#instances.values()
  }

  counts(): { readonly connected: number; readonly hosts: number; readonly services: number } {
    const hosts = new Set<string>()
    const services = new Set<string>()
    let connected = 0
    for (const { hostId, serviceId, connections } of this.#instances.values()) {
      hosts.add(hostId)
      services.add(serviceId)
      if (connections > 0) connected++
    }
    return { connected, hosts: hosts.size, services: services.size }
  }

  /** Processes of these services. */
  countOf(services: ReadonlySet<string>): number {
    let count = 0
    for (const { serviceId } of this.#instances.values()) if (services.has(serviceId)) count++
    return count
  }

  /** Forgets who has not been heard of. */
  expire(now: number): void {
    for (const [id, { connections, lastSeenAt }] of this.#instances) {
      if (connections === 0 && now - lastSeenAt > this.#options.hostTimeoutMs) this.#instances.delete(id)
    }
  }
}
