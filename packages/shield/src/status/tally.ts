import type { ShieldCounters } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'

/** What is counted since the start, with its meaning. */
export const totalHelp = {
  reads: 'Reads of all keys',
  redisReads: 'Reads that Redis answered',
  writes: 'Writes of all keys',
  localHits: 'Reads answered from memory',
  copyReads: 'Reads answered from a copy',
  combined: 'Increments of hot counters merged into another command',
  limited: 'Accesses that a limit refused',
  loads: 'Replies of hot keys fetched for the cache',
  bypasses: 'Reads of hot keys that could not be answered here and went to Redis',
  invalidations: 'Cached keys dropped because they changed',
  flushes: 'Times the whole cache was dropped',
} as const

export type TotalName = keyof typeof totalHelp

/** What a cluster's shield has done since the last status. */
export class Tally {
  reads = 0
  writes = 0
  localHits = 0
  loads = 0
  /** Reads of hot keys that could not be answered here and went to Redis. */
  bypasses = 0
  invalidations = 0
  flushes = 0
  limited = 0
  copyReads = 0
  combined = 0
  /** The same since the start, up to the last status. */
  readonly totals: Record<TotalName, number> = {
    reads: 0,
    redisReads: 0,
    writes: 0,
    localHits: 0,
    copyReads: 0,
    combined: 0,
    limited: 0,
    loads: 0,
    bypasses: 0,
    invalidations: 0,
    flushes: 0,
  }
  /** The largest staleness of the last status that had one; undefined before a canary has checked. */
  staleMs: number | undefined
  #staleMs: number | undefined

  /** Adds what a hot key counted itself. */
  takeKey(hot: HotKey): void {
    this.localHits += hot.localHits
    this.loads += hot.loadCount
    this.copyReads += hot.copyReads
    this.combined += hot.combined
    this.limited += hot.limit?.limited ?? 0
    if (hot.staleMs !== undefined) this.#staleMs = Math.max(this.#staleMs ?? 0, hot.staleMs)
  }

  /** Adds this tally to a sum and resets it. */
  drainInto(sum: Record<Exclude<keyof ShieldCounters, 'droppedReports' | 'errors'>, number>): void {
    for (const name of counterNames) {
      sum[name] += this[name]
      this.totals[name] += this[name]
      this[name] = 0
    }
    // Local answers are known up to now, all reads only up to the last report, so the result is never too high.
    const { reads, localHits, copyReads, limited, redisReads } = this.totals
    this.totals.redisReads = Math.max(redisReads, reads - localHits - copyReads - limited)
    this.staleMs = this.#staleMs ?? this.staleMs
    this.#staleMs = undefined
  }
}

const counterNames = [
  'reads',
  'writes',
  'localHits',
  'loads',
  'bypasses',
  'invalidations',
  'flushes',
  'limited',
  'copyReads',
  'combined',
] as const
