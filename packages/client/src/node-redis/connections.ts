import {
  isNodeRedisCluster,
  isNodeRedisSentinel,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisConnection,
  type NodeRedisLease,
  type NodeRedisSentinel,
  type NodeRedisSlots,
} from './node-redis-client.ts'

/**
 * Finds the connections of a client, also those that a cluster or sentinel makes later, each before its first command.
 *
 * A cluster or sentinel client looks for a connection before it sends, so a write that was called first may not have
 * reached its connection when a read is called. `unsentWrites` counts such writes: while there are any, no read may be
 * answered before it has come to a connection too, where it is behind them.
 */
export class Connections {
  unsentWrites = 0
  readonly #adopt: (connection: NodeRedisConnection) => void

  /** `adopt` is called with each connection, often more than once. */
  constructor(adopt: (connection: NodeRedisConnection) => void) {
    this.#adopt = (connection) => adopt(connection._self as NodeRedisConnection)
  }

  /** Follows a client; the returned function ends this. */
  follow(client: NodeRedisClient): () => void {
    if (isNodeRedisCluster(client)) return this.#followCluster(client)
    if (isNodeRedisSentinel(client)) return this.#followSentinel(client)
    this.#adopt(client)
    return () => {}
  }

  #followCluster(cluster: NodeRedisCluster): () => void {
    for (const { client } of [...cluster.masters, ...cluster.replicas]) if (client !== undefined) this.#adopt(client)
    const { _slots: slots } = cluster
    const { nodeClient, getClientAndSlotNumber, getClientForKey } = slots
    const own: Partial<NodeRedisSlots> = {
      nodeClient: (node) => {
        const client = nodeClient.call(slots, node)
        if (client instanceof Promise) client.then(this.#adopt, () => {})
        else this.#adopt(client)
        return client
      },
      getClientAndSlotNumber: (key, isReadonly) => {
        const found = getClientAndSlotNumber.call(slots, key, isReadonly)
        return isReadonly === true ? found : this.#countUntilSent(found)
      },
    }
    if (getClientForKey !== undefined) {
      own.getClientForKey = (key, isReadonly) => {
        const found = getClientForKey.call(slots, key, isReadonly)
        return isReadonly === true || !(found instanceof Promise) ? found : this.#countUntilSent(found)
      }
    }
    return override(slots, own)
  }

  #followSentinel(sentinel: NodeRedisSentinel): () => void {
    const { acquire, use } = sentinel
    const self = sentinel._self as NodeRedisSentinel
    const lend = (lease: NodeRedisLease) => {
      override(lease._self, { _execute: this.#executeOf(lease._self) })
      return lease
    }
    return override(self, {
      _execute: this.#executeOf(self),
      async acquire(this: NodeRedisSentinel) {
        return lend(await acquire.call(this))
      },
      use(this: NodeRedisSentinel, run) {
        return use.call(this, (lease) => run(lend(lease)))
      },
    })
  }

  #executeOf(owner: Pick<NodeRedisLease, '_execute'>): NodeRedisLease['_execute'] {
    const { _execute: execute } = owner
    const connections = this
    return function (this: typeof owner, isReadonly, run) {
      let isUnsent = isReadonly !== true
      const sent = () => {
        if (isUnsent) connections.unsentWrites--
        isUnsent = false
      }
      if (isUnsent) connections.unsentWrites++
      const done = execute.call(this, isReadonly, (client) => {
        connections.#adopt(client)
        try {
          return run(client)
        } finally {
          sent()
        }
      })
      done.then(sent, sent)
      return done
    }
  }

  #countUntilSent<Found>(found: Promise<Found>): Promise<Found> {
    this.unsentWrites++
    // The caller's own reaction comes behind ours and sends; the microtask comes behind both.
    const sent = () => queueMicrotask(() => this.unsentWrites--)
    found.then(sent, sent)
    return found
  }
}

/**
 * Listens to an event; the returned function ends this. node-redis hands out objects that are derived from one another:
 * they have the same listeners, but each counts only those that were added by it, and the one whose count comes down to
 * nothing drops them all. What was dropped beside ours is put back.
 */
export function listen(
  emitter: Pick<NodeRedisConnection, 'on' | 'off' | 'eventNames' | 'rawListeners'>,
  event: string,
  listener: () => void,
): () => void {
  emitter.on(event, listener)
  return () => {
    const before = emitter.eventNames().map((name) => ({ name, listeners: emitter.rawListeners(name) }))
    emitter.off(event, listener)
    for (const { name, listeners } of before) {
      const left = new Set(emitter.rawListeners(name))
      for (const other of listeners) if (other !== listener && !left.has(other)) emitter.on(name, other)
    }
  }
}

/** Puts own properties over an object's methods; the returned function takes those away that are still ours. */
export function override<Owner extends object>(owner: Owner, own: Partial<Owner>): () => void {
  Object.assign(owner, own)
  return () => {
    for (const name of Object.keys(own) as (keyof Owner)[]) if (owner[name] === own[name]) delete owner[name]
  }
}
