import { InvalidOptionError, type Runtime, systemRuntime, type TimerHandle } from '@firebreak/core'
import type { JuteReader } from './jute.ts'
import { JuteWriter } from './jute.ts'
import {
  type CreateMode,
  encodeMulti,
  encodeOperation,
  isZooKeeperError,
  opCodes,
  readMulti,
  readStat,
  type ZooKeeperAccess,
  type ZooKeeperOperation,
  type ZooKeeperStat,
} from './operations.ts'
import {
  type ConnectionLimits,
  type ServerAddress,
  ZooKeeperConnection,
  type ZooKeeperSession,
  zooKeeperDown,
} from './zookeeper-connection.ts'

/** How a ZooKeeper client connects. */
export interface ZooKeeperClientOptions {
  /** `host:port`, several with commas between them. */
  readonly servers: string
  /** How long the server keeps ephemeral nodes of a silent client; the server may grant less or more. @default 6000 */
  readonly sessionTimeoutMs?: number
  /** For the connection and the handshake with one server. @default 2000 */
  readonly connectTimeoutMs?: number
  /** For one request. @default 3000 */
  readonly requestTimeoutMs?: number
  /** `user:password` of ZooKeeper's digest scheme; new nodes are then for this user alone. @default none */
  readonly auth?: string
  /** @default the system's */
  readonly runtime?: Runtime
}

/** What happened to the session. */
export type SessionEvent = 'connected' | 'disconnected' | 'expired'

const noSession: Pick<ZooKeeperSession, 'id' | 'password'> = { id: 0n, password: Buffer.alloc(16) }
const firstRetryMs = 100
const maxRetryMs = 2000

/**
 * A small ZooKeeper client: a session over whichever server answers, and the eight calls that worker registration
 * needs. Calls made while there is no connection fail at once; nothing is queued and nothing hangs. A lost connection is
 * tried again in the background with the same session; when the server has forgotten that session, `expired` is told
 * and a new one begins: its ephemeral nodes are gone then.
 */
export class ZooKeeperClient {
  readonly #servers: readonly ServerAddress[]
  readonly #sessionTimeoutMs: number
  readonly #limits: ConnectionLimits
  readonly #auth: string | undefined
  readonly #listeners = new Set<(event: SessionEvent) => void>()
  #connection: ZooKeeperConnection | undefined
  #session: ZooKeeperSession
  #connecting: Promise<void> | undefined
  #isWanted = false
  #retry: TimerHandle | undefined
  #retryMs = firstRetryMs
  #nextServer = 0

  constructor(options: ZooKeeperClientOptions) {
    this.#servers = parseServers(options.servers)
    this.#sessionTimeoutMs = options.sessionTimeoutMs ?? 6000
    this.#limits = {
      connectTimeoutMs: options.connectTimeoutMs ?? 2000,
      requestTimeoutMs: options.requestTimeoutMs ?? 3000,
      runtime: options.runtime ?? systemRuntime,
    }
    this.#auth = options.auth
    this.#session = { ...noSession, timeoutMs: this.#sessionTimeoutMs }
  }

  get isConnected(): boolean {
    return this.#connection !== undefined
  }

  get sessionId(): bigint {
    return this.#session.id
  }

  /** What the server granted once connected. */
  get sessionTimeoutMs(): number {
    return this.#session.timeoutMs
  }

  /** Calls back on every change of the session; returns a function that ends this. */
  onSession(listener: (event: SessionEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Tries every server once; rejects with `FB_IDS_REGISTRY_DOWN` where none answers, and goes on trying then. */
  async connect(): Promise<void> {
    this.#isWanted = true
    if (this.#connection !== undefined) return
    this.#retry?.cancel()
    this.#connecting ??= this.#connectOnce().finally(() => {
      this.#connecting = undefined
    })
    try {
      await this.#connecting
    } catch (error) {
      this.#retryLater()
      throw error
    }
  }

  /** Makes a node and gives its path, which a sequential one learns here. */
  async create(path: string, data: string, mode: CreateMode): Promise<string> {
    const body = encodeOperation({ kind: 'create', path, data, mode }, this.#access)
    return (await this.#call(opCodes.create, body, `create ${path}`)).text()
  }

  /** Makes a persistent node and the ones above it, unless they are there. */
  async ensure(path: string): Promise<void> {
    const names = path.split('/').slice(1)
    for (let depth = 1; depth <= names.length; depth++) {
      try {
        await this.create(`/${names.slice(0, depth).join('/')}`, '', 'persistent')
      } catch (error) {
        if (!isZooKeeperError(error, 'NODE_EXISTS')) throw error
      }
    }
  }

  async delete(path: string, version = -1): Promise<void> {
    const body = encodeOperation({ kind: 'delete', path, version }, this.#access)
    await this.#call(opCodes.delete, body, `delete ${path}`)
  }

  async exists(path: string): Promise<ZooKeeperStat | undefined> {
    return this.#orNothing(async () => readStat(await this.#callPath(opCodes.exists, path, 'exists')))
  }

  async getData(path: string): Promise<{ data: string; stat: ZooKeeperStat } | undefined> {
    return this.#orNothing(async () => {
      const reader = await this.#callPath(opCodes.getData, path, 'getData')
      return { data: reader.text(), stat: readStat(reader) }
    })
  }

  async setData(path: string, data: string, version = -1): Promise<ZooKeeperStat> {
    const body = encodeOperation({ kind: 'setData', path, data, version }, this.#access)
    return readStat(await this.#call(opCodes.setData, body, `setData ${path}`))
  }

  /** The names of the nodes below `path`, in no order. */
  async getChildren(path: string): Promise<string[]> {
    const reader = await this.#callPath(opCodes.getChildren, path, 'getChildren')
    return reader.list(() => reader.text())
  }

  /** All of the operations or none. */
  async multi(operations: readonly ZooKeeperOperation[]): Promise<void> {
    const call = `a transaction on ${operations.map(({ path }) => path).join(', ')}`
    readMulti(await this.#call(opCodes.multi, encodeMulti(operations, this.#access), call), operations)
  }

  /** Ends the session, and its ephemeral nodes with it, where the server can be told. */
  async close(): Promise<void> {
    this.#isWanted = false
    this.#retry?.cancel()
    const connection = this.#connection
    this.#connection = undefined
    await connection?.request(opCodes.close, Buffer.alloc(0), 'close').catch(() => {})
    connection?.destroy()
  }

  get #access(): ZooKeeperAccess {
    return this.#auth === undefined ? 'world' : 'creator'
  }

  #callPath(type: number, path: string, name: string): Promise<JuteReader> {
    return this.#call(type, new JuteWriter().text(path).bool(false).done(), `${name} ${path}`)
  }

  #call(type: number, body: Uint8Array, call: string): Promise<JuteReader> {
    if (this.#connection === undefined) return Promise.reject(zooKeeperDown(`${call}: not connected`))
    return this.#connection.request(type, body, call)
  }

  async #orNothing<T>(read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (isZooKeeperError(error, 'NO_NODE')) return undefined
      throw error
    }
  }

  async #connectOnce(): Promise<void> {
    let lastError: unknown
    for (let tried = 0; tried < this.#servers.length; tried++) {
      const server = this.#servers[this.#nextServer++ % this.#servers.length]!
      try {
        await this.#connectTo(server)
        return
      } catch (error) {
        lastError = error
      }
    }
    throw lastError
  }

  async #connectTo(server: ServerAddress): Promise<void> {
    let connection: ZooKeeperConnection
    try {
      const wanted = { ...this.#session, timeoutMs: this.#sessionTimeoutMs }
      connection = await ZooKeeperConnection.open(server, wanted, this.#limits, (ended) => this.#lost(ended))
    } catch (error) {
      if (!isZooKeeperError(error, 'SESSION_EXPIRED') || this.#session.id === 0n) throw error
      this.#session = { ...noSession, timeoutMs: this.#sessionTimeoutMs }
      this.#tell('expired')
      return this.#connectTo(server)
    }
    if (!this.#isWanted) {
      connection.destroy()
      throw zooKeeperDown('the client was closed while it connected')
    }
    if (this.#auth !== undefined) {
      const body = new JuteWriter().int(0).text('digest').text(this.#auth).done()
      await connection.request(opCodes.auth, body, 'auth')
    }
    this.#session = connection.session
    this.#connection = connection
    this.#retryMs = firstRetryMs
    this.#tell('connected')
  }

  #lost(connection: ZooKeeperConnection): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#tell('disconnected')
    this.#retryLater()
  }

  #retryLater(): void {
    if (!this.#isWanted) return
    this.#retry?.cancel()
    this.#retry = this.#limits.runtime.timers.setTimeout(() => void this.connect().catch(() => {}), this.#retryMs)
    this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
  }

  #tell(event: SessionEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}

function parseServers(servers: string): ServerAddress[] {
  const addresses = servers.split(',').map((server) => {
    const match = server.trim().match(/^(\[[^\]]+\]|[^:[\]]+)(?::(\d+))?$/)
    const port = Number(match?.[2] ?? 2181)
    if (match === null || port < 1 || port > 65_535) {
      throw new InvalidOptionError('servers', servers, 'host:port, several with commas between them')
    }
    return { host: match[1]!.replace(/^\[|\]$/g, ''), port }
  })
  return addresses
}
