import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import { openRespClient } from '@firebreak/core/node'
import { encodeCommand, RedisLostError, RedisReplyError, type RedisTarget, type RespClient } from '@firebreak/core/resp'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import type { ChangeListener, ChangeSource, SourceState } from '../change/change.ts'
import { ChangeReader } from '../change/change-reader.ts'
import { sourceRetrySteps } from '../change/source-retry.ts'
import { WatchError } from '../errors.ts'
import { MasterPoll } from './master-poll.ts'
import { ReplicaFeed, type ReplicaPosition } from './replica-feed.ts'

/** How a replica stream is read. */
export interface ReplicaStreamOptions {
  readonly address: RedisTarget
  /** Values up to this many bytes are sent along with the change. @default 1024 */
  readonly maxValueBytes?: number
  /** Where to resume the stream. @default none: a full resync, which counts as a flush */
  readonly position?: ReplicaPosition
  /** Run even if the master has `min-replicas-to-write` set: we would count as a replica. @default false */
  readonly allowMinReplicas?: boolean
  /** Run even if a Sentinel watches this master: it would list us as an unreachable replica. @default false */
  readonly allowSentinel?: boolean
  /** How often to ask for the master's offset. @default 100 */
  readonly pollMs?: number
  /** The source is no longer live after this long without an answer to a poll. @default 300 */
  readonly leaseMs?: number
  /** `lagging` when behind the master by more than this. @default 1048576 */
  readonly maxBehindBytes?: number
  /** How to reconnect, and when to give up. @default `sourceRetrySteps.replica`: forever, after 50 to 2000 ms */
  readonly retry?: RetryPolicy
  /** Opens the two connections to the master. @default openRespClient of @firebreak/core/node */
  readonly open?: typeof openRespClient
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

const noPosition: ReplicaPosition = { id: '?', offset: -1 }
/** The pause between acknowledgements: short at first, then once a second like any replica. */
const ackMs = { first: 20, longest: 1000 }

/**
 * Follows a master as a replica that keeps nothing: every write from every client, script and expiry, in order,
 * resuming after a reconnect at the exact byte where it broke off.
 *
 * - Asks for an empty RDB in a full resync (`rdb-filter-only ""`, Redis ≥ 7), and skips the RDB otherwise. A full
 *   resync means that writes were missed, so it is reported as a flush.
 * - Acknowledges offset 0, so that `WAIT` never counts us as a copy of the data.
 * - A quiet master sends nothing for ten seconds. To know that the stream is alive, a second connection polls
 *   `master_repl_offset`: we are live while the last answered poll is younger than the lease and we have received
 *   everything up to the offset it named.
 * - `min-replicas-to-write` would count us, and a Sentinel would list us, so we refuse to run with either unless
 *   allowed.
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
  readonly #retry: Retry
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
      retry: sourceRetrySteps.replica.policy,
      open: openRespClient,
      clock: steadyClock,
      timers: systemTimers,
      random: Math.random,
      ...options,
    }
    this.#listener = listener
    this.#retry = new Retry(this.#options.retry, this.#options)
    this.#position = options.position ?? noPosition
    this.#reader = this.#newReader()
    this.#poll = new MasterPoll(this.#options, () => this.#judge())
  }

  get state(): SourceState {
    return this.#state
  }

  /** The position in the stream; pass it to a new stream to resume from there. */
  get position(): ReplicaPosition {
    return { id: this.#position.id, offset: this.#feed?.offset ?? this.#position.offset }
  }

  /** When the last poll that we have caught up with was sent; caches may serve until one lease later. */
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

  /** Connects, announces itself as a replica, and reads the stream until it breaks off. */
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
    // An old server does not know this option and sends the whole RDB, which we skip.
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
          reason: 'full resync of the replica stream: writes may have been missed',
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
        // Otherwise our place in the stream is uncertain: start over with a full resync, which flushes.
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
    this.#retry.succeeded()
    this.#acknowledge(client, ackMs.first)
    this.#poll.reached(this.#feed?.offset ?? 0)
    this.#judge()
  }

  /** After a diskless RDB the master sends nothing until it gets an ACK, and it ignores one that arrives too early. */
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
    // The state already says that the master closed the connection.
    const isPlainClose =
      error instanceof RedisLostError && error.code === 'FB_REDIS_CLOSED' && error.cause === undefined
    if (!isPlainClose) this.#listener.onProblem?.(error)
    if (error instanceof WatchError && error.isFatal) {
      this.#setState({ kind: 'failed', reason: error.message })
      return
    }
    const pauseMs = this.#retry.failed()
    const lost = 'the connection to the master was lost'
    if (pauseMs === undefined) {
      this.#poll.close()
      this.#setState({ kind: 'failed', reason: `${lost}; given up after ${this.#retry.summary}` })
      return
    }
    this.#setState({ kind: 'connecting', ...this.#retry.overdue(lost) })
    this.#timer = this.#options.timers.setTimeout(() => void this.#follow(), pauseMs)
  }

  /** Live only while a recent poll named an offset that we have reached. */
  #judge(): void {
    if (this.#state.kind === 'closed' || this.#state.kind === 'failed' || !this.#isOnline) return
    const { behindBytes, isFresh } = this.#poll
    if (!isFresh) this.#setState({ kind: 'connecting', reason: 'the master has stopped answering offset polls' })
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
