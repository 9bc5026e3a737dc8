import type { ClusterShield, KeySpace, Shield } from '@firebreak/shield'
import { type ClientIdentity, isSameIdentity } from './client-identity.ts'
import { type ClientMember, OpenClients } from './open-clients.ts'
import { SharedRedis } from './shared-redis.ts'
import { SharedUpstream } from './shared-upstream.ts'

/** An identity, and the clients that have it. */
interface KnownIdentity {
  readonly identity: ClientIdentity
  /** Names its key spaces. A number, because a name derived from the credentials would leak them. */
  readonly id: string
  readonly clients: OpenClients
  readonly upstream: SharedUpstream
}

/** A client's share in what it has in common with others of the same Redis. */
export interface Membership {
  readonly cluster: ClusterShield
  /** The keys of a database as read by this identity. */
  space(identity: ClientIdentity, database: number): KeySpace
  leave(): void
}

const known = new WeakMap<ClusterShield, ClusterClients>()

/**
 * The protected clients of one Redis. Those with the same user, password and address share what was read; the others
 * have their own key spaces, read by connections with their own credentials. What is shared stays with the remaining
 * clients when one of them closes.
 */
export class ClusterClients {
  readonly #clients = new OpenClients()
  readonly #upstream: SharedUpstream
  #cluster!: ClusterShield
  #identities: KnownIdentity[] = []
  #identityCount = 0

  private constructor({ upstream }: ClientMember) {
    this.#upstream = new SharedUpstream(upstream.isCluster, this.#clients)
  }

  /** Adds a client to those of its Redis. The caller must hold the member for as long as the client lives. */
  static join(shield: Shield, redisClusterId: string, member: ClientMember): Membership {
    const fresh = new ClusterClients(member)
    const cluster = shield.cluster(redisClusterId, fresh.#upstream)
    let clients = known.get(cluster)
    if (clients === undefined) {
      clients = fresh
      clients.#cluster = cluster
      known.set(cluster, clients)
    }
    cluster.limitRedis ??= new SharedRedis(clients.#clients)
    return clients.#join(new WeakRef(member))
  }

  #join(member: WeakRef<ClientMember>): Membership {
    this.#clients.add(member)
    return {
      cluster: this.#cluster,
      space: (identity, database) => {
        const { id, upstream, clients } = this.#identityOf(identity)
        clients.add(member)
        return this.#cluster.space(database, { id, upstream })
      },
      leave: () => this.#leave(member),
    }
  }

  #identityOf(identity: ClientIdentity): KnownIdentity {
    const found = this.#identities.find((other) => isSameIdentity(other.identity, identity))
    if (found !== undefined) return found
    const clients = new OpenClients()
    const upstream = new SharedUpstream(this.#upstream.isCluster, clients, identity)
    // The first has no number, so that the next process finds what a disk keeps of it.
    const id = this.#identityCount === 0 ? '' : String(this.#identityCount)
    this.#identityCount++
    const made = { identity, id, clients, upstream }
    this.#identities.push(made)
    return made
  }

  #leave(member: WeakRef<ClientMember>): void {
    this.#identities = this.#identities.filter(({ id, clients }) => {
      if (clients.isOnly(member)) this.#cluster.forget(id)
      clients.delete(member)
      return clients.size > 0
    })
    // Last, because it says where the copies are that `forget` removes.
    this.#clients.delete(member)
  }
}
