import { InvalidOptionError, type Runtime, systemRuntime, type TimerHandle } from '@firebreak/core'
import { centreDown, type DownError } from '../errors.ts'
import type { ClientTls } from '../tls-files.ts'
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
  type ConnectionOwner,
  type ServerAddress,
  ZooKeeperConnection,
  type ZooKeeperSession,
} from './zookeeper-connection.ts'

/** How a ZooKeeper client connects. */
export interface ZooKeeperClientOptions {
  /** `host:port`, several separated by commas; prefix with `zookeepers://` for TLS with a valid certificate. */
  readonly servers: string
  /** How long the server keeps a silent client's ephemeral nodes; the server may grant less or more. @default 6000 */
  readonly sessionTimeoutMs?: number
  /** Time limit for the connection and handshake with one server. @default 2000 */
  readonly connectTimeoutMs?: number
  /** Time limit for one request. @default 3000 */
  readonly requestTimeoutMs?: number
  /** `user:password` of ZooKeeper's digest scheme; new nodes are then accessible only to this user. @default none */
  readonly auth?: string
  /** For `zookeepers://`, in addition to the authorities that Node trusts. @default {} */
  readonly tls?: ClientTls
  /** False: the connection does not keep the process alive. @default true */
  readonly keepsAlive?: boolean
  /** The error for callers when no server can be reached. @default a CentreError FB_CENTRE_DOWN */
  readonly downError?: DownError
  /** @default the system's */
  readonly runtime?: Runtime
}

/** What happened to the session. */
export type SessionEvent = 'connected' | 'disconnected' | 'expired'

const noSession: Pick<ZooKeeperSession, 'id' | 'password'> = { id: 0n, password: Buffer.alloc(16) }
const firstRetryMs = 100
const maxRetryMs = 2000
/**
 * After this many consecutive failed rounds over all servers, a server that is behind what we have seen is accepted
 * too.
 */
const forgetAfterRounds = 10
const tlsScheme = 'zookeepers://'

/**
 * A small ZooKeeper client: a session with whichever server answers, and the eight calls that worker registration and
 * tables need. Calls made while disconnected fail at once; nothing is queued and nothing hangs. It reconnects in the
 * background with the same session; if the server has forgotten that session, it reports `expired` and starts a new
 * one: its ephemeral nodes are then gone.
 */
export class ZooKeeperClient {
  readonly #servers: readonly ServerAddress[]
  readonly #sessionTimeoutMs: number
  readonly #limits: ConnectionLimits
  readonly #auth: string | undefined
  readonly #listeners = new Set<(event: SessionEvent) => void>()
  readonly #watchers = new Map<string, Set<() => void>>()
  readonly #owner: ConnectionOwner = {
    lastZxid: 0n,
    onClose: (connection) => this.#lost(connection),
    onWatch: (path) => {
      for (const changed of [...(this.#watchers.get(path) ?? [])]) changed()
    },
  }
  #connection: ZooKeeperConnection | undefined
  #session: ZooKeeperSession
  #connecting: Promise<void> | undefined
  #isWanted = false
  #retry: TimerHandle | undefined
  #retryMs = firstRetryMs
  #nextServer = 0
  #failedRounds = 0

  constructor(options: ZooKeeperClientOptions) {
    this.#servers = parseServers(options.servers)
    this.#sessionTimeoutMs = options.sessionTimeoutMs ?? 6000
    this.#limits = {
      connectTimeoutMs: options.connectTimeoutMs ?? 2000,
      isTls: options.servers.startsWith(tlsScheme),
      tls: options.tls ?? {},
      keepsAlive: options.keepsAlive ?? true,
      down: options.downError ?? centreDown,
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

  /** Calls back on every change of the session; returns a function that unsubscribes. */
  onSession(listener: (event: SessionEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Tries every server once; rejects with `FB_CENTRE_DOWN` if none answers, but keeps trying. */
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

  /** Creates a node and returns its path, which for a sequential one is only known now. */
  async create(path: string, data: string, mode: CreateMode): Promise<string> {
    const body = encodeOperation({ kind: 'create', path, data, mode }, this.#access)
    return (await this.#call(opCodes.create, body, `create ${path}`)).text()
  }

  /** Creates a persistent node and its parents, unless they exist. */
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

  /**
   * Reads a node, undefined if it does not exist, and calls `onChanged` once when it is changed, created or deleted. A
   * lost connection loses the watch: read again on the session's next event. Returns the data, and a function that ends
   * the watch.
   */
  async readAndWatch(
    path: string,
    onChanged: () => void,
  ): Promise<{ readonly data: string | undefined; unwatch(): void }> {
    const watchers = this.#watchers.get(path) ?? new Set()
    this.#watchers.set(path, watchers)
    const changed = () => {
      unwatch()
      onChanged()
    }
    const unwatch = () => {
      watchers.delete(changed)
      if (watchers.size === 0 && this.#watchers.get(path) === watchers) this.#watchers.delete(path)
    }
    watchers.add(changed)
    try {
      const read = () => this.#callPath(opCodes.getData, path, 'getData', true)
      const found = await this.#orNothing(async () => (await read()).text())
      if (found !== undefined) return { data: found, unwatch }
      // `getData` leaves no watch if the node does not exist. One created in between is read in the next round.
      const made = await this.#orNothing(async () =>
        readStat(await this.#callPath(opCodes.exists, path, 'exists', true)),
      )
      if (made !== undefined) queueMicrotask(changed)
      return { data: undefined, unwatch }
    } catch (error) {
      unwatch()
      throw error
    }
  }

  async setData(path: string, data: string, version = -1): Promise<ZooKeeperStat> {
    const body = encodeOperation({ kind: 'setData', path, data, version }, this.#access)
    return readStat(await this.#call(opCodes.setData, body, `setData ${path}`))
  }

  /** The names of the nodes below `path`, in no particular order. */
  async getChildren(path: string): Promise<string[]> {
    const reader = await this.#callPath(opCodes.getChildren, path, 'getChildren')
    return reader.list(() => reader.text())
  }

  /** Runs all of the operations or none. */
  async multi(operations: readonly ZooKeeperOperation[]): Promise<void> {
    const call = `a transaction on ${operations.map(({ path }) => path).join(', ')}`
    readMulti(await this.#call(opCodes.multi, encodeMulti(operations, this.#access), call), operations)
  }

  /** Ends the session, and its ephemeral nodes with it, if the server can be told. */
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

  #callPath(type: number, path: string, name: string, isWatched = false): Promise<JuteReader> {
    return this.#call(type, new JuteWriter().text(path).bool(isWatched).done(), `${name} ${path}`)
  }

  #call(type: number, body: Uint8Array, call: string): Promise<JuteReader> {
    if (this.#connection === undefined) return Promise.reject(this.#limits.down(`ZooKeeper: ${call}: not connected`))
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
        this.#failedRounds = 0
        return
      } catch (error) {
        lastError = error
      }
    }
    // Servers hang up on a client that has seen more than they have: an ensemble that lost its data never catches up.
    if (++this.#failedRounds >= forgetAfterRounds) this.#owner.lastZxid = 0n
    throw lastError
  }

  async #connectTo(server: ServerAddress): Promise<void> {
    let connection: ZooKeeperConnection
    try {
      const wanted = { ...this.#session, timeoutMs: this.#sessionTimeoutMs }
      connection = await ZooKeeperConnection.open(server, wanted, this.#limits, this.#owner)
    } catch (error) {
      if (!isZooKeeperError(error, 'SESSION_EXPIRED') || this.#session.id === 0n) throw error
      this.#session = { ...noSession, timeoutMs: this.#sessionTimeoutMs }
      this.#tell('expired')
      return this.#connectTo(server)
    }
    if (!this.#isWanted) {
      connection.destroy()
      throw this.#limits.down('ZooKeeper: the client was closed while it connected')
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
  const addresses = servers
    .replace(tlsScheme, '')
    .split(',')
    .map((server) => {
      const match = server.trim().match(/^(\[[^\]]+\]|[^:[\]]+)(?::(\d+))?$/)
      const port = Number(match?.[2] ?? 2181)
      if (match === null || port < 1 || port > 65_535) {
        throw new InvalidOptionError('servers', servers, 'host:port, several separated by commas')
      }
      return { host: match[1]!.replace(/^\[|\]$/g, ''), port }
    })
  return addresses
}
