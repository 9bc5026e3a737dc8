import type { StatusPayload } from '@firebreak/core'
import type { ClusterShield } from '../cluster-shield.ts'

/** What the process itself adds to a status. */
export interface StatusHead {
  readonly sentAt: number
  readonly epoch: string
  readonly version: number
  readonly isOff: boolean
  readonly droppedReports: number
  readonly errors: number
  readonly troubles: NonNullable<StatusPayload['troubles']>
}

/** Keys whose copies one status reports. */
const maxCopies = 1000

/** What the shields of all clusters have done since the last status; resets their tallies. */
export function buildStatus(clusters: Iterable<ClusterShield>, head: StatusHead): StatusPayload {
  const { droppedReports, errors, troubles, ...identity } = head
  const counters = {
    reads: 0,
    writes: 0,
    localHits: 0,
    loads: 0,
    bypasses: 0,
    invalidations: 0,
    flushes: 0,
    limited: 0,
    copyReads: 0,
    combined: 0,
    droppedReports,
    errors,
  }
  const keys = []
  const watchers = []
  const copies = []
  const nodeCounts: Record<string, number> = {}
  let cachedBytes = 0
  for (const cluster of clusters) {
    keys.push(...cluster.takeEffects())
    cluster.tally.drainInto(counters)
    copies.push(...cluster.takePlacedCopies())
    watchers.push(...cluster.watcherStatuses())
    nodeCounts[cluster.redisClusterId] = cluster.nodeCount
    cachedBytes += cluster.caches.bytes
  }
  return {
    ...identity,
    counters,
    keys,
    watchers,
    nodeCounts,
    cachedBytes,
    ...(troubles.length > 0 && { troubles }),
    ...(copies.length > 0 && { copies: copies.slice(0, maxCopies) }),
  }
}
