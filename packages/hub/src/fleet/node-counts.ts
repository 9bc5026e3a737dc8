/** Statuses arrive once a second; after this long a silent process no longer counts. */
const silentMs = 10_000
/** A cluster that nobody names is forgotten after this long. */
const forgottenMs = 600_000
const maxClusters = 1000
/** Processes considered per cluster: more would not improve the result. */
const maxTellers = 20

interface ClusterCount {
  readonly tellers: Map<string, { readonly count: number; readonly at: number }>
  at: number
}

/**
 * How many masters each cluster has, as its sensors see them: the lower median, so that one process that is wrong or
 * lies cannot move it beyond what others report.
 */
export class NodeCounts {
  readonly #clusters = new Map<string, ClusterCount>()

  add(redisClusterId: string, processId: string, count: number, now: number): void {
    const known = this.#clusters.get(redisClusterId)
    if (known === undefined && this.#clusters.size >= maxClusters) return
    const { tellers } = known ?? { tellers: new Map() }
    for (const [id, { at }] of tellers) if (now - at > silentMs) tellers.delete(id)
    if (tellers.has(processId) || tellers.size < maxTellers) tellers.set(processId, { count, at: now })
    this.#clusters.set(redisClusterId, { tellers, at: now })
  }

  /** 1 if no sensor has reported it. */
  of(redisClusterId: string): number {
    const { tellers } = this.#clusters.get(redisClusterId) ?? { tellers: new Map<string, { count: number }>() }
    const counts = [...tellers.values()].map(({ count }) => count).sort((a, b) => a - b)
    return counts[Math.floor((counts.length - 1) / 2)] ?? 1
  }

  /** Called once a second. */
  forget(now: number): void {
    for (const [id, { at }] of this.#clusters) if (now - at > forgottenMs) this.#clusters.delete(id)
  }
}
