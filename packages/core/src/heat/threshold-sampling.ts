import { InvalidOptionError } from '../errors/firebreak-error.ts'

/**
 * Few rows without a floor: *threshold sampling*.
 *
 * A key that is hot across a thousand hosts is cold on each of them, so a host may not drop its small counts, but
 * sending them all floods the hub. Instead, with a factor f, a count n ≥ f is sent unchanged, and a count n < f is sent
 * as f with probability n / f and otherwise not at all. The expected value sent is f · n / f = n: **every sum stays
 * unbiased**, over hosts, over intervals, and for any set of keys. A host with N accesses in an interval sends at most
 * N / f rows on average.
 *
 * The price is variance: a count n < f contributes n · (f - n), so a key whose N accesses arrived one at a time has a
 * standard deviation of √(N · (f - 1)). Hence f is bounded by the lowest threshold T that applies: with f ≤ 1 + T / 96,
 * a key at 1.5 · T is √(96 · (0.5)² / 1.5) = 4 standard deviations above T at T = 96 (f = 2), and no closer at larger
 * T, since both sides of that ratio grow alike. (At T = 100 and f = 5 it would be missed in 2 % of windows.)
 *
 * Counts are whole numbers: if f has a fraction, it is rounded at random, up with the probability of the fraction. So
 * are the writes and bytes of a sampled key, scaled by the same f / n. Both keep the mean.
 */
export class ThresholdSampler {
  readonly #random: () => number
  #factor = 1
  /** What to send for the last count; 0 means nothing. */
  count = 0
  writes = 0
  bytes = 0

  /** `random` returns numbers in [0, 1). */
  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  /** The factor f; at 1 everything is sent unchanged. */
  get factor(): number {
    return this.#factor
  }

  set factor(factor: number) {
    if (!(factor >= 1 && factor < 2 ** 31)) throw new InvalidOptionError('factor', factor, 'from 1 to 2^31')
    this.#factor = factor
  }

  /**
   * Decides on one key's counts; returns true if they should be sent, with the values in `count`, `writes` and `bytes`.
   */
  sample(count: number, writes: number, bytes: number): boolean {
    const factor = this.#factor
    if (count >= factor) {
      this.count = count
      this.writes = writes
      this.bytes = bytes
      return true
    }
    if (this.#random() * factor >= count) {
      this.count = 0
      this.writes = 0
      this.bytes = 0
      return false
    }
    this.count = this.#roundAtRandom(factor)
    // If not everything is a write, it rounds to at most the count: with writes ≤ count - 1, writes · f / count < f -
    // 1.
    this.writes = writes === count ? this.count : this.#roundAtRandom((writes * factor) / count)
    this.bytes = this.#roundAtRandom((bytes * factor) / count)
    return true
  }

  #roundAtRandom(value: number): number {
    const whole = Math.floor(value)
    return whole === value || this.#random() >= value - whole ? whole : whole + 1
  }
}

/** The largest factor at which a key at 1.5 × the threshold is still found: f ≤ 1 + T / 96. */
export function maxSamplingFactor(lowestThreshold: number): number {
  return Number.isFinite(lowestThreshold) ? 1 + Math.max(0, lowestThreshold) / 96 : 1
}

/** The part of a rule's level that determines how much noise a hot key can tolerate. */
export interface SampledLevel {
  readonly measure: string
  readonly enter: number
  readonly exit: number
  readonly enterShare?: number
}

/** How much more variance the counts of a hot key may have. */
const hotVariance = 1.5

/**
 * The factor for keys that are already hot: 1 + 1.5 · (f - 1).
 *
 * A cold key is missed if noise hides its crossing, and it has a margin of 0.5 · T for that (above). A hot one is lost
 * only if noise takes it below its exit level: at 1.5 · T and an exit of 0.7 · T the margin is 0.8 · T, or √(96 · 0.8²
 * / (1.5 · 1.5)) = 5.2 standard deviations, and 4.6 at the highest exit for which this is done, 0.8 · T. A next level
 * counts as a threshold of its own, so it must be 1.5 times as high. Nothing is known here about shares, writes and
 * bytes, and their keys are sampled like cold ones.
 *
 * It is worth it: some 350 hot keys have a quarter of the accesses, so fewer rows for them are what keeps 1,000 hosts
 * within 20 rows a flush at T = 131, where f alone may not rise any further (`npm run -s bench -- detect`).
 */
export function hotSamplingFactor(factor: number, levels: readonly SampledLevel[]): number {
  const isRoomy = levels.every(({ measure, enter, exit, enterShare }, index) => {
    const before = levels[index - 1]
    const isApart = before === undefined || enter >= hotVariance * before.enter
    return measure === 'accesses' && enterShare === undefined && exit <= 0.8 * enter && isApart
  })
  return isRoomy ? 1 + hotVariance * (factor - 1) : factor
}

/** The result of a factor, and what the hub can handle. */
export interface SamplingLoad {
  /** The factor that hosts sampled with; `maxSamplingFactor` initially. */
  readonly factor: number
  /** Average number of rows that a host sent in an interval. */
  readonly rows: number
  /** Rows that it should send at most. */
  readonly maxRows: number
  /** The lowest threshold that applies to any key. */
  readonly lowestThreshold: number
}

/**
 * The next factor: as much noise as the hub's load requires, and no more than the lowest threshold tolerates.
 *
 * The rows fall with the factor as f^-a, where a is between 0 (every count is at or above f) and 1 (every count is
 * one). So f · rows / maxRows is a contraction towards the factor that gives the desired rows; for single counts it
 * gets there in one step. When all rows are wanted anyway, it falls to 1 and everything is exact.
 */
export function nextSamplingFactor({ factor, rows, maxRows, lowestThreshold }: SamplingLoad): number {
  const wanted = (factor * rows) / Math.max(1, maxRows)
  return Math.max(1, Math.min(wanted, maxSamplingFactor(lowestThreshold)))
}
