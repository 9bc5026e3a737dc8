/**
 * Rules out most cold names with one look at a byte. In a `Map` of 100,000 names a cold access costs several cache
 * misses: the bucket, each entry in its chain, and each of their strings, which are compared by their hashes.
 *
 * Each name counts at one of 2^20 places, so it can be removed again and nothing is ever rebuilt. With 100,000 names
 * one cold name in ten falls on an occupied place and pays for the map as well. A saturated place stays so.
 */
export class NameFilter {
  readonly #counts = new Uint8Array(placeCount)

  /** False if the name was certainly not added. */
  mayHave(name: string): boolean {
    return this.#counts[placeOf(name)] !== 0
  }

  add(name: string): void {
    const place = placeOf(name)
    if (this.#counts[place]! < full) this.#counts[place]!++
  }

  /** Removes a name that was added. */
  remove(name: string): void {
    const place = placeOf(name)
    if (this.#counts[place]! < full) this.#counts[place]!--
  }
}

const placeCount = 2 ** 20
const full = 255
/** For long names, only the ends are hashed; what differs most often is the last part. */
const firstChars = 8
const lastChars = 32

function placeOf(name: string): number {
  const { length } = name
  let hash = length
  const rest = length - lastChars
  for (let at = 0; at < rest && at < firstChars; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x9e3779b1)
  for (let at = Math.max(rest, 0); at < length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x9e3779b1)
  // The high bits are the mixed ones.
  return (hash ^ (hash >>> 15)) >>> 12
}
