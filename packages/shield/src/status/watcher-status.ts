import type { WatcherStatus } from '@firebreak/core'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'

/** How a watcher is, for the hub. */
export function watcherStatus(redisClusterId: string, watcher: TrackingWatcher): WatcherStatus {
  return {
    redisClusterId,
    kind: watcher.state === 'fallback' ? 'fallback' : 'tracking',
    state: statusOf(watcher),
    detail: watcher.detail === '' ? watcher.node : `${watcher.node}: ${watcher.detail}`,
  }
}

function statusOf(watcher: TrackingWatcher): WatcherStatus['state'] {
  if (watcher.isExpired) return 'expired'
  if (watcher.state === 'refused') return 'refused'
  return watcher.state === 'live' || watcher.state === 'fallback' ? 'live' : 'connecting'
}
