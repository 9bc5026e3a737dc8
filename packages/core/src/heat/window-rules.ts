import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { checkHeatThresholds, type HeatThresholds } from './heat-state.ts'

/** How much one access, write and byte add to a key's heat. Reads are accesses that are no writes. */
export interface HeatWeights {
  readonly perAccess: number
  readonly perWrite: number
  readonly perByte: number
}

/** The weights of a single measure. */
export const measureWeights: Record<'accesses' | 'reads' | 'writes' | 'bytes', HeatWeights> = {
  accesses: { perAccess: 1, perWrite: 0, perByte: 0 },
  reads: { perAccess: 1, perWrite: -1, perByte: 0 },
  writes: { perAccess: 0, perWrite: 1, perByte: 0 },
  bytes: { perAccess: 0, perWrite: 0, perByte: 1 },
}

/** What a heat window has to know of a rule. */
export interface WindowRule {
  readonly windowMs: number
  /** @default accesses */
  readonly weights?: HeatWeights
  readonly thresholds: HeatThresholds
  /** From this heat on, writes, bytes and hosts of the key are kept. @default `thresholds.warm` */
  readonly candidateAt?: number
}

/** The rules of a heat window. */
export interface WindowRules {
  /** `rules[0]` is for the keys that no rule names; its levels may be empty. */
  readonly rules: readonly WindowRule[]
  /** The index of the rule for a key; asked once per key and change of rules. */
  match(bytes: Uint8Array, start: number, end: number): number
}

/** Rules that a key's entry has room for. */
export const maxWindowRules = 8192

/** Slices are numbered with 32 bits: at this length they last for over a year. */
const minSliceMs = 20

/** Rules unpacked into columns, for a loop that must not chase objects. */
export class CompiledRules {
  readonly source: WindowRules
  readonly sliceMs: Float64Array
  readonly perAccess: Float64Array
  readonly perWrite: Float64Array
  readonly perByte: Float64Array
  readonly candidateAt: Float64Array
  /** The current slice of each rule, and its place in the ring. */
  readonly slice: Int32Array
  readonly place: Int32Array
  readonly #slices: number
  #nextBoundaryMs = Number.NEGATIVE_INFINITY

  constructor(source: WindowRules, slices: number) {
    const { rules } = source
    const { length } = rules
    if (length < 1 || length > maxWindowRules) {
      throw new InvalidOptionError('rules', length, `from 1 to ${maxWindowRules} rules, the first for all other keys`)
    }
    this.source = source
    this.#slices = slices
    this.sliceMs = Float64Array.from(rules, ({ windowMs }) => windowMs / slices)
    this.perAccess = Float64Array.from(rules, ({ weights = measureWeights.accesses }) => weights.perAccess)
    this.perWrite = Float64Array.from(rules, ({ weights = measureWeights.accesses }) => weights.perWrite)
    this.perByte = Float64Array.from(rules, ({ weights = measureWeights.accesses }) => weights.perByte)
    this.candidateAt = Float64Array.from(rules, candidateLevel)
    this.slice = new Int32Array(length)
    this.place = new Int32Array(length)
    for (const { windowMs, thresholds } of rules) {
      if (!(windowMs >= slices * minSliceMs)) {
        throw new InvalidOptionError('windowMs', windowMs, `at least ${slices * minSliceMs}, for ${slices} slices`)
      }
      checkHeatThresholds(thresholds)
    }
  }

  rule(index: number): WindowRule {
    return this.source.rules[index]!
  }

  /** Moves every rule's slice to the time since the window's origin; nothing to do within the shortest slice. */
  moveTo(elapsedMs: number): void {
    if (elapsedMs < this.#nextBoundaryMs) return
    let next = Number.POSITIVE_INFINITY
    for (let rule = 0; rule < this.slice.length; rule++) {
      const sliceMs = this.sliceMs[rule]!
      const slice = Math.floor(elapsedMs / sliceMs)
      this.slice[rule] = slice
      this.place[rule] = slice % this.#slices
      next = Math.min(next, (slice + 1) * sliceMs)
    }
    this.#nextBoundaryMs = next
  }

  /** True where a ring counted under the other rule goes on as it is under this one. */
  continues(rule: number, before: CompiledRules, ruleBefore: number): boolean {
    return this.sliceMs[rule] === before.sliceMs[ruleBefore] && this.hasWeightsOf(rule, before, ruleBefore)
  }

  hasWeightsOf(rule: number, before: CompiledRules, ruleBefore: number): boolean {
    return (
      this.perAccess[rule] === before.perAccess[ruleBefore] &&
      this.perWrite[rule] === before.perWrite[ruleBefore] &&
      this.perByte[rule] === before.perByte[ruleBefore]
    )
  }
}

function candidateLevel({ candidateAt, thresholds }: WindowRule): number {
  const lowest = thresholds.levels[0]?.enter ?? Number.POSITIVE_INFINITY
  return Math.min(candidateAt ?? thresholds.warm ?? lowest / 2, lowest)
}
