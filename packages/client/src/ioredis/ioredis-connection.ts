import { type ClusterShield, type ConnectionFacts, type KeySpace, OpenState } from '@firebreak/shield'
import type { ClientIdentity } from '../clients/client-identity.ts'
import type { Membership } from '../clients/cluster-clients.ts'
import type { IoredisClient } from './ioredis-client.ts'

/** What the gate has to know of one ioredis client. */
export class IoredisConnection implements ConnectionFacts {
  readonly client: IoredisClient
  readonly cluster: ClusterShield
  readonly open = new OpenState()
  readonly isPinned = false
  /** True while a load that failed goes to Redis the plain way. */
  #isPlain = false
  #isEnded = false
  /** What was last asked for; ioredis does not know that RESET goes back to database 0. */
  #database: number | undefined
  readonly #membership: Membership
  /** As whom the connection that stands was opened; the options may have changed since. */
  #identity: ClientIdentity
  #spaces: KeySpace[] = []

  constructor(client: IoredisClient, membership: Membership) {
    this.client = client
    this.cluster = membership.cluster
    this.#membership = membership
    this.#identity = identityOf(client)
  }

  get space(): KeySpace {
    const { condition, options } = this.client
    const database = this.#database ?? condition?.select ?? options.db ?? 0
    return (this.#spaces[database] ??= this.#membership.space(this.#identity, database))
  }

  /** False while the kill switch is thrown, and when the client is no longer protected. */
  get isActive(): boolean {
    return this.cluster.isActive && !this.#isEnded
  }

  get isReady(): boolean {
    const { status, condition, manuallyClosing } = this.client
    // While it listens to channels ioredis refuses other commands, and once it was told to close, all of them.
    return status === 'ready' && !condition?.subscriber && manuallyClosing !== true && !this.#isPlain
  }

  now(): number {
    return this.cluster.now()
  }

  select(database: number): void {
    if (Number.isSafeInteger(database)) this.#database = database
  }

  /** The connection was lost: ioredis selects its database again on the next one. */
  lost(): void {
    this.open.reset()
    this.#database = undefined
    this.#identity = identityOf(this.client)
    this.#spaces = []
  }

  /** The client is no longer protected; somebody may have wrapped our hooks, and go on calling them. */
  end(): void {
    this.#isEnded = true
    this.lost()
  }

  /** Calls a method of the client whose command goes to Redis, hot or not. */
  plainly<Value>(bare: () => Value): Value {
    this.#isPlain = true
    try {
      return bare()
    } finally {
      this.#isPlain = false
    }
  }
}

function identityOf(client: IoredisClient): ClientIdentity {
  const { options } = client
  if (client.isCluster) {
    const { username, password } = options.redisOptions ?? {}
    return { place: '', username, password }
  }
  const { username, password, path, host, port, sentinels, Connector } = options
  return { place: sentinels || Connector ? '' : (path ?? `${host}:${port}`), username, password }
}
