import { systemRuntime } from '@firebreak/core'
import { openStoreAt, type StorePlace } from '../store/open-store-at.ts'
import { CredentialBook } from './credential-book.ts'

/** Opens a store's tokens without a hub: for the first admin, who has no token to use with a hub. */
export async function openCredentials(place: StorePlace) {
  const store = await openStoreAt(place)
  const { clock } = systemRuntime
  const book = new CredentialBook({
    store,
    runtime: systemRuntime,
    logger: { info() {}, warn() {} },
    audit: (who, what, before, after) => store.appendAudit({ at: clock.now(), who, what, before, after }),
    fixed: [],
  })
  try {
    await book.open()
  } catch (error) {
    // A store that does not answer goes on connecting, which would keep the process.
    await store.close()
    throw error
  }
  return { book, close: () => store.close() }
}
