import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Runtime, TimerHandle } from '@firebreak/core'
import { type DownError, messageOf } from '../errors.ts'
import type { ClientTls } from '../tls-files.ts'
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
  /** With TLS, and a certificate for the server's name signed by an authority that this process trusts. */
  readonly isTls: boolean
  readonly tls: ClientTls
  readonly keepsAlive: boolean
  /** Makes the error for a ZooKeeper that cannot be reached. */
  readonly down: DownError
  readonly runtime: Runtime
}

/** What a connection reports to its owner. */
export interface ConnectionOwner {
  /** The last change of the ensemble that we have seen: a server that is behind it must not be asked. */
  lastZxid: bigint
  onClose(connection: ZooKeeperConnection): void
  /** A watched node was changed, created or deleted. */
  onWatch(path: string): void
}

const pingXid = -2
const watchXid = -1
const maxPacketBytes = 16 << 20

/**
 * One TCP connection to one ZooKeeper server, after the handshake. Nothing here waits forever: the handshake and each
 * request have a deadline, and a server that is silent for two thirds of the session timeout is given up.
 */
export class ZooKeeperConnection {
  readonly session: ZooKeeperSession
  readonly #socket: Socket
  readonly #limits: ConnectionLimits
  readonly #waiting = new Map<number, Waiting>()
  readonly #owner: ConnectionOwner
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
    owner: ConnectionOwner,
  ) {
    this.#socket = socket
    this.session = session
    this.#unread = rest
    this.#limits = limits
    this.#heardAt = limits.runtime.clock.now()
    this.#owner = owner
    socket.on('data', (chunk) => this.#read(chunk))
    socket.on('error', () => {})
    socket.on('close', () => this.#end('the connection was lost'))
    this.#pinger = limits.runtime.timers.setInterval(() => this.#ping(), session.timeoutMs / 3)
  }

  /** Connects and performs the handshake; a session that the server no longer knows comes back with a timeout of 0. */
  static open(
    server: ServerAddress,
    session: ZooKeeperSession,
    limits: ConnectionLimits,
    owner: ConnectionOwner,
  ): Promise<ZooKeeperConnection> {
    return new Promise((resolve, reject) => {
      const place = `${server.host}:${server.port}`
      const address = { host: server.host, port: server.port, noDelay: true }
      const name = isIP(server.host) === 0 ? { servername: server.host } : {}
      const socket: Socket = limits.isTls ? connectTls({ ...address, ...name, ...limits.tls }) : connect(address)
      if (!limits.keepsAlive) socket.unref()
      let received = Buffer.alloc(0)
      const fail = (what: string, cause?: unknown) => {
        timer.cancel()
        socket.removeAllListeners()
        socket.on('error', () => {})
        socket.destroy()
        reject(limits.down(`ZooKeeper: ${what}`, cause))
      }
      const timer = limits.runtime.timers.setTimeout(
        () => fail(`${place} did not answer the handshake within ${limits.connectTimeoutMs} ms`),
        limits.connectTimeoutMs,
      )
      socket.on('error', (error) => fail(`cannot connect to ${place} (${messageOf(error)})`, error))
      socket.on('close', () => fail(`${place} closed the connection during the handshake`))
      socket.on(limits.isTls ? 'secureConnect' : 'connect', () => {
        const hello = new JuteWriter()
          .int(0)
          .long(owner.lastZxid)
          .int(session.timeoutMs)
          .long(session.id)
          .bytes(session.password)
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
        resolve(new ZooKeeperConnection(socket, granted, rest, limits, owner))
      })
    })
  }

  /** Sends one request and returns the body of its reply. */
  request(type: number, body: Uint8Array, call: string): Promise<JuteReader> {
    if (this.#isClosed) return Promise.reject(this.#down(`${call}: the connection is closed`))
    const xid = type === opCodes.auth ? -4 : this.#nextXid++
    return new Promise((resolve, reject) => {
      const { requestTimeoutMs, runtime } = this.#limits
      const timer = runtime.timers.setTimeout(() => {
        this.#waiting.delete(xid)
        reject(this.#down(`${call} was not answered within ${requestTimeoutMs} ms`))
        // Replies arrive in the order of requests: after a missing one, no reply on this connection can be relied on.
        this.#socket.destroy()
      }, requestTimeoutMs)
      this.#waiting.set(xid, { call, resolve, reject, timer })
      this.#socket.write(new JuteWriter().int(xid).int(type).raw(body).packet())
    })
  }

  /** Closes the connection without notifying the server: the session lives on until its timeout. */
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
    const zxid = reader.long()
    if (zxid > this.#owner.lastZxid) this.#owner.lastZxid = zxid
    const errorNumber = reader.int()
    if (xid === pingXid) return
    if (xid === watchXid) {
      // Its type and the state of the session: whatever it is, the node is read again.
      reader.int()
      reader.int()
      this.#owner.onWatch(reader.text())
      return
    }
    const waiting = this.#waiting.get(xid)
    if (waiting === undefined) return
    this.#waiting.delete(xid)
    waiting.timer.cancel()
    if (errorNumber === 0) waiting.resolve(reader)
    else waiting.reject(new ZooKeeperError(errorNumber, waiting.call))
  }

  #down(what: string): Error {
    return this.#limits.down(`ZooKeeper: ${what}`)
  }

  #end(why: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#pinger.cancel()
    for (const { call, reject, timer } of this.#waiting.values()) {
      timer.cancel()
      reject(this.#down(`${call}: ${why}`))
    }
    this.#waiting.clear()
    this.#owner.onClose(this)
  }
}
