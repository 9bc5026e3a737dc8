import type { HeatTrack } from '../heat/heat-track.ts'

/** When a key last took much of its node for a moment, and its peak. */
export interface Burst {
  readonly at: number
  readonly readsPerSecond: number
}

/** A burst is remembered for this long. */
const memoryMs = 60_000
/**
 * A key must take this fraction of its node to be remembered: several times what is worth handling on a strained one …
 */
const leastPart = 0.01
/** … and this many reads per second, because on a small node that fraction may be chance. */
const leastPerSecond = 200

/**
 * Remembers keys that burst. A burst of a tenth of a second every few seconds ends before the key can be handled, and
 * the mean over a window says little. On a strained node such a key is therefore handled from one burst to the next;
 * one that burst while the node was calm is handled as soon as the node no longer is.
 */
export class BurstMemory {
  readonly #bursts = new WeakMap<HeatTrack, Burst>()

  add(track: HeatTrack, { at, readsPerSecond }: Burst): Burst {
    const highest = this.recent(track, at)?.readsPerSecond ?? 0
    const burst = { at, readsPerSecond: Math.max(highest, readsPerSecond) }
    this.#bursts.set(track, burst)
    return burst
  }

  /** The last burst, unless forgotten. */
  recent(track: HeatTrack, now: number): Burst | undefined {
    const burst = this.#bursts.get(track)
    return burst !== undefined && now - burst.at <= memoryMs ? burst : undefined
  }
}

/** Reads per second kept from a node that count as a burst. */
export function leastBurst(capacityPerSecond: number): number {
  return Math.max(leastPerSecond, leastPart * capacityPerSecond)
}
