import { isAutoRule, type Rule } from '@firebreak/core/rules'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** Names the Redis node that owns a slot; if omitted, a cluster counts as one node. */
export type NodeOfSlot = (redisClusterId: string, slot: number) => string

const maxTotals = 10_000

export interface NodeRates {
  readonly perSecond: number
  readonly latestPerSecond: number
}

/**
 * All accesses of a service, and of a node, over the windows that rules with a share need.
 *
 * A service's total comes from the reports' own totals, which include what sampling left out. A node's is summed from
 * the entries (sampling keeps sums unbiased), because a report does not say how its total is spread over nodes.
 */
export class AccessTotals {
  readonly #nodeOfSlot: NodeOfSlot
  #serviceWindowsMs: readonly number[] = []
  #nodeWindowsMs: readonly number[] = []
  readonly #windows = new Map<string, SlidingWindow>()
  readonly #others = new Map<string, number>()

  constructor(nodeOfSlot: NodeOfSlot = () => '') {
    this.#nodeOfSlot = nodeOfSlot
  }

  setRules(rules: readonly Rule[]): void {
    const windowsFor = (shareOf: 'service' | 'node') => [
      ...new Set(
        rules
          .filter(({ levels }) => levels.some((level) => level.enterShare !== undefined && level.shareOf === shareOf))
          .map(({ windowMs }) => windowMs),
      ),
    ]
    this.#serviceWindowsMs = windowsFor('service')
    // The autopilot needs a node's demand over one second, whatever the rules count.
    this.#nodeWindowsMs = [...new Set([...windowsFor('node'), ...(rules.some(isAutoRule) ? [1000] : [])])]
  }

  /** True if shares of a node are needed, and with them every entry's slot. */
  get wantsSlots(): boolean {
    return this.#nodeWindowsMs.length > 0
  }

  addReport(redisClusterId: string, serviceId: string, at: number, total: number): void {
    for (const windowMs of this.#serviceWindowsMs)
      this.#window('service', redisClusterId, serviceId, windowMs)?.add(at, total)
  }

  addEntry(redisClusterId: string, slot: number, at: number, count: number): void {
    for (const windowMs of this.#nodeWindowsMs) {
      this.#window('node', redisClusterId, this.#nodeOfSlot(redisClusterId, slot), windowMs)?.add(at, count)
    }
  }

  ofServices(redisClusterId: string, services: Iterable<string>, windowMs: number, now: number): number {
    let sum = 0
    for (const service of services) sum += this.#sum('service', redisClusterId, service, windowMs, now)
    return sum
  }

  ofNode(redisClusterId: string, slot: number, windowMs: number, now: number): number {
    return this.#sum('node', redisClusterId, this.#nodeOfSlot(redisClusterId, slot), windowMs, now)
  }

  /**
   * A node's accesses per second over most of a window, and in its two most recent complete tenths. The newest two
   * tenths are left out: some processes have not reported them yet, and not all rows of the current report have been
   * counted.
   */
  ratesOfNode(redisClusterId: string, slot: number, windowMs: number, now: number): NodeRates {
    const name = this.#nodeOfSlot(redisClusterId, slot)
    const window = this.#window('node', redisClusterId, name, windowMs)
    const others = ((this.#others.get(idOf('node', redisClusterId, name, windowMs)) ?? 0) * 1000) / windowMs
    return {
      perSecond: others + (window?.ratePerSecond(now, 2, 10) ?? 0),
      latestPerSecond: others + (window?.ratePerSecond(now, 2, 4) ?? 0),
    }
  }

  /** This hub's own totals by name, for the other hubs. */
  own(now: number): Record<string, number> {
    return Object.fromEntries([...this.#windows].map(([id, window]) => [id, Math.round(window.sum(now))]))
  }

  /** What other hubs counted, by the same names. */
  setOthers(totals: readonly Readonly<Record<string, number>>[]): void {
    this.#others.clear()
    for (const hub of totals) {
      for (const [id, sum] of Object.entries(hub)) this.#others.set(id, (this.#others.get(id) ?? 0) + sum)
    }
  }

  #sum(kind: string, redisClusterId: string, name: string, windowMs: number, now: number): number {
    const own = this.#window(kind, redisClusterId, name, windowMs)?.sum(now) ?? 0
    return own + (this.#others.get(idOf(kind, redisClusterId, name, windowMs)) ?? 0)
  }

  #window(kind: string, redisClusterId: string, name: string, windowMs: number): SlidingWindow | undefined {
    const id = idOf(kind, redisClusterId, name, windowMs)
    let window = this.#windows.get(id)
    if (window === undefined) {
      if (this.#windows.size >= maxTotals) return undefined
      window = new SlidingWindow(windowMs)
      this.#windows.set(id, window)
    }
    return window
  }
}

function idOf(kind: string, redisClusterId: string, name: string, windowMs: number): string {
  return `${kind}\u0000${redisClusterId}\u0000${name}\u0000${windowMs}`
}
