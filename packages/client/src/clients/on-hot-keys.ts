import type { ClusterShield } from '@firebreak/shield'

/** Each client's listeners, held only by the client. */
const listeners = new WeakMap<object, Set<() => void>>()
const forgotten = new FinalizationRegistry<() => void>((stop) => stop())

/**
 * Calls back whenever a key becomes hot or stops being hot, for as long as the client lives: a cluster's shield must
 * not keep it alive. The returned function unsubscribes.
 */
export function onHotKeys(cluster: Pick<ClusterShield, 'onHotKeys'>, client: object, listener: () => void): () => void {
  const held = listeners.get(client) ?? new Set()
  listeners.set(client, held.add(listener))
  const stop = cluster.onHotKeys(weakly(new WeakRef(listener)))
  forgotten.register(listener, stop)
  return () => {
    held.delete(listener)
    stop()
  }
}

// Separate from the scope of the listener: a closure created there would hold it.
function weakly(listener: WeakRef<() => void>): () => void {
  return () => listener.deref()?.()
}
