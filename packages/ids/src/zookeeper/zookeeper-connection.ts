import { connect, type Socket } from 'node:net'
import type { Runtime, TimerHandle } from '@firebreak/core'
import { IdsError, messageOf } from '../errors.ts'
import { JuteReader, JuteWriter } from './jute.ts'
import { opCodes, ZooKeeperError } from './operations.ts'

/** The session that a connection opens or resumes. */
export interface ZooKeeperSession {
  /** 0 asks for a new one. */
  readonly id: bigint
  readonly password: Buffer
  readonly timeoutMs: number
}

/** One server of the ensemble. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
}

interface Waiting {
  readonly call: string
  resolve(reader: JuteReader): void
  reject(error: Error): void
  readonly timer: TimerHandle
}

/** How long a connection waits, and by which clock. */
export interface ConnectionLimits {
  readonly connectTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly runtime: Runtime
}

const pingXid = -2
const watchXid = -1
const maxPacketBytes = 16 << 20

/** ZooKeeper cannot be asked: down, unreachable, or silent for too long. */
export function zooKeeperDown(what: string, cause?: unknown): IdsError {
  return new IdsError(
    'FB_IDS_REGISTRY_DOWN',
    `ZooKeeper: ${what}`,
    {},
    ...(cause === undefined ? [] : ([{ cause }] as const)),
  )
}

/**
 * One TCP connection to one ZooKeeper server, already shaken hands. Nothing here waits for ever: the handshake and each
 * request have a deadline, and a server that is silent for two thirds of the session's timeout is given up.
 */
export class ZooKeeperConnection {
  readonly session: ZooKeeperSession
  readonly #socket: Socket
  readonly #limits: ConnectionLimits
  readonly #waiting = new Map<number, Waiting>()
  readonly #onClose: (connection: ZooKeeperConnection) => void
  readonly #pinger: TimerHandle
  #unread: Buffer
  #nextXid = 1
  #heardAt: number
  #isClosed = false

  private constructor(
    socket: Socket,
    session: ZooKeeperSession,
    rest: Buffer,
    limits: ConnectionLimits,
    onClose: (connection: ZooKeeperConnection) => void,
  ) {
    this.#socket = socket
    this.session = session
    this.#unread = rest
    this.#limits = limits
    this.#heardAt = limits.runtime.clock.now()
    this.#onClose = onClose
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    socket.on('close', () => this.#end('the connection was lost'))
    this.#pinger = limits.runtime.timers.setInterval(() => this.#ping(), session.timeoutMs / 3)
  }

  /** Connects and shakes hands; a session that the server no longer knows comes back with a timeout of 0. */
  static open(
    server: ServerAddress,
    session: ZooKeeperSession,
    limits: ConnectionLimits,
    onClose: (connection: ZooKeeperConnection) => void,
  ): Promise<ZooKeeperConnection> {
    return new Promise((resolve, reject) => {
      const place = `${server.host}:${server.port}`
      const socket = connect({ host: server.host, port: server.port, noDelay: true })
      let received = Buffer.alloc(0)
      const fail = (what: string, cause?: unknown) => {
        timer.cancel()
        socket.removeAllListeners()
        socket.on('error', () => {})
        socket.destroy()
        reject(zooKeeperDown(what, cause))
      }
      const timer = limits.runtime.timers.setTimeout(
        () => fail(`${place} did not answer the handshake within ${limits.connectTimeoutMs} ms`),
        limits.connectTimeoutMs,
      )
      socket.on('error', (error) => fail(`cannot connect to ${place} (${messageOf(error)})`, error))
      socket.on('close', () => fail(`${place} closed the connection during the handshake`))
      socket.on('connect', () => {
        const hello = new JuteWriter().int(0).long(0n).int(session.timeoutMs).long(session.id).bytes(session.password)
        socket.write(hello.bool(false).packet())
      })
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk])
        if (received.length < 4 || received.length < 4 + received.readInt32BE()) return
        timer.cancel()
        socket.removeAllListeners()
        const length = received.readInt32BE()
        const reader = new JuteReader(received.subarray(4, 4 + length))
        reader.int()
        const timeoutMs = reader.int()
        const granted = { timeoutMs, id: reader.long(), password: Buffer.from(reader.bytes()) }
        if (timeoutMs <= 0) {
          socket.on('error', () => {})
          socket.destroy()
          reject(new ZooKeeperError(-112, 'the handshake'))
          return
        }
        const rest = Buffer.from(received.subarray(4 + length))
        resolve(new ZooKeeperConnection(socket, granted, rest, limits, onClose))
      })
    })
  }

  /** Sends one request and gives its reply's body. */
  request(type: number, body: Uint8Array, call: string): Promise<JuteReader> {
    if (this.#isClosed) return Promise.reject(zooKeeperDown(`${call}: the connection is closed`))
    const xid = type === opCodes.auth ? -4 : this.#nextXid++
    return new Promise((resolve, reject) => {
      const { requestTimeoutMs, runtime } = this.#limits
      const timer = runtime.timers.setTimeout(() => {
        this.#waiting.delete(xid)
        reject(zooKeeperDown(`${call} was not answered within ${requestTimeoutMs} ms`))
        // Replies come in the order of requests: after a lost one, nothing on this connection can be trusted to come.
        this.#socket.destroy()
      }, requestTimeoutMs)
      this.#waiting.set(xid, { call, resolve, reject, timer })
      this.#socket.write(new JuteWriter().int(xid).int(type).raw(body).packet())
    })
  }

  /** Ends the connection without a word to the server: the session lives on until its timeout. */
  destroy(): void {
    this.#socket.destroy()
  }

  #ping(): void {
    if (this.#limits.runtime.clock.now() - this.#heardAt > (this.session.timeoutMs * 2) / 3) {
      this.#socket.destroy()
      return
    }
    this.#socket.write(new JuteWriter().int(pingXid).int(opCodes.ping).packet())
  }

  #read(chunk: Buffer): void {
    this.#heardAt = this.#limits.runtime.clock.now()
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
    for (;;) {
      if (this.#unread.length < 4) return
      const length = this.#unread.readInt32BE()
      if (length < 0 || length > maxPacketBytes) {
        this.#socket.destroy()
        return
      }
      if (this.#unread.length < 4 + length) return
      const reader = new JuteReader(this.#unread.subarray(4, 4 + length))
      this.#unread = this.#unread.subarray(4 + length)
      this.#reply(reader)
    }
  }

  #reply(reader: JuteReader): void {
    const xid = reader.int()
    reader.long()
    const errorNumber = reader.int()
    if (xid === pingXid || xid === watchXid) return
    const waiting = this.#waiting.get(xid)
    if (waiting === undefined) return
    this.#waiting.delete(xid)
    waiting.timer.cancel()
    if (errorNumber === 0) waiting.resolve(reader)
    else waiting.reject(new ZooKeeperError(errorNumber, waiting.call))
  }

  #end(why: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#pinger.cancel()
    for (const { call, reject, timer } of this.#waiting.values()) {
      timer.cancel()
      reject(zooKeeperDown(`${call}: ${why}`))
    }
    this.#waiting.clear()
    this.#onClose(this)
  }
}
