import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** What a heat window has to know of rules: how long each of them counts, and which keys it is for. */
export interface WindowRules {
  /** The length of the window of each rule's keys; the first is for the keys that no rule names. */
  readonly windowsMs: readonly number[]
  /** The index of the rule for a key; asked once per key and change of rules. */
  match(bytes: Uint8Array, start: number, end: number): number
}

/** Slices of a window. */
export const windowSlices = 10

/** Rules that a key's entry has room for. */
const maxWindowRules = 8192
/** Slices are numbered with 32 bits: at this length they last for over a year. */
const minSliceMs = 20

/** The current slice of each rule, in columns, for a loop that must not chase objects. */
export class RuleSlices {
  readonly rules: WindowRules
  readonly sliceMs: Float64Array
  readonly slice: Int32Array
  /** The slice's place in a ring. */
  readonly place: Int32Array
  #nextBoundaryMs = Number.NEGATIVE_INFINITY

  constructor(rules: WindowRules) {
    const { windowsMs } = rules
    const { length } = windowsMs
    if (length < 1 || length > maxWindowRules) {
      throw new InvalidOptionError('rules', length, `from 1 to ${maxWindowRules} rules, the first for all other keys`)
    }
    const shortest = Math.min(...windowsMs)
    if (!(shortest >= windowSlices * minSliceMs)) {
      throw new InvalidOptionError('windowMs', shortest, `at least ${windowSlices * minSliceMs}`)
    }
    this.rules = rules
    this.sliceMs = Float64Array.from(windowsMs, (windowMs) => windowMs / windowSlices)
    this.slice = new Int32Array(length)
    this.place = new Int32Array(length)
  }

  /** Moves every rule's slice to the time since the window's origin; nothing to do within the shortest slice. */
  moveTo(elapsedMs: number): void {
    if (elapsedMs < this.#nextBoundaryMs) return
    let next = Number.POSITIVE_INFINITY
    for (let rule = 0; rule < this.slice.length; rule++) {
      const sliceMs = this.sliceMs[rule]!
      const slice = Math.floor(elapsedMs / sliceMs)
      this.slice[rule] = slice
      this.place[rule] = slice % windowSlices
      next = Math.min(next, (slice + 1) * sliceMs)
    }
    this.#nextBoundaryMs = next
  }
}
