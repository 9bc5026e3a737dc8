import type { Runtime } from '@firebreak/core'
import type { DiskTier } from '../disk/disk-tier.ts'
import type { KeyLimits } from '../limit/key-limits.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { ClusterWatchers } from '../watcher/cluster-watchers.ts'
import type { Guards } from './guard.ts'
import type { KeptKeys, TouchedKeys } from './key-lists.ts'
import type { ReplyCaches } from './reply-caches.ts'

/** What all hot keys of one Redis work with. */
export interface SharedByKeys {
  readonly redisClusterId: string
  /** Names this process among those of the fleet. */
  readonly processId: string
  readonly runtime: Runtime
  readonly trouble: Trouble
  /** Who reads the keys, and tells of changes. */
  readonly watchers: Pick<ClusterWatchers, 'at'>
  readonly guards: Guards
  /** What bounds the replies in memory. */
  readonly caches: ReplyCaches
  /** The keys that keep replies. */
  readonly kept: KeptKeys
  /** The keys of which something was counted. */
  readonly touched: TouchedKeys
  readonly limits: Pick<KeyLimits, 'of'>
  /** Where replies go that memory has no room for. */
  readonly diskTier: DiskTier | undefined
}
