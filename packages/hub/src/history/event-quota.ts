import type { HistoryEvent } from '@firebreak/core'
import { endOf, isBeginning } from './episodes.ts'

const dayMs = 86_400_000
const hourMs = 3_600_000
/** Episodes per key and rule kept for each hour: a flapping key must not displace a night of all others. */
const maxEpisodesOfHour = 20
/** What a store adds to the texts of an event. */
const fixedBytes = 90
/** The fraction of a day's bytes that may come at once, as in the minute when a sale opens. */
const burstShare = 1 / 4
/** Number of key names remembered; beyond that only bytes count. */
const maxNames = 100_000

/** The bytes of decisions that a hub may add in a day. */
export function eventBytesPerDay(maxBytesPerDay: number): number {
  return Math.floor(maxBytesPerDay / 8)
}

/**
 * Chooses which decisions to keep, so that several days fit: not the events that a key is still hot (twice a minute per
 * hot key), only the first episodes of each hour for a flapping key, and all together within the bytes of a day. An
 * episode is kept as a whole or not at all, because half of one would read as a key that never cooled. An event each
 * hour records what was left out, so that a report can say how much it does not know.
 */
export class EventQuota {
  readonly #bytesPerDay: () => number
  /** Bytes that may be written now; only events of begun episodes can take it below zero. */
  #bytes: number | undefined
  #refilledAt = 0
  #hour = 0
  /** Episodes of this hour, by key and rule. */
  readonly #episodes = new Map<string, number>()
  /** Keys whose current episode is left out. */
  readonly #leftOut = new Set<string>()
  readonly #leftOutKeys = new Set<string>()
  #leftOutEpisodes = 0
  #keptBytes = 0

  constructor(bytesPerDay: () => number) {
    this.#bytesPerDay = bytesPerDay
  }

  /** Bytes kept since the start. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  keeps(event: HistoryEvent): boolean {
    if (event.kind === 'extended') return false
    const { at, redisClusterId, key, ruleId, text } = event
    this.#refill(at)
    const id = `${redisClusterId}\u0000${key}\u0000${ruleId}`
    if (isBeginning(event) && !this.#leftOut.has(id) && !this.#mayBegin(id)) {
      if (this.#leftOut.size < maxNames) this.#leftOut.add(id)
      if (this.#leftOutKeys.size < maxNames) this.#leftOutKeys.add(`${redisClusterId}\u0000${key}`)
      this.#leftOutEpisodes++
      if (this.#leftOut.has(id)) return false
    }
    if (this.#leftOut.has(id)) {
      if (endOf(event) !== undefined) this.#leftOut.delete(id)
      return false
    }
    const bytes = fixedBytes + redisClusterId.length + key.length + ruleId.length + text.length
    this.#bytes! -= bytes
    this.#keptBytes += bytes
    return true
  }

  /** What was left out in the past hour; returned once. */
  told(now: number): HistoryEvent | undefined {
    const hour = Math.floor(now / hourMs)
    if (hour === this.#hour) return undefined
    this.#hour = hour
    this.#episodes.clear()
    const [episodes, keys] = [this.#leftOutEpisodes, this.#leftOutKeys.size]
    this.#leftOutEpisodes = 0
    this.#leftOutKeys.clear()
    return episodes === 0
      ? undefined
      : { at: now, kind: 'leftOut', redisClusterId: '', key: '', ruleId: '', text: leftOutText(episodes, keys) }
  }

  #mayBegin(id: string): boolean {
    const before = this.#episodes.get(id) ?? 0
    if (before >= maxEpisodesOfHour || this.#bytes! <= 0) return false
    if (before > 0 || this.#episodes.size < maxNames) this.#episodes.set(id, before + 1)
    return true
  }

  #refill(now: number): void {
    const perDay = this.#bytesPerDay()
    const most = perDay * burstShare
    const passedMs = Math.max(0, now - this.#refilledAt)
    this.#refilledAt = now
    this.#bytes = this.#bytes === undefined ? most : Math.min(most, this.#bytes + (perDay * passedMs) / dayMs)
  }
}

function leftOutText(episodes: number, keys: number): string {
  return `${episodes} times that ${keys === 1 ? 'a key was' : `${keys} keys were`} hot are not kept: they exceed the bound of an hour`
}

/** How many episodes such an event speaks of. */
export function leftOutEpisodes({ kind, text }: HistoryEvent): number {
  return kind === 'leftOut' ? Number(/^(\d+) /.exec(text)?.[1] ?? 0) : 0
}
