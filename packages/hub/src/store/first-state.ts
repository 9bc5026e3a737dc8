import type { HubState, HubStore } from './hub-store.ts'
import { versionBlock } from './journal.ts'

/** The initial state of a hub whose store has not answered. */
const unheard: HubState = {
  epoch: '',
  versionFloor: 0,
  isOff: false,
  rules: [],
  rulesVersion: 0,
  line: [],
  entries: [],
}

/**
 * The state that a hub starts with. A shared store that is unreachable is loaded later; a hub's own store must be
 * available.
 */
export async function loadFirstState(store: HubStore): Promise<HubState> {
  try {
    const state = await store.load()
    await store.reserveVersions(state.versionFloor + versionBlock)
    return state
  } catch (error) {
    if (store.board === undefined) throw error
    return unheard
  }
}
