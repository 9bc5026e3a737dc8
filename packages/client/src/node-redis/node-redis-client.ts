/** One argument of a command as node-redis writes it. */
export type NodeRedisArgument = string | Buffer

/** How one command is sent. */
export interface NodeRedisCommandOptions {
  /** Which JavaScript type a type of RESP becomes. */
  readonly typeMapping?: Readonly<Record<number, unknown>> | undefined
  /** The same for all commands of a pipeline, a transaction or a redirection. */
  readonly chainId?: symbol | undefined
  readonly asap?: boolean | undefined
  readonly abortSignal?: AbortSignal | undefined
}

/** The queue that every command of one connection passes through: from methods, pipelines, transactions, scripts. */
export interface NodeRedisQueue {
  readonly decoder: { readonly constructor: unknown }
  addCommand(args: readonly NodeRedisArgument[], options?: NodeRedisCommandOptions): Promise<unknown>
}

/** How a client reaches its server. */
export interface NodeRedisClientOptions {
  readonly RESP?: 2 | 3
  readonly database?: number
  readonly username?: string
  readonly password?: string
  readonly credentialsProvider?: {
    readonly type?: string
    credentials?(): Promise<{ readonly username?: string; readonly password?: string }>
  }
  readonly socket?: NodeRedisSocketOptions
  readonly keyPrefix?: unknown
}

export interface NodeRedisSocketOptions {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly family?: number
  readonly tls?: boolean
  readonly [option: string]: unknown
}

type Method = (...args: never[]) => unknown

/** What client, cluster and sentinel have in common; options of a command hang on objects derived from `_self`. */
export interface NodeRedisBase {
  readonly _self: NodeRedisBase
  readonly _keyPrefix?: unknown
  readonly isOpen: boolean
  readonly isReady?: boolean
  /** Set if node-redis caches replies itself. */
  readonly clientSideCache?: object | undefined
  readonly commandOptions?: NodeRedisCommandOptions
  readonly _commandOptions?: NodeRedisCommandOptions
  get(this: NodeRedisBase, ...args: unknown[]): Promise<unknown>
  sendCommand: Method
  on(event: string, listener: (...args: never[]) => void): unknown
  off(event: string, listener: (...args: never[]) => void): unknown
  eventNames(): string[]
  rawListeners(event: string): ((...args: never[]) => void)[]
}

/** A client of one connection, by itself or inside a cluster or sentinel client. */
export interface NodeRedisConnection extends NodeRedisBase {
  readonly options?: NodeRedisClientOptions
  readonly isPubSubActive?: boolean
  _getQueue(): NodeRedisQueue
}

/** How a cluster finds the connection of a key, whichever node has it at that moment. */
export interface ClusterRoutes {
  find(key: NodeRedisArgument, isReadonly: boolean): Promise<NodeRedisConnection>
  /** Asks a node that answers who has which slots. */
  refresh(): Promise<void>
}

/** A node of a cluster; its client is made when it is first needed. */
export interface NodeRedisNode {
  readonly address: string
  readonly client?: NodeRedisConnection
}

/** Finds the connection for a cluster's command. */
export interface NodeRedisSlots {
  nodeClient(node: NodeRedisNode): NodeRedisConnection | Promise<NodeRedisConnection>
  getClientAndSlotNumber(key: unknown, isReadonly: boolean | undefined): Promise<unknown>
  /** Since version 6: takes commands whose keys are spread over nodes. */
  getClientForKey?(key: unknown, isReadonly: boolean | undefined): unknown
  rediscover(startWith: NodeRedisConnection): Promise<unknown>
}

export interface NodeRedisCluster extends NodeRedisBase {
  readonly _slots: NodeRedisSlots
  readonly _options: {
    readonly rootNodes?: readonly { readonly url?: string; readonly socket?: NodeRedisSocketOptions }[]
    readonly defaults?: NodeRedisClientOptions
    readonly nodeAddressMap?: unknown
  }
  readonly masters: readonly NodeRedisNode[]
  readonly replicas: readonly NodeRedisNode[]
  readonly slots: readonly ({ readonly master: NodeRedisNode } | undefined)[]
}

type Execute = (isReadonly: boolean | undefined, run: (client: NodeRedisConnection) => unknown) => Promise<unknown>

/** A client lent out by a sentinel, with its own connection. */
export interface NodeRedisLease {
  readonly _self: NodeRedisLease
  _execute: Execute
}

export interface NodeRedisSentinel extends NodeRedisBase {
  _execute: Execute
  acquire(): Promise<NodeRedisLease>
  use(run: (lease: NodeRedisLease) => unknown): Promise<unknown>
  getMasterNode(): { readonly host: string; readonly port: number } | undefined
}

/** Connections used in turn; each command, or callback of `execute`, has one to itself. */
export interface NodeRedisPool extends NodeRedisBase {
  readonly isClosing: boolean
  readonly totalClients: number
  /** Names the pool by its options for the server: `host:port/database-hash`. */
  readonly identity?: { readonly id: string }
  execute(run: (client: NodeRedisConnection) => unknown): Promise<unknown>
}

export type NodeRedisClient = NodeRedisConnection | NodeRedisCluster | NodeRedisSentinel | NodeRedisPool

/** Whether this is a node-redis client (version 5.12 or later, or 6), cluster, sentinel or pool that the hooks know. */
export function isNodeRedis(client: object): client is NodeRedisClient {
  const shape = client as Partial<NodeRedisConnection & NodeRedisCluster & NodeRedisSentinel>
  if (typeof shape.sendCommand !== 'function' || typeof shape._self !== 'object') return false
  return isNodeRedisConnection(client) || hasManyConnections(client)
}

/** Whether a client is a single connection, with its own options and state. */
export function isNodeRedisConnection(client: object): client is NodeRedisConnection {
  return typeof (client as Partial<NodeRedisConnection>)._getQueue === 'function'
}

function hasManyConnections(client: object): boolean {
  return isNodeRedisCluster(client) || isNodeRedisSentinel(client) || isNodeRedisPool(client)
}

export function isNodeRedisCluster(client: object): client is NodeRedisCluster {
  const { _slots } = client as Partial<NodeRedisCluster>
  return typeof _slots?.nodeClient === 'function' && typeof _slots.getClientAndSlotNumber === 'function'
}

export function isNodeRedisSentinel(client: object): client is NodeRedisSentinel {
  const shape = client as Partial<NodeRedisSentinel>
  return typeof shape.getMasterNode === 'function' && typeof shape._execute === 'function'
}

export function isNodeRedisPool(client: object): client is NodeRedisPool {
  const shape = client as Partial<NodeRedisPool>
  return typeof shape.execute === 'function' && typeof shape.totalClients === 'number'
}
