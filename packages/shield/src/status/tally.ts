import type { ShieldCounters } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'

/** What is known since the start, and what it means. */
export const totalHelp = {
  reads: 'Reads of all keys',
  redisReads: 'Reads that Redis answered',
  writes: 'Writes of all keys',
  localHits: 'Reads answered from memory',
  copyReads: 'Reads answered by a copy',
  limited: 'Accesses that a limit refused',
  loads: 'Replies of hot keys that were fetched to be kept',
  bypasses: 'Reads of hot keys that could not be answered here and went to Redis',
  invalidations: 'Hot keys dropped because they had changed',
  flushes: 'Times that everything was dropped',
} as const

export type TotalName = keyof typeof totalHelp

/** What a cluster's shield did since the last status. */
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
  /** The same since the start, up to the last status. */
  readonly totals: Record<TotalName, number> = {
    reads: 0,
    redisReads: 0,
    writes: 0,
    localHits: 0,
    copyReads: 0,
    limited: 0,
    loads: 0,
    bypasses: 0,
    invalidations: 0,
    flushes: 0,
  }
  /** The largest staleness of the last status that had one; undefined before a canary has looked. */
  staleMs: number | undefined
  #staleMs: number | undefined

  /** Takes over what a hot key counted itself. */
  takeKey(hot: HotKey): void {
    this.localHits += hot.localHits
    this.loads += hot.loadCount
    this.copyReads += hot.copyReads
    this.limited += hot.limit?.limited ?? 0
    if (hot.staleMs !== undefined) this.#staleMs = Math.max(this.#staleMs ?? 0, hot.staleMs)
  }

  /** Adds this tally to a sum and starts over. */
  drainInto(sum: Record<Exclude<keyof ShieldCounters, 'droppedReports' | 'errors'>, number>): void {
    for (const name of counterNames) {
      sum[name] += this[name]
      this.totals[name] += this[name]
      this[name] = 0
    }
    // What was answered here is known to this moment, all reads only to the last report: it is never too much.
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
] as const
