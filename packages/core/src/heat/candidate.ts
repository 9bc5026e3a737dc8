import { coldState, type HeatState } from './heat-state.ts'

/** Hosts whose accesses of one key are counted at one time. */
const hostCounters = 16

/** A host with the bounds of its accesses: at least `count` - `error`, at most `count`. */
export interface HostHeat {
  readonly host: number
  readonly count: number
  readonly error: number
}

/**
 * What is kept of a key once it is warm: accesses, writes and bytes in its window, and the hosts that touch it most.
 *
 * Hosts are counted by Space-Saving with sixteen counters: a host without one takes that of the smallest, with its
 * count as the error. At each new slice the counters decay by one slice's share, so that they follow the window.
 */
export class Candidate {
  readonly index: number
  state: HeatState = coldState
  /** The heat at which the state has to be looked at on arrival. */
  nextEnter = Number.POSITIVE_INFINITY
  readonly #slices: number
  /** Three rings, one after the other: accesses, writes, bytes. */
  readonly #ring: Float64Array
  #slice = -1
  readonly #hosts = new Int32Array(hostCounters).fill(-1)
  readonly #hostCounts = new Float64Array(hostCounters)
  readonly #hostErrors = new Float64Array(hostCounters)

  constructor(index: number, slices: number) {
    this.index = index
    this.#slices = slices
    this.#ring = new Float64Array(3 * slices)
  }

  add(slice: number, host: number, count: number, writes: number, bytes: number): void {
    if (slice !== this.#slice) this.#moveTo(slice)
    const at = slice % this.#slices
    this.#ring[at]! += count
    this.#ring[at + this.#slices]! += writes
    this.#ring[at + 2 * this.#slices]! += bytes
    if (host >= 0) this.#addHost(host, count)
  }

  /** Sums over the window that ends with `slice`. */
  sums(slice: number): { count: number; writes: number; bytes: number } {
    this.#moveTo(slice)
    let count = 0
    let writes = 0
    let bytes = 0
    for (let at = 0; at < this.#slices; at++) {
      count += this.#ring[at]!
      writes += this.#ring[at + this.#slices]!
      bytes += this.#ring[at + 2 * this.#slices]!
    }
    return { count, writes, bytes }
  }

  /** The hosts with the most accesses; ties by the host's number. */
  topHosts(k: number): HostHeat[] {
    const hosts: HostHeat[] = []
    for (let at = 0; at < hostCounters; at++) {
      if (this.#hosts[at]! < 0) continue
      hosts.push({ host: this.#hosts[at]!, count: this.#hostCounts[at]!, error: this.#hostErrors[at]! })
    }
    return hosts.sort((a, b) => b.count - a.count || a.host - b.host).slice(0, k)
  }

  /** Begins anew, since the length of its slices has changed; the state stays. */
  restart(): void {
    this.#slice = -1
    this.#clear()
  }

  #addHost(host: number, count: number): void {
    let smallest = 0
    for (let at = 0; at < hostCounters; at++) {
      if (this.#hosts[at] === host) {
        this.#hostCounts[at]! += count
        return
      }
      if (this.#hostCounts[at]! < this.#hostCounts[smallest]!) smallest = at
    }
    this.#hosts[smallest] = host
    this.#hostErrors[smallest] = this.#hostCounts[smallest]!
    this.#hostCounts[smallest]! += count
  }

  #moveTo(slice: number): void {
    if (this.#slice < 0) this.#slice = slice
    const steps = slice - this.#slice
    if (steps <= 0) return
    this.#slice = slice
    if (steps >= this.#slices) {
      this.#clear()
      return
    }
    const kept = (1 - 1 / this.#slices) ** steps
    for (let step = 0; step < steps; step++) {
      const at = (slice - step) % this.#slices
      this.#ring[at] = this.#ring[at + this.#slices] = this.#ring[at + 2 * this.#slices] = 0
    }
    for (let at = 0; at < hostCounters; at++) {
      this.#hostCounts[at]! *= kept
      this.#hostErrors[at]! *= kept
    }
  }

  #clear(): void {
    this.#ring.fill(0)
    this.#hosts.fill(-1)
    this.#hostCounts.fill(0)
    this.#hostErrors.fill(0)
  }
}
