import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** What a heat window needs to know about rules: the length of each one's window, and which keys it applies to. */
export interface WindowRules {
  /** The window length of each rule's keys; the first is for keys that no rule matches. */
  readonly windowsMs: readonly number[]
  /** The index of the rule for a key; called once per key and change of rules. */
  match(bytes: Uint8Array, start: number, end: number): number
}

/** Number of slices in a window. */
export const windowSlices = 10

/** The most rules that a key's entry can refer to. */
const maxWindowRules = 8192
/** Slice numbers have 32 bits: at this length they last for over a year. */
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

  /** Moves every rule's slice to the time since the window's origin; does nothing within the shortest slice. */
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
