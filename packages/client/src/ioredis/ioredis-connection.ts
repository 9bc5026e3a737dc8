import { type ClusterShield, type ConnectionFacts, type KeySpace, OpenState } from '@firebreak/shield'
import type { IoredisClient } from './ioredis-client.ts'

/** What the gate has to know of one ioredis client. */
export class IoredisConnection implements ConnectionFacts {
  readonly client: IoredisClient
  readonly cluster: ClusterShield
  readonly open = new OpenState()
  readonly isPinned = false
  /** True while a load that failed goes to Redis the plain way. */
  #isPlain = false
  /** What was last asked for; ioredis does not know that RESET goes back to database 0. */
  #database: number | undefined
  readonly #spaces: KeySpace[] = []

  constructor(client: IoredisClient, cluster: ClusterShield) {
    this.client = client
    this.cluster = cluster
  }

  get space(): KeySpace {
    const { condition, options } = this.client
    const database = this.#database ?? condition?.select ?? options.db ?? 0
    return (this.#spaces[database] ??= this.cluster.space(database))
  }

  get isReady(): boolean {
    return this.client.status === 'ready' && !this.#isPlain
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
