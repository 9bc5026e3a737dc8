import type { Runtime } from '@firebreak/core'
import type { DiskTier } from '../disk/disk-tier.ts'
import type { KeyLimits } from '../limit/key-limits.ts'
import type { Trouble } from '../trouble/trouble.ts'
import type { ClusterWatchers } from '../watcher/cluster-watchers.ts'
import type { Guards } from './guard.ts'
import type { KeptKeys, TouchedKeys } from './key-lists.ts'
import type { ReplyCaches } from './reply-caches.ts'

/** What all hot keys of one Redis share. */
export interface SharedByKeys {
  readonly redisClusterId: string
  /** Identifies this process in the fleet. */
  readonly processId: string
  /** False while the kill switch is on. */
  readonly isActive: () => boolean
  readonly runtime: Runtime
  readonly trouble: Trouble
  /** Reads the keys and reports changes. */
  readonly watchers: Pick<ClusterWatchers, 'at'>
  readonly guards: Guards
  /** Bounds the replies in memory. */
  readonly caches: ReplyCaches
  /** The keys that keep replies. */
  readonly kept: KeptKeys
  /** The keys with counts. */
  readonly touched: TouchedKeys
  readonly limits: Pick<KeyLimits, 'of' | 'leave'>
  /** Takes replies that do not fit in memory. */
  readonly diskTier: DiskTier | undefined
}
