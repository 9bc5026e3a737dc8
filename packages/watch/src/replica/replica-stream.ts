import type { Socket } from 'node:net'
import { type Clock, encodeCommand, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import type { ChangeListener, ChangeSource, SourceState } from '../change/change.ts'
import { ChangeReader } from '../change/change-reader.ts'
import { authCommand, openSocket, type ServerAddress } from '../connect/server-address.ts'
import { WatchError } from '../errors.ts'
import { MasterPoll } from './master-poll.ts'
import { ReplicaFeed, type ReplicaPosition } from './replica-feed.ts'

/** How a replica stream is read. */
export interface ReplicaStreamOptions {
  readonly address: ServerAddress
  /** Values up to this many bytes travel with the change. @default 1024 */
  readonly maxValueBytes?: number
  /** Where the stream was left, to go on from there. @default none: a full resync, which flushes */
  readonly position?: ReplicaPosition
  /** Run although the master counts replicas for `min-replicas-to-write`: we would count as one. @default false */
  readonly allowMinReplicas?: boolean
  /** Run although a Sentinel watches this master: it would list us as a replica that it cannot reach. @default false */
  readonly allowSentinel?: boolean
  /** How often the master's offset is asked for. @default 100 */
  readonly pollMs?: number
  /** Without an answer to a poll for this long the source is no longer live. @default 300 */
  readonly leaseMs?: number
  /** Behind the master by more than this is `lagging`. @default 1048576 */
  readonly maxBehindBytes?: number
  /** First and longest pause before a reconnect. @default 50 and 2000 */
  readonly retryMs?: readonly [number, number]
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

const noPosition: ReplicaPosition = { id: '?', offset: -1 }
/** The pause between acknowledgements: short at first, then a replica's usual second. */
const ackMs = { first: 20, longest: 1000 }

/**
 * Follows a master as a replica that keeps nothing: every write of every client, script and expiry, in order, and
 * across a reconnect from the very byte where it broke off.
 *
 * - The RDB of a full resync is asked for empty (`rdb-filter-only ""`, Redis ≥ 7) and passed over otherwise. A full
 *   resync means that writes were missed: it is told as a flush.
 * - We acknowledge offset 0, so that `WAIT` never counts us as a copy of the data.
 * - A quiet master sends nothing for ten seconds. That the stream is alive is known from a second connection that polls
 *   `master_repl_offset`: we are live while the last answered poll is younger than the lease and we have what it named.
 * - `min-replicas-to-write` would count us, and a Sentinel would list us: both are refused unless allowed.
 */
export class ReplicaStream implements ChangeSource {
  readonly #options: Required<Omit<ReplicaStreamOptions, 'position'>>
  readonly #listener: ChangeListener
  readonly #poll: MasterPoll
  #reader: ChangeReader
  #position: ReplicaPosition
  #feed: ReplicaFeed | undefined
  #socket: Socket | undefined
  #timer: TimerHandle | undefined
  #ack: TimerHandle | undefined
  #failures = 0
  #state: SourceState = { kind: 'connecting', reason: 'not started' }
  #isOnline = false

  constructor(options: ReplicaStreamOptions, listener: ChangeListener) {
    this.#options = {
      maxValueBytes: 1024,
      allowMinReplicas: false,
      allowSentinel: false,
      pollMs: 100,
      leaseMs: 300,
      maxBehindBytes: 1024 * 1024,
      retryMs: [50, 2000],
      clock: steadyClock,
      timers: systemTimers,
      random: Math.random,
      ...options,
    }
    this.#listener = listener
    this.#position = options.position ?? noPosition
    this.#reader = this.#newReader()
    this.#poll = new MasterPoll(this.#options, () => this.#judge())
  }

  get state(): SourceState {
    return this.#state
  }

  /** Where the stream is; hand it to a new stream to go on from there. */
  get position(): ReplicaPosition {
    return { id: this.#position.id, offset: this.#feed?.offset ?? this.#position.offset }
  }

  /** When the last poll that we have caught up with was sent, by the clock; caches may serve until a lease later. */
  get liveSentAt(): number {
    return this.#poll.caughtUpSentAt
  }

  start(): void {
    if (this.#state.kind === 'closed') return
    this.#poll.start()
    this.#connect()
  }

  async close(): Promise<void> {
    this.#setState({ kind: 'closed' })
    this.#timer?.cancel()
    this.#ack?.cancel()
    this.#poll.close()
    this.#socket?.destroy()
  }

  #newReader(): ChangeReader {
    return new ChangeReader(this.#options.maxValueBytes, (change) => this.#listener.onChange(change))
  }

  #connect(): void {
    const { address } = this.#options
    this.#isOnline = false
    const socket = openSocket(address)
    this.#socket = socket
    const auth = authCommand(address)
    const steps: string[][] = [
      ...(auth === undefined ? [] : [auth]),
      ['PING'],
      // Port 0: nobody listens here, and INFO says so.
      ['REPLCONF', 'listening-port', '0'],
      ['REPLCONF', 'capa', 'eof', 'capa', 'psync2'],
      ['REPLCONF', 'rdb-filter-only', ''],
    ]
    let step = 0
    const next = () => {
      const command = steps[step++]
      if (command !== undefined) socket.write(encodeCommand(command))
      else
        this.#poll.checkMaster().then(
          () => socket.write(this.#psync()),
          (error: Error) => this.#refuse(error),
        )
    }
    const feed = new ReplicaFeed(this.#position.offset, {
      onHandshakeLine: (line) => {
        const sent = steps[step - 1]
        // An old server does not know `rdb-filter-only`: then the RDB comes whole and is passed over.
        if (line.startsWith('-') && sent?.[1] !== 'rdb-filter-only') {
          this.#refuse(
            new WatchError('FB_WATCH_REFUSED', `the master refused ${sent?.[0] ?? 'PSYNC'}: ${line.slice(1)}`),
          )
        } else {
          next()
        }
      },
      onFullResync: (position) => {
        this.#position = position
        this.#reader = this.#newReader()
        this.#listener.onChange({
          kind: 'flush',
          database: -1,
          reason: 'the replica stream was resynchronised in full: writes may have been missed',
        })
      },
      onContinue: (id) => {
        if (id !== undefined) this.#position = { id, offset: this.#position.offset }
      },
      onOnline: () => this.#online(socket),
      onCommand: (args) => this.#reader.read(args),
    })
    this.#feed = feed
    socket.on('connect', next)
    socket.on('data', (chunk) => {
      try {
        feed.feed(chunk)
        if (this.#isOnline) this.#poll.reached(feed.offset)
      } catch (error) {
        // The place in the stream is no longer sure: start over with a full resync, which flushes.
        this.#position = noPosition
        this.#feed = undefined
        this.#listener.onProblem?.(error as Error)
        socket.destroy()
      }
    })
    socket.on('error', (error) => this.#listener.onProblem?.(error))
    socket.on('close', () => this.#lost(socket))
  }

  #psync(): Uint8Array {
    const { id, offset } = this.#position
    return encodeCommand(['PSYNC', id, id === '?' ? '-1' : String(offset + 1)])
  }

  #online(socket: Socket): void {
    this.#isOnline = true
    this.#failures = 0
    this.#acknowledge(socket, ackMs.first)
    this.#poll.reached(this.#feed?.offset ?? 0)
    this.#judge()
  }

  /** After an RDB without a file the master sends nothing until an ACK comes, and it overhears one that is too early. */
  #acknowledge(socket: Socket, pauseMs: number): void {
    socket.write(encodeCommand(['REPLCONF', 'ACK', '0']))
    this.#ack?.cancel()
    const next = () => this.#acknowledge(socket, Math.min(ackMs.longest, pauseMs * 2))
    this.#ack = this.#options.timers.setTimeout(next, pauseMs)
  }

  #refuse(error: Error): void {
    this.#listener.onProblem?.(error)
    if (error instanceof WatchError && error.isFatal) this.#setState({ kind: 'failed', reason: error.message })
    this.#socket?.destroy()
  }

  #lost(socket: Socket): void {
    if (this.#socket !== socket || this.#state.kind === 'closed') return
    this.#ack?.cancel()
    this.#isOnline = false
    if (this.#feed !== undefined) this.#position = this.position
    if (this.#state.kind === 'failed') return
    this.#setState({ kind: 'connecting', reason: 'the connection to the master was lost' })
    const [first, longest] = this.#options.retryMs
    const pauseMs = Math.min(longest, first * 2 ** this.#failures++) * (0.5 + this.#options.random() / 2)
    this.#timer = this.#options.timers.setTimeout(() => this.#connect(), pauseMs)
  }

  /** Live only while a recent poll named an offset that we have. */
  #judge(): void {
    if (this.#state.kind === 'closed' || this.#state.kind === 'failed' || !this.#isOnline) return
    const { behindBytes, isFresh } = this.#poll
    if (!isFresh) this.#setState({ kind: 'connecting', reason: 'the master does not answer the poll of its offset' })
    else if (behindBytes > this.#options.maxBehindBytes) this.#setState({ kind: 'lagging', behindBytes })
    else this.#setState({ kind: 'live' })
  }

  #setState(state: SourceState): void {
    const isSame = state.kind === this.#state.kind && state.kind !== 'connecting'
    if (this.#state.kind === 'closed' || isSame) return
    this.#state = state
    this.#listener.onState?.(state)
  }
}
