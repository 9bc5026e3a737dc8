import type { WatcherStatus } from '@firebreak/core'
import type { KeySpace } from '../gate/key-space.ts'
import { TrackingWatcher, type TrackingWatcherOptions } from './tracking-watcher.ts'

/** What all watchers of a Redis have in common, and their callbacks. */
export interface ClusterWatchersOptions extends Omit<TrackingWatcherOptions, 'node' | 'upstream' | 'onFlush'> {
  /** Everything that was read from this node must be dropped. */
  readonly onNodeLost: (node: string) => void
}

/** The watchers of one Redis: one for each node and each identity that hot keys are read as. */
export class ClusterWatchers {
  readonly #options: ClusterWatchersOptions
  readonly #watchers = new Map<string, TrackingWatcher>()

  constructor(options: ClusterWatchersOptions) {
    this.#options = options
  }

  /** The watcher of the node that owns a slot; undefined while unknown. */
  at(space: KeySpace, slot: number): TrackingWatcher | undefined {
    const node = space.upstream.nodeOf(slot)
    return node === undefined ? undefined : this.of(space, node)
  }

  /** The watcher of a node, reading as the space's identity. */
  of(space: KeySpace, node: string): TrackingWatcher {
    const id = `${space.identity} ${node}`
    let watcher = this.#watchers.get(id)
    if (watcher === undefined) {
      const { onNodeLost } = this.#options
      watcher = new TrackingWatcher({
        ...this.#options,
        node,
        upstream: space.upstream,
        onFlush: () => onNodeLost(node),
      })
      this.#watchers.set(id, watcher)
    }
    return watcher
  }

  /** Ends the watchers that read as an identity. */
  forget(identityId: string): void {
    for (const [id, watcher] of this.#watchers) {
      if (!id.startsWith(`${identityId} `)) continue
      this.#watchers.delete(id)
      watcher.stop()
    }
  }

  /** Lets the unused ones rest. */
  setUsed(used: ReadonlySet<TrackingWatcher>): void {
    for (const watcher of this.#watchers.values()) watcher.setIdle(!used.has(watcher))
  }

  statuses(redisClusterId: string, isLaneAlive: boolean): WatcherStatus[] {
    return [...this.#watchers.values()].map((watcher) => watcherStatus(redisClusterId, watcher, isLaneAlive))
  }

  stop(): void {
    for (const watcher of this.#watchers.values()) watcher.stop()
    this.#watchers.clear()
  }
}

/** A watcher's state, for the hub; if tracking is refused, the hub's lane may guard instead. */
function watcherStatus(redisClusterId: string, watcher: TrackingWatcher, isLaneAlive: boolean): WatcherStatus {
  return {
    redisClusterId,
    kind: watcher.state !== 'fallback' ? 'tracking' : isLaneAlive ? 'lane' : 'fallback',
    state: statusOf(watcher),
    detail: watcher.detail === '' ? watcher.node : `${watcher.node}: ${watcher.detail}`,
  }
}

function statusOf(watcher: TrackingWatcher): WatcherStatus['state'] {
  if (watcher.isExpired) return 'expired'
  if (watcher.state === 'refused') return 'refused'
  return watcher.state === 'live' || watcher.state === 'fallback' ? 'live' : 'connecting'
}
