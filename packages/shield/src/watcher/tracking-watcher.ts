import { type Clock, keyName, type TimerHandle, type Timers } from '@firebreak/core'
import { encodeCommand, greet, isErrorReply, RespConnection, type RespValue, textOf } from '@firebreak/core/resp'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import { guardPipe } from '../trouble/guard.ts'
import type { Trouble } from '../trouble/trouble.ts'
import { encodeKeyRead, type KeyReading, keyReadReplies, parseKeyRead } from './key-read.ts'
import { endlessLease, type Lease } from './lease.ts'
import type { Upstream } from './upstream.ts'

/**
 * `live`: tracked; `fallback`: tracking was refused, values live for `fallbackTtlMs`; `refused`: the server refuses our
 * login; `down`: the connection was lost. In the last two nothing can be read.
 */
export type WatcherState = 'connecting' | 'live' | 'fallback' | 'refused' | 'down'

/** What a watcher is built from, and its callbacks. */
export interface TrackingWatcherOptions {
  readonly node: string
  readonly upstream: Upstream
  readonly leaseMs: number
  /** How to retry a lost connection. */
  readonly trackingRetry: RetryPolicy
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly trouble: Trouble
  /** These keys changed. */
  readonly onInvalidated: (names: readonly string[]) => void
  /** Everything that was read through this watcher must be dropped. */
  readonly onFlush: (cause: string) => void
}

/** Receives a key's reply, synchronously from the parser; undefined if it could not be read. */
export type ReadingHandler = (reading: KeyReading | undefined, sentAt: number) => void

interface Read {
  handler: ((reply: Uint8Array | undefined, sentAt: number) => void) | undefined
  readonly sentAt: number
}

/** The last database requested; reads sent after SELECT learn from it if they ran in another one. */
interface Selection {
  readonly database: number
  isRefused: boolean
}

const track = encodeCommand(['CLIENT', 'TRACKING', 'ON'])
/** Minimum time limit for a step of the greeting, so that recovery takes less than a second. */
const shortestStepMs = 400
/** Minimum pause before retrying a server that refuses our login. */
const refusedRetryMs = 1000
const movedPattern = /^-(MOVED|ASK|CLUSTERDOWN|TRYAGAIN)/

/**
 * The default watcher: our own connection to one node, in RESP3, with `CLIENT TRACKING ON`. Hot keys are read on this
 * very connection, so the server sends the reply and a later `invalidate` in the order in which they happened; both are
 * handled synchronously as they are parsed. A push that arrives before a reply was caused before it, so it cannot
 * outdate that reply; none that comes after it can be missed while the connection is up.
 *
 * The lease tells whether it is up. A PING is sent every third of a lease, and every answered request moves the end of
 * the lease to the moment it was *sent* plus the lease: pushes are in the same stream, so when an answer arrives,
 * everything that happened before the request was handled has arrived too. A black hole therefore ends serving by
 * itself, and reads that hang in it are given back to the application, which asks Redis on its own connection.
 */
export class TrackingWatcher {
  readonly node: string
  readonly #options: TrackingWatcherOptions
  readonly #lease: Lease = { aliveUntil: Number.NEGATIVE_INFINITY }
  #state: WatcherState = 'connecting'
  #detail = ''
  #connection: RespConnection | undefined
  #selection: Selection = { database: 0, isRefused: false }
  #reads = new Set<Read>()
  #ticks: TimerHandle | undefined
  #pings = 0
  /** When the lease was last held, or first needed, and how many connections in a row ended because it was not. */
  #heldAt = 0
  #lapses = 0
  readonly #retry: Retry
  #nextTry: TimerHandle | undefined
  #isStopped = false
  #isIdle = false

  constructor(options: TrackingWatcherOptions) {
    this.node = options.node
    this.#options = options
    this.#retry = new Retry(options.trackingRetry, options)
    this.#connect()
  }

  get state(): WatcherState {
    return this.#state
  }

  /** Explains its state. */
  get detail(): string {
    return this.#detail
  }

  /** The guard of a value read here. */
  get lease(): Lease {
    return this.#state === 'fallback' ? endlessLease : this.#lease
  }

  /** True while keys can be read here. */
  get canRead(): boolean {
    // The first read after an idle time renews the lease by its own answer.
    return this.#isGreeted && (this.#isIdle || this.#options.clock.now() < this.#lease.aliveUntil)
  }

  /** True if a lease expired although the connection is up, or if its tries or time are used up. */
  get isExpired(): boolean {
    if (this.#retry.isOver) return true
    return this.#isGreeted && !this.#isIdle && this.#options.clock.now() >= this.#lease.aliveUntil
  }

  /** Answers renew the lease; in fallback it guards no value, but still shows whether the connection is up. */
  get #isGreeted(): boolean {
    return this.#state === 'live' || this.#state === 'fallback'
  }

  /** Without hot keys there is nothing to guard: the connection stays, the pings stop. */
  setIdle(isIdle: boolean): void {
    if (this.#isIdle === isIdle) return
    this.#isIdle = isIdle
    if (isIdle || !this.#isGreeted) return
    this.#heldAt = this.#options.clock.now()
    this.#ping()
  }

  /** Reads a key with its remaining time. */
  read(database: number, key: Uint8Array, command: Uint8Array, handler: ReadingHandler): void {
    const handle = (reply: Uint8Array | undefined, sentAt: number) =>
      handler(reply === undefined ? undefined : parseKeyRead(reply), sentAt)
    this.transact(database, encodeKeyRead(key, command), keyReadReplies, handle)
  }

  /**
   * Sends encoded commands in a database; `handler` gets the last of `replyCount` replies, synchronously from the
   * parser, or undefined if the connection was lost, the database refused, or a lease passed without an answer.
   */
  transact(
    database: number,
    bytes: Uint8Array,
    replyCount: number,
    handler: (reply: Uint8Array | undefined, sentAt: number) => void,
  ): void {
    const connection = this.#connection!
    const read: Read = { handler, sentAt: this.#options.clock.now() }
    this.#reads.add(read)
    const selection = this.#select(connection, database)
    connection.send(bytes, replyCount, (reply, index) => {
      if (reply !== undefined && isErrorReply(reply)) this.#readRefused(reply)
      if (index < replyCount - 1) return
      if (reply !== undefined) this.#extendLease(connection)
      this.#finish(read, selection.isRefused ? undefined : reply)
    })
  }

  #select(connection: RespConnection, database: number): Selection {
    if (this.#selection.database === database && !this.#selection.isRefused) return this.#selection
    const selection: Selection = { database, isRefused: false }
    this.#selection = selection
    connection.send(encodeCommand(['SELECT', database]), 1, (reply) => {
      selection.isRefused = reply === undefined || isErrorReply(reply)
    })
    return selection
  }

  /** Calls back if the node says that it does not own the key's slot. */
  probe(key: Uint8Array, onMoved: () => void): void {
    if (!this.canRead) return
    this.#connection!.send(encodeCommand(['PTTL', key]), 1, (reply) => {
      if (reply !== undefined && movedPattern.test(lineOf(reply))) onMoved()
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#nextTry?.cancel()
    this.#lost()
    this.#connection?.close()
  }

  #connect(): void {
    if (this.#isStopped) return
    const { upstream } = this.#options
    // A refusal stays visible until it is known to be over.
    if (this.#state !== 'refused') this.#state = 'connecting'
    let connection: RespConnection
    try {
      connection = new RespConnection(guardPipe(upstream.connect(this.node), this.#options.trouble), {
        address: this.node,
        runtime: this.#options,
        onPush: (items) => {
          const drop = () => connection.close()
          this.#options.trouble.attempt(() => this.#pushed(connection, items), drop)
        },
        onClose: (error) => this.#closed(connection, error),
      })
    } catch (error) {
      this.#closed(undefined, error)
      return
    }
    this.#connection = connection
    this.#selection = { database: 0, isRefused: false }
    this.#ticks?.cancel()
    this.#ticks = this.#options.timers.setInterval(() => this.#tick(), this.#options.leaseMs / 3)
    this.#greet(connection)
  }

  /** Sends HELLO 3 with the credentials, then enables tracking; a server without RESP3 uses the fallback. */
  #greet(connection: RespConnection): void {
    greet(connection, { ...this.#options.upstream.credentials(), version: 3 }, (result) => {
      if (result.kind === 'refused') this.#refused(connection, result.reply.text)
      else if (result.kind === 'ready' && result.version === 3) this.#track(connection)
      else if (result.kind === 'ready')
        this.#fallBack(connection, result.helloRefusal ?? 'the server does not support HELLO')
    })
  }

  #track(connection: RespConnection): void {
    connection.send(track, 1, (reply) => {
      if (reply === undefined) return
      if (isErrorReply(reply)) this.#fallBack(connection, lineOf(reply).slice(1))
      else {
        this.#greeted(connection, 'live', '')
        this.#options.trouble.clear('tracking-refused')
      }
    })
  }

  #greeted(connection: RespConnection, state: 'live' | 'fallback', detail: string): void {
    this.#state = state
    this.#heldAt = this.#options.clock.now()
    this.#detail = detail
    this.#retry.succeeded()
    this.#extendLease(connection)
  }

  #fallBack(connection: RespConnection, why: string): void {
    this.#greeted(connection, 'fallback', `tracking was refused: ${why}`)
    this.#options.trouble.note(
      'tracking-refused',
      `${this.node} refuses CLIENT TRACKING (${why}); cached values only live for fallbackTtlMs`,
    )
  }

  #refused(connection: RespConnection, why: string): void {
    this.#detail = `the connection was refused: ${why}`
    this.#options.trouble.note('watcher-refused', `the shield cannot read from ${this.node}: ${why}`)
    this.#state = 'refused'
    connection.close()
  }

  #readRefused(reply: Uint8Array): void {
    if (movedPattern.test(lineOf(reply))) this.#options.upstream.refresh?.()
  }

  #tick(): void {
    const { clock, leaseMs } = this.#options
    const now = clock.now()
    if (this.#state === 'connecting' || this.#state === 'refused') {
      // A step that takes longer than a lease would leave nothing to serve; reconnecting recovers faster than TCP.
      const connection = this.#connection
      if (connection !== undefined && now - connection.heardAt > Math.max(shortestStepMs, leaseMs)) connection.close()
      return
    }
    // Nobody waits longer than a lease for us.
    for (const read of this.#reads) if (now - read.sentAt > leaseMs) this.#finish(read, undefined)
    if (!this.#isGreeted || (this.#isIdle && this.#reads.size === 0)) return
    this.#ping()
    // A connection that holds no lease may be silently dead: a new one recovers faster than TCP gives up. Over a link
    // slower than the lease a new one is no better, so failed attempts back off.
    if (this.#isIdle || now < this.#lease.aliveUntil) {
      this.#heldAt = now
      this.#lapses = 0
    } else if (now - this.#heldAt > leaseMs * 2 * 2 ** Math.min(6, this.#lapses)) {
      this.#lapses++
      this.#connection?.close()
    }
  }

  #ping(): void {
    const connection = this.#connection!
    const word = String(++this.#pings)
    connection.send(encodeCommand(['PING', word]), 1, (reply) => {
      if (reply === undefined) return
      // Something in between lost a request or a reply: from here on every answer would belong to another request.
      if (!isErrorReply(reply) && lineOf(reply.subarray(reply.indexOf(0x0a) + 1)) !== word) connection.close()
      else this.#extendLease(connection)
    })
  }

  #extendLease(connection: RespConnection): void {
    if (this.#connection !== connection || !this.#isGreeted) return
    const until = connection.answeredSentAt + this.#options.leaseMs
    if (until > this.#lease.aliveUntil) this.#lease.aliveUntil = until
  }

  #finish(read: Read, reply: Uint8Array | undefined): void {
    const { handler } = read
    if (handler === undefined) return
    read.handler = undefined
    this.#reads.delete(read)
    const { trouble } = this.#options
    trouble.attempt(
      () => handler(reply, read.sentAt),
      () => reply !== undefined && handler(undefined, read.sentAt),
    )
  }

  #pushed(connection: RespConnection, items: readonly RespValue[]): void {
    if (this.#connection !== connection || !isWord(items[0], 'invalidate')) return
    const keys = items[1]
    if (Array.isArray(keys)) this.#options.onInvalidated(keys.map((key) => keyName(key as string | Uint8Array)))
    else this.#options.onFlush('the server flushed its data')
  }

  #closed(connection: RespConnection | undefined, error: unknown): void {
    if (this.#connection !== connection || this.#isStopped) return
    this.#connection = undefined
    this.#lost()
    if (this.#state !== 'refused') this.#detail = error instanceof Error ? error.message : 'the connection was closed'
    const pauseMs =
      this.#state === 'refused'
        ? this.#retry.failed({ leastMs: Math.max(refusedRetryMs, this.#retry.policy.mostMs) })
        : this.#retry.failed()
    if (this.#retry.isOver) this.#overdue(pauseMs === undefined)
    if (pauseMs !== undefined) this.#nextTry = this.#options.timers.setTimeout(() => this.#connect(), pauseMs)
  }

  /**
   * The tries or the time are used up: nothing is read here until it recovers or, if given up, until the process
   * restarts.
   */
  #overdue(isGivenUp: boolean): void {
    const what = isGivenUp ? 'given up until this process is restarted' : 'still retrying'
    this.#detail += `; ${what} after ${this.#retry.summary}`
    this.#options.trouble.note('watcher-lost', `the shield is not notified of changes on ${this.node}: ${this.#detail}`)
  }

  #lost(): void {
    if (this.#state !== 'refused') this.#state = 'down'
    this.#lease.aliveUntil = Number.NEGATIVE_INFINITY
    this.#ticks?.cancel()
    for (const read of this.#reads) this.#finish(read, undefined)
    // The connection is reopened even if this throws.
    this.#options.trouble.attempt(() => this.#options.onFlush('the watcher was lost'))
  }
}

function lineOf(reply: Uint8Array): string {
  const end = reply.indexOf(0x0d)
  return textOf(reply, 0, end < 0 ? reply.length : end)
}

function isWord(value: RespValue | undefined, word: string): boolean {
  if (typeof value === 'string') return value === word
  return value instanceof Uint8Array && textOf(value, 0, value.length) === word
}
