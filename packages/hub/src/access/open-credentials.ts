import { join } from 'node:path'
import { systemRuntime } from '@firebreak/core'
import { openRedisStore } from '../store/open-redis-store.ts'
import { SqliteStore } from '../store/sqlite-store.ts'
import { CredentialBook } from './credential-book.ts'

/** The tokens of a store without a hub: for the first admin, who has no token to ask a hub with. */
export async function openCredentials(place: { readonly dataFolder: string } | { readonly storeUrl: string }) {
  const store =
    'storeUrl' in place ? await openRedisStore(place.storeUrl) : new SqliteStore(join(place.dataFolder, 'hub.sqlite'))
  const { clock } = systemRuntime
  const book = new CredentialBook({
    store,
    runtime: systemRuntime,
    logger: { info() {}, warn() {} },
    audit: (who, what, before, after) => store.appendAudit({ at: clock.now(), who, what, before, after }),
    fixed: [],
  })
  await book.open()
  return { book, close: () => store.close() }
}
