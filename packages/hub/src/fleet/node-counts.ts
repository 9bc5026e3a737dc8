/** Statuses come once a second; who has been silent for this long says nothing any more. */
const silentMs = 10_000
/** A cluster that nobody speaks of is forgotten after this long. */
const forgottenMs = 600_000
const maxClusters = 1000
/** Processes that are asked of one cluster: more do not make it truer. */
const maxTellers = 20

interface ClusterCount {
  readonly tellers: Map<string, { readonly count: number; readonly at: number }>
  at: number
}

/**
 * How many masters each cluster has, as its sensors see them. The lower median of what processes say: one that is wrong, or
 * lies, moves it no further than the others do.
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

  /** 1 where no sensor has told. */
  of(redisClusterId: string): number {
    const { tellers } = this.#clusters.get(redisClusterId) ?? { tellers: new Map<string, { count: number }>() }
    const counts = [...tellers.values()].map(({ count }) => count).sort((a, b) => a - b)
    return counts[Math.floor((counts.length - 1) / 2)] ?? 1
  }

  /** Once a second. */
  forget(now: number): void {
    for (const [id, { at }] of this.#clusters) if (now - at > forgottenMs) this.#clusters.delete(id)
  }
}
