import type { ClusterShield, HotKey } from '@firebreak/shield'

/**
 * What a connection has open that a cached answer would break: MULTI (the command must be queued), or WATCH (the value
 * read under it must be the one that EXEC compares). Writes in a transaction happen at EXEC, so hot keys they name stay
 * bypassed until EXEC is answered.
 */
export class OpenTransaction {
  isOpen = false
  isWatching = false
  #writes: HotKey[] = []
  readonly #cluster: ClusterShield

  constructor(cluster: ClusterShield) {
    this.#cluster = cluster
  }

  /** True while reads must go to Redis. */
  get isBinding(): boolean {
    return this.isOpen || this.isWatching
  }

  hold(hot: HotKey): void {
    this.#writes.push(hot)
  }

  /** EXEC or DISCARD goes out; the returned function is for its answer. */
  end(): () => void {
    const writes = this.#writes
    this.#writes = []
    this.isOpen = false
    this.isWatching = false
    return () => {
      for (const hot of writes) this.#cluster.endWrite(hot)
    }
  }

  /** The connection was lost, and with it all that was open. */
  reset(): void {
    this.end()()
  }
}
