import type { Runtime, TimerHandle } from '@firebreak/core'
import { encodeCommand, ReplyScanner } from '@firebreak/core/resp'
import { UpstreamLostError } from '../errors.ts'
import type { ConnectionWatch } from '../observe/node-health.ts'
import { Outlet } from '../transport/outlet.ts'
import type { ConnectTarget, Transport, TransportKind, TransportOwner } from '../transport/transport.ts'
import type { Turn } from '../transport/turn.ts'
import type { ConnectionState } from './identity.ts'

/** Receives what Redis sends on a connection. */
export interface ReplyReceiver {
  /**
   * A piece of a reply arrived: the bytes from `start` to `end`, the last piece if `isLast`. `type` is the reply's
   * first byte (0 while only its attributes have arrived), `>` for a push.
   */
  onReply(bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void
  /** The connection is gone. If it was not ready, nothing was sent. */
  onLost(error: UpstreamLostError, wasReady: boolean): void
  /** The output has been sent, or may be sent now. */
  onDrain?(): void
}

/** How connections to Redis are made. */
export interface UpstreamSettings {
  readonly transports: TransportKind
  /** Time limit for connecting, including retries, before what waits for it fails. */
  readonly connectWaitMs: number
  readonly runtime: Runtime
  /** The turn of the loop in which Redis sends something. */
  readonly turn: Turn
  /** Notified about their fate. */
  readonly watch?: ConnectionWatch
}

const retryMs = 25
const minus = 0x2d

/**
 * A connection to Redis that sets its user, protocol and database before anything else is sent on it.
 *
 * Output waits until the connection is ready, and is never sent if the server refuses one of the three: a command must
 * not run as another user or on another database. Connecting is retried until `connectWaitMs` have passed: nothing has
 * been sent, so nothing can happen twice.
 */
export class UpstreamConnection implements TransportOwner {
  readonly outlet: Outlet
  readonly state: ConnectionState
  readonly target: ConnectTarget
  receiver: ReplyReceiver
  readonly #settings: UpstreamSettings
  #scanner = new ReplyScanner({ maxBulkBytes: 2 ** 40 })
  #transport: Transport | undefined
  #isReady = false
  #isClosed = false
  #isFinished = false
  #greetings = 0
  #greeting: Buffer[] = []
  #isRefused = false
  #selectsFirst = false
  #lastReason = 'it does not answer'
  #noPermission: Buffer | undefined
  /** Incoming bytes are not parsed: the stream of a master is not a RESP reply. */
  isRaw = false
  readonly #since: number
  #retry: TimerHandle | undefined
  #deadline: TimerHandle | undefined
  /** Called once ready. */
  onReady: (() => void) | undefined
  /** Its name on the server; undefined if unknown. */
  name: string | undefined = ''
  /** The answer to the last command of the greeting, if there was one. */
  greetingReply: Buffer | undefined

  constructor(target: ConnectTarget, state: ConnectionState, receiver: ReplyReceiver, settings: UpstreamSettings) {
    this.target = target
    this.state = state
    this.receiver = receiver
    this.#settings = settings
    this.outlet = new Outlet('redis', settings.turn)
    this.#since = settings.runtime.clock.now()
    this.#connect()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get address(): string {
    return this.target.path ?? `${this.target.host}:${this.target.port}`
  }

  /** Its own address, as the server lists it; undefined if it has none, as over a unix socket. */
  get localAddress(): string | undefined {
    return this.#isReady && this.target.path === undefined ? this.#transport?.local : undefined
  }

  pause(): void {
    this.#transport?.pause()
  }

  resume(): void {
    this.#transport?.resume()
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  /** No more output: Redis answers what it got, gives up what waits for other clients, and closes the connection. */
  finish(): void {
    this.#isFinished = true
    if (!this.#isReady) return
    this.outlet.flush()
    this.#transport!.finish()
  }

  /** Closes it without notifying the receiver. */
  destroy(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#retry?.cancel()
    this.#deadline?.cancel()
    this.#transport?.destroy()
  }

  onData(bytes: Buffer, length: number): void {
    const { turn } = this.#settings
    turn.beginEvent()
    turn.read()
    this.#receive(bytes, length)
    turn.endEvent()
  }

  #receive(bytes: Buffer, length: number): void {
    if (this.isRaw && this.#isReady) {
      this.receiver.onReply(bytes, 0, length, false, 0)
      return
    }
    let at = 0
    const scanner = this.#scanner
    try {
      while (at < length && !this.#isClosed) {
        const end = scanner.scan(bytes, at, length)
        const isLast = scanner.isDone
        if (scanner.type === minus && isLast && this.#isReady) this.#settings.watch?.onErrorReply(bytes, at, end)
        if (this.#isReady) this.receiver.onReply(bytes, at, end, isLast, scanner.type)
        else this.#greeted(bytes, at, end, isLast, scanner.type)
        at = end
      }
    } catch (error) {
      this.lose(`it sent an invalid reply: ${(error as Error).message}`)
    }
  }

  onDrain(): void {
    this.receiver.onDrain?.()
  }

  onClose(error: Error | undefined): void {
    if (this.#isClosed) return
    const elapsedMs = this.#settings.runtime.clock.now() - this.#since
    const reason = error?.message ?? 'the connection was closed'
    if (this.#isReady || this.#isRefused || elapsedMs + retryMs > this.#settings.connectWaitMs) {
      this.lose(reason)
      return
    }
    this.#scanner = new ReplyScanner({ maxBulkBytes: 2 ** 40 })
    this.#lastReason = reason
    this.#retry = this.#settings.runtime.timers.setTimeout(() => this.#connect(), retryMs)
  }

  #connect(): void {
    const { runtime, connectWaitMs, transports } = this.#settings
    this.#deadline?.cancel()
    this.#deadline = runtime.timers.setTimeout(
      () => {
        if (!this.#isReady) this.lose(this.#lastReason)
      },
      Math.max(1, connectWaitMs - (runtime.clock.now() - this.#since)),
    )
    this.#transport = transports.connect(this.target, this, () => this.#greet())
  }

  #greet(): void {
    if (this.#isClosed) return
    const { identity, version, database } = this.state
    const commands: (string | Uint8Array)[][] = []
    const { username, password } = identity
    if (version === 3) {
      commands.push(password === undefined ? ['HELLO', '3'] : ['HELLO', '3', 'AUTH', username ?? 'default', password])
    } else if (password !== undefined) {
      commands.push(username === undefined ? ['AUTH', password] : ['AUTH', username, password])
    }
    if (database !== 0) {
      const select = ['SELECT', String(database)]
      if (this.#selectsFirst) commands.unshift(select)
      else commands.push(select)
    }
    this.#greetings = commands.length
    this.#greeting = []
    if (commands.length === 0) this.#ready()
    else this.#transport!.write(Buffer.concat(commands.map((command) => encodeCommand(command))))
  }

  #greeted(bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    this.#greeting.push(Buffer.from(bytes.subarray(start, end)))
    if (!isLast) return
    const reply = Buffer.concat(this.#greeting)
    this.#greeting = []
    this.#greetings--
    if (type === minus) this.#greetingRefused(reply)
    else {
      if (this.greetingReply === undefined) this.greetingReply = reply
      if (this.#greetings === 0) this.#ready()
    }
  }

  #greetingRefused(reply: Buffer): void {
    const text = reply.toString('latin1').slice(1).trim()
    if (text.startsWith('LOADING ')) {
      // For a while even HELLO is refused.
      this.#transport!.destroy()
    } else if (text.startsWith('NOPERM') && text.includes('select') && !this.#selectsFirst) {
      // A user may stay on a database that it may not select: its client was there before it authenticated.
      this.#selectsFirst = true
      this.#noPermission = reply
      this.#transport!.destroy()
    } else {
      this.#isRefused = true
      this.lose(`it answered ${text}`, this.#noPermission ?? reply)
    }
  }

  #ready(): void {
    this.#deadline?.cancel()
    this.#isReady = true
    this.outlet.open(this.#transport!)
    // What was waiting may have been sent at once.
    this.receiver.onDrain?.()
    this.onReady?.()
    this.onReady = undefined
    if (this.#isFinished) this.finish()
  }

  /** Closes it and notifies the receiver. */
  lose(reason: string, refusal?: Buffer): void {
    if (this.#isClosed) return
    const wasReady = this.#isReady
    this.destroy()
    this.#settings.watch?.onLost(refusal !== undefined)
    this.receiver.onLost(
      new UpstreamLostError(this.address, reason, refusal === undefined ? {} : { refusal }),
      wasReady,
    )
  }
}
