import { type Trace, zipfTrace } from './trace.ts'

/** A Zipf trace whose hot keys do not stay hot. */
export interface RestlessOptions {
  readonly requests: number
  readonly keyCount: number
  readonly exponent: number
  /** After so many requests all keys change places: other ones are hot. @default never */
  readonly moveEvery?: number
  /** What part of the requests goes to keys in a burst. @default 0 */
  readonly burstShare?: number
  /** So many keys are in a burst at one time … @default 1 */
  readonly burstKeys?: number
  /** … for so many requests of the trace, and then no more. @default 100000 */
  readonly burstLength?: number
  readonly seed?: number
}

/** Requests of which some are moved from where Zipf would put them; the same for the same arguments. */
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
      // Keys of their own, which nobody touches before or after.
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
