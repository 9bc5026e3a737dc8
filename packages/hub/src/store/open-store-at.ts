import { join } from 'node:path'
import type { HubStore } from './hub-store.ts'
import { openRedisStore } from './open-redis-store.ts'
import { SqliteStore } from './sqlite-store.ts'

/** Where a hub's store is. */
export type StorePlace = { readonly dataFolder: string } | { readonly storeUrl: string }

/** Opens a store without its hub, for offline commands. */
export async function openStoreAt(place: StorePlace): Promise<HubStore> {
  return 'storeUrl' in place ? openRedisStore(place.storeUrl) : new SqliteStore(join(place.dataFolder, 'hub.sqlite'))
}
