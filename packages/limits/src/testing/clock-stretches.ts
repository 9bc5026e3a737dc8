/** A part of a run in which the readings of a clock lie within one span of each other. */
interface Stretch {
  readonly fromMs: number
  toMs: number
  low: number
  high: number
}

interface Admitted {
  readonly sentAtMs: number
  readonly repliedAtMs: number
  readonly units: number
}

/** A clock is read this often at least, so that it is as far from what was noted at most. */
export const readEveryMs = 4

/**
 * What a limit admitted, held against the readings of the clock that it counts by: while those lie within one span of each
 * other, in whatever order, it admits no more than in one span of a steady clock.
 */
export class ClockStretches {
  readonly #spanMs: number
  readonly #stretches: Stretch[] = []
  readonly #admitted: Admitted[] = []

  constructor(spanMs: number) {
    this.#spanMs = spanMs - 2 * readEveryMs
  }

  read(atMs: number, reading: number): void {
    const last = this.#stretches.at(-1)
    if (last !== undefined) {
      const low = Math.min(last.low, reading)
      const high = Math.max(last.high, reading)
      if (high - low <= this.#spanMs) {
        Object.assign(last, { low, high, toMs: atMs })
        return
      }
    }
    this.#stretches.push({ fromMs: atMs, toMs: atMs, low: reading, high: reading })
  }

  admitted(sentAtMs: number, repliedAtMs: number, units: number): void {
    this.#admitted.push({ sentAtMs, repliedAtMs, units })
  }

  /** A stretch in which more was admitted than `most`, once more for each moment at which what was counted was lost. */
  excess(most: number, lostAtMs: readonly number[]): string | undefined {
    for (const { fromMs, toMs } of this.#stretches) {
      const within = this.#admitted.filter(({ sentAtMs, repliedAtMs }) => sentAtMs >= fromMs && repliedAtMs <= toMs)
      const units = within.reduce((sum, each) => sum + each.units, 0)
      const losses = lostAtMs.filter((atMs) => atMs >= fromMs && atMs <= toMs).length
      if (units > most * (1 + losses)) {
        const times = `from ${fromMs.toFixed(0)} to ${toMs.toFixed(0)} ms, with ${losses} losses`
        return `${units} units were admitted where ${most} may be, ${times}`
      }
    }
    return undefined
  }
}
