import type { SlotView } from '@firebreak/core'
import { slotCount } from '@firebreak/core/commands'

const maxClusters = 100

/** Accesses per slot of the second `second`, and of the full one before it. */
interface ClusterSlots {
  second: number
  current: Float64Array
  previous: Float64Array
}

/** Heat per slot, for every key: two arrays per cluster, swapped each second. */
export class SlotHeat {
  readonly #clusters = new Map<string, ClusterSlots>()

  add(redisClusterId: string, slot: number, count: number, now: number): void {
    const counts = this.counts(redisClusterId, now)
    if (counts !== undefined) counts[slot]! += count
  }

  /**
   * The counts of the second that contains `at`, to add to; undefined if it has passed, or there are too many clusters.
   */
  counts(redisClusterId: string, at: number): Float64Array | undefined {
    const slots = this.#at(redisClusterId, at)
    const age = slots === undefined ? 2 : slots.second - Math.floor(at / 1000)
    return age === 0 ? slots!.current : age === 1 ? slots!.previous : undefined
  }

  /** The busiest slots of the last full second; ties by slot. */
  busiest(now: number, limit: number): SlotView[] {
    const views: SlotView[] = []
    for (const redisClusterId of this.#clusters.keys()) {
      this.#at(redisClusterId, now)!.previous.forEach((ratePerSecond, slot) => {
        if (ratePerSecond > 0) views.push({ redisClusterId, slot, ratePerSecond })
      })
    }
    return views.sort((a, b) => b.ratePerSecond - a.ratePerSecond || a.slot - b.slot).slice(0, limit)
  }

  /** The counts of the last full second, cluster by cluster; do not keep them. */
  *lastSecond(now: number): Generator<readonly [redisClusterId: string, counts: Float64Array]> {
    for (const redisClusterId of this.#clusters.keys())
      yield [redisClusterId, this.#at(redisClusterId, now)!.previous] as const
  }

  /** All accesses of a cluster in the last full second. */
  ratePerSecond(redisClusterId: string, now: number): number {
    if (!this.#clusters.has(redisClusterId)) return 0
    return this.#at(redisClusterId, now)!.previous.reduce((sum, count) => sum + count, 0)
  }

  #at(redisClusterId: string, now: number): ClusterSlots | undefined {
    const second = Math.floor(now / 1000)
    let slots = this.#clusters.get(redisClusterId)
    if (slots === undefined) {
      if (this.#clusters.size >= maxClusters) return undefined
      slots = { second, current: new Float64Array(slotCount), previous: new Float64Array(slotCount) }
      this.#clusters.set(redisClusterId, slots)
    }
    if (second > slots.second) {
      const spare = slots.previous
      slots.previous = second === slots.second + 1 ? slots.current : spare.fill(0)
      slots.current = slots.previous === spare ? slots.current.fill(0) : spare.fill(0)
      slots.second = second
    }
    return slots
  }
}
