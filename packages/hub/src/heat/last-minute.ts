const seconds = 60
const maxHosts = 1000

interface HostCount {
  readonly hostId: string
  readonly serviceId: string
  /** Accesses of the second `second` so far, and of the one before it. */
  second: number
  current: number
  previous: number
}

/** The last minute of a displayed key, one point per second, and who touches it. */
export class LastMinute {
  readonly #accesses = new Float64Array(seconds)
  readonly #writes = new Float64Array(seconds)
  readonly #bytes = new Float64Array(seconds)
  readonly #hosts = new Map<string, HostCount>()
  #head = 0

  add(at: number, count: number, writes: number, bytes: number, instanceId: string, host: HostIdentity): void {
    const second = Math.floor(at / 1000)
    this.#rotate(second)
    if (second <= this.#head - seconds) return
    const place = second % seconds
    this.#accesses[place]! += count
    this.#writes[place]! += writes
    this.#bytes[place]! += bytes
    this.#addHost(second, count, instanceId, host)
  }

  /** Accesses per second over the last minute, oldest first, without the current second. */
  sparkline(now: number): number[] {
    const head = Math.floor(now / 1000)
    this.#rotate(head)
    return Array.from({ length: seconds - 1 }, (_, index) => this.#accesses[(head + 1 + index) % seconds]!)
  }

  /** The means of the last two full seconds. */
  recent(now: number): { readonly accesses: number; readonly writes: number; readonly bytes: number } {
    const head = Math.floor(now / 1000)
    this.#rotate(head)
    const mean = (ring: Float64Array) => (ring[(head - 1) % seconds]! + ring[(head - 2) % seconds]!) / 2
    return { accesses: mean(this.#accesses), writes: mean(this.#writes), bytes: mean(this.#bytes) }
  }

  /** The counts of one second of the last minute. */
  second(second: number): { readonly accesses: number; readonly writes: number; readonly bytes: number } {
    const isKept = second <= this.#head && second > this.#head - seconds
    const at = (ring: Float64Array) => (isKept ? ring[second % seconds]! : 0)
    return { accesses: at(this.#accesses), writes: at(this.#writes), bytes: at(this.#bytes) }
  }

  get hostCount(): number {
    return new Set([...this.#hosts.values()].map(({ hostId, serviceId }) => `${serviceId}\u0000${hostId}`)).size
  }

  /** The services that touch it, by name. */
  services(): string[] {
    return [...new Set([...this.#hosts.values()].map(({ serviceId }) => serviceId))].sort()
  }

  /** The busiest hosts; ties by host. */
  topHosts(now: number, limit: number): { hostId: string; serviceId: string; ratePerSecond: number }[] {
    const second = Math.floor(now / 1000)
    const rates = new Map<string, { hostId: string; serviceId: string; ratePerSecond: number }>()
    for (const host of this.#hosts.values()) {
      const rate = host.second === second ? host.previous : host.second === second - 1 ? host.current : 0
      const id = `${host.serviceId}\u0000${host.hostId}`
      const known = rates.get(id)
      if (known === undefined) rates.set(id, { hostId: host.hostId, serviceId: host.serviceId, ratePerSecond: rate })
      else known.ratePerSecond += rate
    }
    return [...rates.values()]
      .sort((a, b) => b.ratePerSecond - a.ratePerSecond || (a.hostId < b.hostId ? -1 : 1))
      .slice(0, limit)
  }

  #addHost(second: number, count: number, instanceId: string, { hostId, serviceId }: HostIdentity): void {
    let host = this.#hosts.get(instanceId)
    if (host === undefined) {
      if (this.#hosts.size >= maxHosts) this.#dropSilent(second)
      if (this.#hosts.size >= maxHosts) return
      host = { hostId, serviceId, second, current: 0, previous: 0 }
      this.#hosts.set(instanceId, host)
    }
    if (second > host.second) {
      host.previous = second === host.second + 1 ? host.current : 0
      host.current = 0
      host.second = second
    }
    host.current += count
  }

  #dropSilent(second: number): void {
    for (const [id, host] of this.#hosts) if (second - host.second > seconds) this.#hosts.delete(id)
  }

  #rotate(second: number): void {
    if (second <= this.#head) return
    const from = Math.max(this.#head + 1, second - seconds + 1)
    for (let gone = from; gone <= second; gone++) {
      this.#accesses[gone % seconds] = 0
      this.#writes[gone % seconds] = 0
      this.#bytes[gone % seconds] = 0
    }
    this.#head = second
  }
}

interface HostIdentity {
  readonly hostId: string
  readonly serviceId: string
}
