import type { WatcherStatus } from '@firebreak/core'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'

/** How a watcher is, for the hub; where tracking is refused, the hub's lane may guard instead. */
export function watcherStatus(redisClusterId: string, watcher: TrackingWatcher, isLaneAlive: boolean): WatcherStatus {
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
