import type { ClusterShield } from '@firebreak/shield'

const forgotten = new FinalizationRegistry<() => void>((stop) => stop())

/**
 * Calls back whenever something begins or ends to be hot, for as long as somebody else holds the listener: a cluster's
 * shield must not keep a client alive. The returned function ends it.
 */
export function onHotKeys(cluster: ClusterShield, listener: () => void): () => void {
  const stop = cluster.onHotKeys(weakly(new WeakRef(listener)))
  forgotten.register(listener, stop)
  return stop
}

// Apart from where the listener is in scope: a closure made there would hold it.
function weakly(listener: WeakRef<() => void>): () => void {
  return () => listener.deref()?.()
}
