import { type Trace, zipfTrace } from './trace.ts'

/** A Zipf trace whose hot keys do not stay hot. */
export interface RestlessOptions {
  readonly requests: number
  readonly keyCount: number
  readonly exponent: number
  /** After this many requests all keys swap places, so that other ones are hot. @default never */
  readonly moveEvery?: number
  /** The fraction of requests that go to keys in a burst. @default 0 */
  readonly burstShare?: number
  /** The number of keys in a burst at one time … @default 1 */
  readonly burstKeys?: number
  /** … for this many requests of the trace, and then no longer. @default 100000 */
  readonly burstLength?: number
  readonly seed?: number
}

/** Requests, some of which are moved from where Zipf would put them; deterministic for the same arguments. */
export function restlessTrace(options: RestlessOptions): Trace {
  const { requests, keyCount, exponent, moveEvery = requests, burstShare = 0, burstKeys = 1 } = options
  const { burstLength = 100_000, seed = 42 } = options
  const plain = zipfTrace(requests, keyCount, exponent, seed)
  const ids = new Uint32Array(requests)
  let drawn = 0
  for (let index = 0; index < requests; index++) {
    const era = Math.floor(index / moveEvery)
    drawn += burstShare
    if (drawn >= 1) {
      drawn--
      // Separate keys, which nobody touches before or after.
      const burst = Math.floor(index / burstLength) * burstKeys
      ids[index] = keyCount + burst + (index % burstKeys)
    } else {
      ids[index] = (plain.ids[index]! + era * 7919) % keyCount
    }
  }
  const burstCount = burstShare > 0 ? Math.ceil(requests / burstLength) * burstKeys : 0
  const burstNames = Array.from({ length: burstCount }, (_, index) => `burst:${index}`)
  const name = `restless-${exponent}-${moveEvery}-${burstShare}x${burstKeys}`
  return { name, isGenerated: true, ids, keys: [...plain.keys, ...burstNames] }
}
