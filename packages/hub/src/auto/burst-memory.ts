import type { HeatTrack } from '../heat/heat-track.ts'

/** When a key last took much of its node for a moment, and how much at most. */
export interface Burst {
  readonly at: number
  readonly readsPerSecond: number
}

/** A burst is remembered for this long. */
const memoryMs = 60_000
/** A key has to take this part of its node to be remembered: several times what is worth handling on a strained one … */
const leastPart = 0.01
/** … and so many reads a second, because on a small node that part may be chance. */
const leastPerSecond = 200

/**
 * Remembers keys that burst. One that burns for a tenth of a second every few seconds is over each time before it was
 * handled, and its mean over a window says little: on a strained node it is therefore handled from one burst to the
 * next, and one that burst while the node was calm as soon as the node no longer is.
 */
export class BurstMemory {
  readonly #bursts = new WeakMap<HeatTrack, Burst>()

  add(track: HeatTrack, { at, readsPerSecond }: Burst): Burst {
    const highest = this.recent(track, at)?.readsPerSecond ?? 0
    const burst = { at, readsPerSecond: Math.max(highest, readsPerSecond) }
    this.#bursts.set(track, burst)
    return burst
  }

  /** The last one, unless it is forgotten. */
  recent(track: HeatTrack, now: number): Burst | undefined {
    const burst = this.#bursts.get(track)
    return burst !== undefined && now - burst.at <= memoryMs ? burst : undefined
  }
}

/** Reads a second kept from a node that make a burst. */
export function leastBurst(capacityPerSecond: number): number {
  return Math.max(leastPerSecond, leastPart * capacityPerSecond)
}
