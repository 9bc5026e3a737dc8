import type { NearKey } from './near-key.ts'
import type { NearKeys } from './near-keys.ts'

/** A key as it is recorded. */
export type RecordedKey = Pick<NearKey, 'redisClusterId' | 'key' | 'slot'>

/** What the hottest keys had in one second: accesses, writes, bytes, one triple per key. */
export interface RecordedSecond {
  /** Start of the second, hub time. */
  readonly at: number
  /** All accesses of the second, those of other keys too. */
  readonly total: number
  readonly keys: readonly RecordedKey[]
  readonly counts: Float64Array
}

export interface HeatRecorderOptions {
  /** @default 3600 */
  readonly maxSeconds?: number
  /** The hottest keys of each second. @default 100 */
  readonly maxKeys?: number
}

/** Remembers the hottest keys of each second of the last hour, so that a rule can be tried on the past. */
export class HeatRecorder {
  readonly #seconds: RecordedSecond[] = []
  readonly #maxSeconds: number
  readonly #maxKeys: number
  /** One name for all the seconds of a key: an hour of names of their own would take thirty megabytes. */
  readonly #names = new WeakMap<NearKey, RecordedKey>()

  constructor(options: HeatRecorderOptions = {}) {
    this.#maxSeconds = options.maxSeconds ?? 3600
    this.#maxKeys = options.maxKeys ?? 100
  }

  /** Oldest first. */
  get seconds(): readonly RecordedSecond[] {
    return this.#seconds
  }

  /** Takes down the second before the last full one, by which time its reports have come. */
  record(nearKeys: NearKeys, total: number, now: number): void {
    const second = Math.floor(now / 1000) - 2
    const found = [...nearKeys.shown()]
      .map((near) => ({ near, counts: near.lastMinute!.second(second) }))
      .filter(({ counts }) => counts.accesses > 0)
      .sort((a, b) => b.counts.accesses - a.counts.accesses || (a.near.key < b.near.key ? -1 : 1))
      .slice(0, this.#maxKeys)
    const keys = found.map(({ near }) => this.#nameOf(near))
    const counts = Float64Array.from(
      found.flatMap(({ counts: { accesses, writes, bytes } }) => [accesses, writes, bytes]),
    )
    this.#seconds.push({ at: second * 1000, total, keys, counts })
    if (this.#seconds.length > this.#maxSeconds) this.#seconds.shift()
  }

  #nameOf(near: NearKey): RecordedKey {
    let name = this.#names.get(near)
    if (name === undefined) {
      const { redisClusterId, key, slot } = near
      name = { redisClusterId, key, slot }
      this.#names.set(near, name)
    }
    return name
  }
}
