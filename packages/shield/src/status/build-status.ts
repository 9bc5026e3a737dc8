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
}

/** What the shields of all clusters did since the last status; their tallies start over. */
export function buildStatus(clusters: Iterable<ClusterShield>, head: StatusHead): StatusPayload {
  const { droppedReports, errors, ...identity } = head
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
    droppedReports,
    errors,
  }
  const keys = []
  const watchers = []
  const nodeCounts: Record<string, number> = {}
  for (const cluster of clusters) {
    keys.push(...cluster.takeEffects())
    cluster.tally.drainInto(counters)
    watchers.push(...cluster.watcherStatuses())
    nodeCounts[cluster.redisClusterId] = cluster.nodeCount
  }
  return { ...identity, counters, keys, watchers, nodeCounts }
}
