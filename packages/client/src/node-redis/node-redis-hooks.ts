import { tracingChannel } from 'node:diagnostics_channel'
import {
  type ClusterShield,
  type ConnectionFacts,
  type HotKey,
  type KeySpace,
  nextReplyForm,
  OpenState,
  type Shield,
} from '@firebreak/shield'
import type { Membership } from '../clients/cluster-clients.ts'
import { onHotKeys } from '../clients/on-hot-keys.ts'
import { isOwnMethod } from '../clients/own-method.ts'
import { nameOf } from '../commands/command-keys.ts'
import { bufferOfBulk } from '../replies/bulk.ts'
import { replyText } from '../replies/reply-text.ts'
import { type ClientState, ConnectionHooks } from './connection-hooks.ts'
import { Connections, listen, override } from './connections.ts'
import {
  isNodeRedisCluster,
  isNodeRedisConnection,
  isNodeRedisPool,
  isNodeRedisSentinel,
  type NodeRedisBase,
  type NodeRedisClient,
  type NodeRedisConnection,
} from './node-redis-client.ts'

/** The promise of a GET's text, kept with the reply: every hit returns the same one. */
const textPromiseForm = nextReplyForm()
const getId = 'GET'
const blobString = 36
const commandChannel = tracingChannel('node-redis:command')

/**
 * The hooks on one node-redis client, cluster, sentinel or pool. Every command passes through a connection's queue (see
 * `ConnectionHooks`); GET, the read of nearly every hot key, is already answered in the method, before node-redis has
 * parsed its arguments and looked for a connection (`bench/cache.ts` has the figure).
 */
export class NodeRedisHooks {
  readonly #client: NodeRedisClient
  readonly #shield: Shield
  readonly #cluster: ClusterShield
  readonly #membership: Membership
  readonly #state: ClientState
  readonly #connections: Connections
  readonly #hooked = new Map<NodeRedisConnection, { readonly hooks: ConnectionHooks; readonly uninstall: () => void }>()
  /** The facts of a client with many connections before a command has found its own. */
  readonly #facts: ConnectionFacts
  readonly #onConnection: (connection: NodeRedisConnection) => void
  /** Set for a client that is a single connection. */
  #only: ConnectionHooks | undefined

  /** `onConnection` is called with every connection that a command used. */
  constructor(
    client: NodeRedisClient,
    shield: Shield,
    membership: Membership,
    onConnection: (connection: NodeRedisConnection) => void,
  ) {
    this.#client = client
    this.#shield = shield
    this.#cluster = membership.cluster
    this.#membership = membership
    this.#onConnection = onConnection
    this.#connections = new Connections((connection) => this.#adopt(connection), shield.trouble)
    this.#state = {
      client,
      isBypassing: false,
      hasOwnCache: client.clientSideCache !== undefined,
      routes: this.#connections.routesOf(client),
    }
    this.#facts = this.#makeFacts()
  }

  /** Installs the hooks; the returned function removes them. */
  install(): () => void {
    const unfollow = this.#connections.follow(this.#client)
    const self = this.#client._self as NodeRedisBase & { GET: NodeRedisBase['get'] }
    const hooks = this
    const bare = self.get
    let isEnded = false
    const get: NodeRedisBase['get'] = function (...args) {
      // Someone may have wrapped it and may still call it after its removal.
      try {
        const answered = isEnded ? undefined : hooks.#get(this, args)
        if (answered !== undefined) return answered
      } catch (error) {
        hooks.#shield.passAfter(error)
      }
      return bare.apply(this, args)
    }
    // While nothing is hot the methods are node-redis' own.
    let uninstallGet = () => {}
    const setMethods = () => {
      uninstallGet()
      const isHot = this.#cluster.hasHotKeys && isOwnMethod(self, 'get') && isOwnMethod(self, 'GET')
      uninstallGet = isHot ? override(self, { get, GET: get }) : () => {}
    }
    const stopListening = onHotKeys(this.#cluster, self, setMethods)
    setMethods()
    return () => {
      isEnded = true
      stopListening()
      uninstallGet()
      unfollow()
      for (const { uninstall } of this.#hooked.values()) uninstall()
      this.#hooked.clear()
    }
  }

  /** The value of a hot string key if it is currently in memory; undefined means that a normal read is needed. */
  peek(key: string): string | null | undefined {
    const hot = this.#hotKey(key)
    if (hot === undefined) return undefined
    const reply = hot.hit(getId, this.#cluster.now())
    if (reply === undefined) return undefined
    this.#cluster.count(hot.name, false, reply.bytes.length)
    return replyText(reply)
  }

  #adopt(connection: NodeRedisConnection): void {
    if (this.#hooked.has(connection)) return
    const isAlone = !isNodeRedisCluster(this.#client) && !isNodeRedisSentinel(this.#client)
    const isOnly = isNodeRedisConnection(this.#client)
    const hooks = new ConnectionHooks(connection, this.#shield, this.#membership, this.#state, isAlone)
    const uninstalls = [hooks.install()]
    if (isOnly) this.#only = hooks
    else
      uninstalls.push(
        listen(
          connection,
          'end',
          this.#shield.trouble.guarded(() => this.#forget(connection)),
        ),
      )
    const uninstall = () => {
      for (const end of uninstalls) end()
    }
    this.#hooked.set(connection, { hooks, uninstall })
    this.#onConnection(connection)
  }

  /** A connection of a client with many is gone for good. */
  #forget(connection: NodeRedisConnection): void {
    this.#hooked.get(connection)?.uninstall()
    this.#hooked.delete(connection)
  }

  /** A GET's answer if it is in memory; anything else is left to the send path. */
  #get(caller: NodeRedisBase, args: readonly unknown[]): Promise<unknown> | undefined {
    // A tracer wants to see every command.
    if (commandChannel.hasSubscribers) return undefined
    const hot = args.length === 1 ? this.#hotKey(args[0]) : undefined
    if (hot === undefined) return undefined
    const options = caller._commandOptions ?? caller.commandOptions
    const mapped = options?.typeMapping?.[blobString]
    if (options?.abortSignal !== undefined || (mapped !== undefined && mapped !== Buffer)) return undefined
    const reply = hot.hit(getId, this.#cluster.now())
    if (reply === undefined) return undefined
    if (mapped === Buffer) {
      const value = bufferOfBulk(reply.bytes)
      this.#cluster.count(hot.name, false, reply.bytes.length)
      return Promise.resolve(value)
    }
    this.#cluster.count(hot.name, false, reply.bytes.length)
    return (reply.forms[textPromiseForm] ??= Promise.resolve(replyText(reply))) as Promise<unknown>
  }

  /** The hot key that a method was called with, if reads of it may be answered here. */
  #hotKey(key: unknown): HotKey | undefined {
    const cluster = this.#cluster
    if (!cluster.isActive || typeof key !== 'string') return undefined
    const { _keyPrefix: prefix } = this.#client
    if (prefix !== undefined && typeof prefix !== 'string') return undefined
    const connection = this.#only ?? this.#facts
    const hot = connection.space?.hot.get(nameOf(prefix === undefined ? key : prefix + key))
    // A limited key is left to the send path.
    return hot?.isGated === false && cluster.gate.mayServe(hot, connection) ? hot : undefined
  }

  #makeFacts(): ConnectionFacts {
    const hooks = this
    const client = this.#client
    const isPool = isNodeRedisPool(client)
    return {
      get space() {
        return hooks.#sharedSpace()
      },
      get isReady() {
        const { isBypassing, hasOwnCache } = hooks.#state
        const isOpen = client.isOpen && !(isPool && client.isClosing)
        return isOpen && hooks.#connections.unsentWrites === 0 && !isBypassing && !hasOwnCache
      },
      isPinned: false,
      open: new OpenState(),
      now: () => this.#cluster.now(),
      select: () => () => {},
    }
  }

  /** The key space of a client with many connections, which all share it. */
  #sharedSpace(): KeySpace | undefined {
    for (const { hooks } of this.#hooked.values()) return hooks.space
    return undefined
  }
}
