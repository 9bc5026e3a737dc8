import type { ShieldCounters } from '@firebreak/core'
import type { HotKey } from '../cache/hot-key.ts'

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

  /** Takes over what a hot key counted itself. */
  takeKey(hot: HotKey): void {
    this.localHits += hot.localHits
    this.loads += hot.loadCount
    this.copyReads += hot.copyReads
  }

  /** Adds this tally to a sum and starts anew. */
  drainInto(sum: Record<Exclude<keyof ShieldCounters, 'droppedReports' | 'errors'>, number>): void {
    for (const name of counterNames) {
      sum[name] += this[name]
      this[name] = 0
    }
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
