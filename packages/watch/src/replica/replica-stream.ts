import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import { openRespClient } from '@firebreak/core/node'
import { encodeCommand, RedisLostError, RedisReplyError, type RedisTarget, type RespClient } from '@firebreak/core/resp'
import type { ChangeListener, ChangeSource, SourceState } from '../change/change.ts'
import { ChangeReader } from '../change/change-reader.ts'
import { WatchError } from '../errors.ts'
import { MasterPoll } from './master-poll.ts'
import { ReplicaFeed, type ReplicaPosition } from './replica-feed.ts'

/** How a replica stream is read. */
export interface ReplicaStreamOptions {
  readonly address: RedisTarget
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
  /** Opens the two connections to the master. @default openRespClient of @firebreak/core/node */
  readonly open?: typeof openRespClient
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
  #client: RespClient | undefined
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
      open: openRespClient,
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
    void this.#follow()
  }

  async close(): Promise<void> {
    this.#setState({ kind: 'closed' })
    this.#timer?.cancel()
    this.#ack?.cancel()
    this.#poll.close()
    this.#client?.close()
  }

  #newReader(): ChangeReader {
    return new ChangeReader(this.#options.maxValueBytes, (change) => this.#listener.onChange(change))
  }

  /** Connects, says that we are a replica, and reads the stream until it breaks off. */
  async #follow(): Promise<void> {
    this.#isOnline = false
    try {
      const { address, open } = this.#options
      const client = await open(address, { name: 'firebreak-watch', runtime: this.#options })
      this.#client = client
      if (this.#state.kind === 'closed') client.close()
      await this.#introduce(client)
      await this.#poll.checkMaster()
      this.#read(client)
    } catch (error) {
      this.#lost(refusalOf(error as Error))
    }
  }

  async #introduce(client: RespClient): Promise<void> {
    await client.send(['PING'])
    // Port 0: nobody listens here, and INFO says so.
    await client.send(['REPLCONF', 'listening-port', '0'])
    await client.send(['REPLCONF', 'capa', 'eof', 'capa', 'psync2'])
    // An old server does not know it: then the RDB comes whole and is passed over.
    await client.send(['REPLCONF', 'rdb-filter-only', '']).catch(ignoreReply)
  }

  #read(client: RespClient): void {
    const feed = new ReplicaFeed(this.#position.offset, {
      onRefused: (line) => {
        throw new WatchError('FB_WATCH_REFUSED', `the master refused PSYNC: ${line}`)
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
      onOnline: () => this.#online(client),
      onCommand: (args) => this.#reader.read(args),
    })
    this.#feed = feed
    const onChunk = (chunk: Uint8Array) => {
      try {
        feed.feed(chunk)
        if (this.#isOnline) this.#poll.reached(feed.offset)
      } catch (error) {
        const isRefused = error instanceof WatchError && error.code === 'FB_WATCH_REFUSED'
        // Else the place in the stream is no longer sure: start over with a full resync, which flushes.
        if (!isRefused) this.#position = noPosition
        this.#feed = undefined
        throw error
      }
    }
    client.takeOver(this.#psync(), onChunk, (error) => this.#lost(error))
  }

  #psync(): Uint8Array {
    const { id, offset } = this.#position
    return encodeCommand(['PSYNC', id, id === '?' ? '-1' : String(offset + 1)])
  }

  #online(client: RespClient): void {
    this.#isOnline = true
    this.#failures = 0
    this.#acknowledge(client, ackMs.first)
    this.#poll.reached(this.#feed?.offset ?? 0)
    this.#judge()
  }

  /** After an RDB without a file the master sends nothing until an ACK comes, and it overhears one that is too early. */
  #acknowledge(client: RespClient, pauseMs: number): void {
    client.write(encodeCommand(['REPLCONF', 'ACK', '0']))
    this.#ack?.cancel()
    const next = () => this.#acknowledge(client, Math.min(ackMs.longest, pauseMs * 2))
    this.#ack = this.#options.timers.setTimeout(next, pauseMs)
  }

  #lost(error: Error): void {
    this.#ack?.cancel()
    this.#client?.close()
    this.#isOnline = false
    if (this.#feed !== undefined) this.#position = this.position
    if (this.#state.kind === 'closed') return
    // That a master closed the connection is what the state says.
    const isPlainClose =
      error instanceof RedisLostError && error.code === 'FB_REDIS_CLOSED' && error.cause === undefined
    if (!isPlainClose) this.#listener.onProblem?.(error)
    if (error instanceof WatchError && error.isFatal) {
      this.#setState({ kind: 'failed', reason: error.message })
      return
    }
    this.#setState({ kind: 'connecting', reason: 'the connection to the master was lost' })
    const [first, longest] = this.#options.retryMs
    const pauseMs = Math.min(longest, first * 2 ** this.#failures++) * (0.5 + this.#options.random() / 2)
    this.#timer = this.#options.timers.setTimeout(() => void this.#follow(), pauseMs)
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

function refusalOf(error: Error): Error {
  return error instanceof RedisReplyError ? new WatchError('FB_WATCH_REFUSED', error.message, { cause: error }) : error
}

function ignoreReply(error: unknown): void {
  if (!(error instanceof RedisReplyError)) throw error
}
