import {
  type ClusterShield,
  CombineOwner,
  type Combining,
  type ConnectionFacts,
  type KeySpace,
  OpenState,
} from '@firebreak/shield'
import { type ClientIdentity, isSameIdentity, placeOfItsOwn, placeOfMany } from '../clients/client-identity.ts'
import type { Membership } from '../clients/cluster-clients.ts'
import { connectionOptions } from './cluster-options.ts'
import type { IoredisClient } from './ioredis-client.ts'
import { addressText } from './ioredis-upstream.ts'

/** What the gate needs to know about one ioredis client. */
export class IoredisConnection implements ConnectionFacts {
  readonly client: IoredisClient
  readonly cluster: ClusterShield
  readonly open = new OpenState()
  readonly isPinned = false
  readonly owner = new CombineOwner()
  /** Creates the combiner for the current connection; set by the sender. */
  makeCombining!: () => Combining
  #combining: Combining | undefined
  /** True while a failed load goes to Redis the normal way. */
  #isPlain = false
  #isEnded = false
  /** Set from the first SELECT on: ioredis trusts every SELECT, and does not know that RESET returns to database 0. */
  #database: number | undefined
  readonly #membership: Membership
  /** Set for a cluster's connection to one node, which always answers itself: the cluster. */
  readonly #parent: IoredisClient | undefined
  /** The identity that the current connection was opened with; the options may have changed since. */
  #identity!: ClientIdentity
  /** True if a cluster logs in to its nodes as different users: it is then unknown which of them reads a key. */
  #isMixed = false
  #spaces: KeySpace[] = []

  /** `parent`: the cluster, if this is its connection to one node. */
  constructor(client: IoredisClient, membership: Membership, parent?: IoredisClient) {
    this.client = client
    this.cluster = membership.cluster
    this.#membership = membership
    this.#parent = parent
    this.identify()
  }

  /** True for a cluster's connection to one node. */
  get isNode(): boolean {
    return this.#parent !== undefined
  }

  /** Determines which identity the client's connections read as. */
  identify(): void {
    const { client } = this
    const place = placeOf(this.#parent ?? client)
    const [first, ...others] = connectionOptions(client).map(({ username, password }) => ({
      place,
      username,
      password,
    }))
    this.#identity = first!
    this.#isMixed = others.some((other) => !isSameIdentity(other, first!))
    this.#spaces = []
  }

  get space(): KeySpace {
    const database = this.#current
    return (this.#spaces[database] ??= this.#membership.space(this.#identity, database))
  }

  get #current(): number {
    const { condition, options } = this.client
    return this.#database ?? condition?.select ?? options.db ?? 0
  }

  /** False while the kill switch is on, and when the client is no longer protected. */
  get isActive(): boolean {
    return this.cluster.isActive && !this.#isEnded
  }

  get isReady(): boolean {
    const { status, condition, manuallyClosing } = this.client
    // While it is subscribed ioredis refuses other commands, and once it is closing, all of them.
    if (status !== 'ready' || condition?.subscriber || manuallyClosing === true) return false
    return !this.#isPlain && !this.#isMixed && this.#parent === undefined
  }

  now(): number {
    return this.cluster.now()
  }

  combining(): Combining {
    return (this.#combining ??= this.makeCombining())
  }

  select(database: number): () => void {
    // On a new connection ioredis already names the database that it is about to select.
    this.#database ??= this.isOpening ? 0 : this.#current
    return () => {
      if (Number.isSafeInteger(database)) this.#database = database
    }
  }

  /** True while ioredis sets up a connection. */
  get isOpening(): boolean {
    return this.client.status === 'connect'
  }

  /** The connection was lost: ioredis selects its database again on the next one. */
  lost(): void {
    this.#database = undefined
    this.#combining = undefined
    this.identify()
    this.open.reset()
  }

  /** The client is no longer protected; someone may have wrapped our hooks and still call them. */
  end(): void {
    this.owner.waiting?.flush()
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

function placeOf(client: IoredisClient): string {
  const { path, host, port, sentinels, name, role, Connector } = client.options
  if (client.isCluster === true) return placeOfMany((client.startupNodes ?? []).map(addressText))
  if (Connector) return placeOfItsOwn(client)
  if (!sentinels) return path ?? `${host}:${port}`
  return `${role ?? 'master'} of ${name} at ${placeOfMany(sentinels.map(addressText))}`
}
