import type { HeatTrack } from '../heat/heat-track.ts'

/**
 * When each key is next evaluated: buckets of `granularityMs`, a key in the bucket of its time.
 *
 * A key's first report arms its evaluation after `settleMs` plus a random part of `settleJitterMs`, so that every host
 * has reported by then and evaluations never come all at once. A key is armed once at a time.
 */
export class EvaluationSchedule {
  readonly #buckets = new Map<number, HeatTrack[]>()
  readonly #granularityMs: number
  #drainedTo: number | undefined

  constructor(granularityMs: number) {
    this.#granularityMs = granularityMs
  }

  arm(track: HeatTrack, at: number): void {
    if (track.evaluateAt !== 0) return
    track.evaluateAt = at
    // Rounded up: never before its time.
    const bucket = Math.ceil(at / this.#granularityMs)
    const tracks = this.#buckets.get(bucket)
    if (tracks === undefined) this.#buckets.set(bucket, [track])
    else tracks.push(track)
  }

  /** The tracks whose time has come, each disarmed. */
  *due(now: number): Generator<HeatTrack> {
    const last = Math.floor(now / this.#granularityMs)
    const isFar = this.#drainedTo === undefined || last - this.#drainedTo > this.#buckets.size
    const due = isFar
      ? [...this.#buckets.keys()].filter((bucket) => bucket <= last).sort((a, b) => a - b)
      : Array.from({ length: last - this.#drainedTo! }, (_, index) => this.#drainedTo! + 1 + index)
    this.#drainedTo = last
    for (const bucket of due) {
      const tracks = this.#buckets.get(bucket)
      this.#buckets.delete(bucket)
      for (const track of tracks ?? []) {
        track.evaluateAt = 0
        yield track
      }
    }
  }
}
