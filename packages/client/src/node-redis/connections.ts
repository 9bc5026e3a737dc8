import type { Trouble } from '@firebreak/shield'
import {
  type ClusterRoutes,
  isNodeRedisCluster,
  isNodeRedisConnection,
  isNodeRedisPool,
  type NodeRedisClient,
  type NodeRedisCluster,
  type NodeRedisConnection,
  type NodeRedisLease,
  type NodeRedisPool,
  type NodeRedisSentinel,
  type NodeRedisSlots,
} from './node-redis-client.ts'

type Run = (client: NodeRedisConnection) => unknown

/**
 * Finds the connections of a client, including those that a cluster, sentinel or pool creates later, each before its
 * first command.
 *
 * Such a client looks for a connection before it sends, so a write that was called first may not have reached its
 * connection when a read is called. `unsentWrites` counts such writes: while there are any, no read may be answered
 * before it has reached a connection too, where it is behind them.
 */
export class Connections {
  unsentWrites = 0
  readonly #adopt: (connection: NodeRedisConnection) => void

  /** `adopt` is called with each connection, often more than once. */
  constructor(adopt: (connection: NodeRedisConnection) => void, trouble: Trouble) {
    // Called in the middle of the library's own work.
    this.#adopt = trouble.guarded((connection) => adopt(connection._self as NodeRedisConnection))
  }

  /** Follows a client; the returned function stops that. */
  follow(client: NodeRedisClient): () => void {
    if (isNodeRedisCluster(client)) return this.#followCluster(client)
    if (isNodeRedisPool(client)) return this.#followPool(client)
    if (!isNodeRedisConnection(client)) return this.#followSentinel(client)
    this.#adopt(client)
    return () => {}
  }

  /** The routes of a cluster; undefined for any other client. */
  routesOf(client: NodeRedisClient): ClusterRoutes | undefined {
    if (!isNodeRedisCluster(client)) return undefined
    return {
      find: async (key, isReadonly) => {
        const found = (await client._slots.getClientAndSlotNumber(key, isReadonly)) as { client: NodeRedisConnection }
        this.#adopt(found.client)
        return found.client._self as NodeRedisConnection
      },
      refresh: () => rediscover(client),
    }
  }

  #followCluster(cluster: NodeRedisCluster): () => void {
    const adoptAll = () => {
      for (const { client } of [...cluster.masters, ...cluster.replicas]) if (client !== undefined) this.#adopt(client)
    }
    adoptAll()
    // An application may use a node's client directly, for example to scan every node.
    const unlisten = listen(cluster, 'node-connect', adoptAll)
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
    const restore = override(slots, own)
    return () => {
      unlisten()
      restore()
    }
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

  /** Anything that a pool executes may write; most of it is sent at once. */
  #followPool(pool: NodeRedisPool): () => void {
    const self = pool._self as NodeRedisPool
    const { execute } = self
    const connections = this
    return override(self, {
      execute(this: NodeRedisPool, run) {
        return connections.#watchSent(true, run, (watched) => execute.call(this, watched))
      },
    })
  }

  #executeOf(owner: Pick<NodeRedisLease, '_execute'>): NodeRedisLease['_execute'] {
    const { _execute: execute } = owner
    const connections = this
    return function (this: typeof owner, isReadonly, run) {
      const mayWrite = isReadonly !== true
      return connections.#watchSent(mayWrite, run, (watched) => execute.call(this, isReadonly, watched))
    }
  }

  /** Starts something that waits for a connection; it counts as unsent until it has run there or cannot any more. */
  #watchSent(mayWrite: boolean, run: Run, start: (run: Run) => Promise<unknown>): Promise<unknown> {
    let isUnsent = mayWrite
    const sent = () => {
      if (isUnsent) this.unsentWrites--
      isUnsent = false
    }
    if (isUnsent) this.unsentWrites++
    const done = start((client) => {
      this.#adopt(client)
      try {
        return run(client)
      } finally {
        sent()
      }
    })
    done.then(sent, sent)
    return done
  }

  #countUntilSent<Found>(found: Promise<Found>): Promise<Found> {
    this.unsentWrites++
    // The caller's own reaction comes after ours and sends; the microtask comes after both.
    const sent = () => queueMicrotask(() => this.unsentWrites--)
    found.then(sent, sent)
    return found
  }
}

/** Makes a cluster ask one of its nodes, preferably one that answers, for the slots. */
export async function rediscover({ masters, _slots: slots }: NodeRedisCluster): Promise<void> {
  const known = masters.filter(({ client }) => client !== undefined)
  const { client } = known.find((node) => node.client?.isReady === true) ?? known[0] ?? {}
  try {
    if (client !== undefined) await slots.rediscover(client)
  } catch {
    // The next lost connection or refused command asks again.
  }
}

/**
 * Listens to an event; the returned function stops that. node-redis returns objects that are derived from one another:
 * they have the same listeners, but each counts only those added through it, and the one whose count drops to zero
 * drops them all. What was dropped along with ours is restored.
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

/** Overrides an object's methods with own properties; the returned function removes those that are still ours. */
export function override<Owner extends object>(owner: Owner, own: Partial<Owner>): () => void {
  Object.assign(owner, own)
  return () => {
    for (const name of Object.keys(own) as (keyof Owner)[]) if (owner[name] === own[name]) delete owner[name]
  }
}
