import type { ClusterShield, HotKey, KeySpace } from '@firebreak/shield'
import type { IoredisClient } from './ioredis-client.ts'
import { OpenTransaction } from './open-transaction.ts'

/** What the hooks of one client have in common. */
export class ClientState {
  readonly client: IoredisClient
  readonly cluster: ClusterShield
  readonly transaction: OpenTransaction
  /** Own commands that change keys without naming them and are not acknowledged. */
  pendingFlushes = 0
  /** True while a load that failed goes to Redis the plain way. */
  #isBypassing = false
  readonly #spaces: KeySpace[] = []

  constructor(client: IoredisClient, cluster: ClusterShield) {
    this.client = client
    this.cluster = cluster
    this.transaction = new OpenTransaction(cluster)
  }

  /** The key space that a command sent now would see. */
  get space(): KeySpace {
    const { condition, options } = this.client
    const database = condition?.select ?? options.db ?? 0
    return (this.#spaces[database] ??= this.cluster.space(database))
  }

  /** Whether a read of a hot key may be answered here at this moment. */
  mayServe(hot: HotKey): boolean {
    return (
      hot.pendingWrites === 0 &&
      this.client.status === 'ready' &&
      !this.transaction.isBinding &&
      this.pendingFlushes === 0 &&
      !this.#isBypassing
    )
  }

  /** Calls a method of the client whose command goes to Redis, hot or not. */
  plainly<Value>(bare: () => Value): Value {
    this.#isBypassing = true
    try {
      return bare()
    } finally {
      this.#isBypassing = false
    }
  }
}
