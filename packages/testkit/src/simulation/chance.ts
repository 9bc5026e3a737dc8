/**
 * A source of chance that gives the same row for the same seed (sfc32: 128 bits of state, so that the rows of two names
 * do not overlap).
 *
 * `fork(name)` gives a source of its own that depends on the seed and the name alone, not on how often anybody has drawn
 * before: taking a fault out of a schedule does not change the workload, which is what lets a schedule be shrunk.
 */
export class Chance {
  readonly #seed: string
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number | string) {
    this.#seed = String(seed)
    this.#a = hash32(this.#seed, 0x9e3779b9)
    this.#b = hash32(this.#seed, 0x243f6a88)
    this.#c = hash32(this.#seed, 0xb7e15162)
    // The first numbers still resemble the seed.
    for (let round = 0; round < 12; round++) this.word()
  }

  fork(name: string): Chance {
    return new Chance(`${this.#seed}/${name}`)
  }

  /** 32 random bits. */
  word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** A number from 0 up to, but not including, 1. Bound, so that it can be handed on as it is. */
  readonly next = (): number => this.word() / 4_294_967_296

  /** A whole number from 0 up to, but not including, `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  /** A number between the two, whole to the microsecond where it is milliseconds. */
  between(from: number, to: number): number {
    return from === to ? from : Math.round((from + this.next() * (to - from)) * 1000) / 1000
  }

  happens(probability: number): boolean {
    return probability > 0 && this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new RangeError('pick from an empty list')
    return list[this.below(list.length)]!
  }

  /** Fills memory with random bytes. */
  fill(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index++) bytes[index] = this.word() >>> 24
  }

  /** A version 4 UUID. */
  readonly newId = (): string => {
    const hex = (digits: number): string => {
      let text = ''
      while (text.length < digits) text += this.word().toString(16).padStart(8, '0')
      return text.slice(0, digits)
    }
    return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`
  }
}

/** FNV-1a with murmur's finish: near seeds give far states. */
function hash32(text: string, basis: number): number {
  let hash = basis | 0
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
