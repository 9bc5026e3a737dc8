import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import type { ChangeSource, SourceState } from '../change/change.ts'
import { sourceRetrySteps } from '../change/source-retry.ts'
import { WatchError } from '../errors.ts'
import { type BinlogConnection, type BinlogEvents, openBinlog, readServerPosition } from './binlog-connection.ts'
import { type KeyRefresh, type RowChange, refreshesOf } from './key-refresh.ts'
import type { RowMapping } from './row-mapping.ts'

/** Stores how far the source has read. */
export interface BinlogCheckpoint {
  load(): Promise<string | undefined>
  save(gtidSet: string): Promise<void>
}

/** Receives the rows of one transaction as refreshes of keys. */
export interface BinlogListener {
  /** Resolves once Redis has the refreshes. The checkpoint moves after that, so a crash in between repeats them. */
  onRefreshes(refreshes: readonly KeyRefresh[]): Promise<void>
  /** Rows were missed, or a table was emptied: everything that depends on these tables is in doubt. */
  onFlush(tables: readonly string[], reason: string): Promise<void>
  /** A transaction that could not be applied to Redis was given up; reading continues with the next one. */
  onDropped?(reason: string): void
  onState?(state: SourceState): void
  onProblem?(error: Error): void
}

/** How a binlog is followed. */
export interface BinlogSourceOptions {
  readonly connection: BinlogConnection
  readonly mapping: RowMapping
  readonly checkpoint: BinlogCheckpoint
  /** Our server id as a replica; must be unique among the server's replicas. @default random */
  readonly serverId?: number
  /** How often to ask for the server's own position. @default 1000 */
  readonly pollMs?: number
  /** Reconnect after being behind the server's position for this long without an event. @default 5000 */
  readonly silenceMs?: number
  /** How to reconnect, and when to give up. @default `sourceRetrySteps.binlog`: forever, after 100 to 5000 ms */
  readonly retry?: RetryPolicy
  /** How to retry a failed transaction, and when to give up. @default `sourceRetrySteps.redis`: as `retry` */
  readonly applyRetry?: RetryPolicy
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

interface Transaction {
  readonly changes: RowChange[]
  readonly flushes: { readonly table: string; readonly reason: string }[]
}

const purged = /ER_MASTER_FATAL_ERROR_READING_BINLOG|1236|Could not find GTID state|purged/i

/**
 * Follows a MariaDB or MySQL binlog and turns row changes into refreshes of keys, transaction by transaction. Each one
 * is applied before the next, and the checkpoint never moves past what has been applied.
 *
 * A broken connection is reopened from the checkpoint. A connection also counts as broken if it is silent while the
 * server's own position (requested on another connection) advances, or if its server does not answer. If the log was
 * purged before we read it, rows were missed: everything mapped is flushed, an alarm is raised, and reading continues
 * at the server's current position.
 */
export class BinlogSource implements ChangeSource {
  readonly #options: Required<BinlogSourceOptions>
  readonly #listener: BinlogListener
  #state: SourceState = { kind: 'connecting', reason: 'not started' }
  #stream: { stop(): void } | undefined
  #transaction: Transaction = { changes: [], flushes: [] }
  #work: Promise<void> = Promise.resolve()
  #applied: string | undefined
  #received: string | undefined
  #timer: TimerHandle | undefined
  #poll: TimerHandle | undefined
  #lastEventAt = 0
  #isPolling = false
  readonly #retry: Retry
  readonly #applyRetry: Retry
  #attempt = 0

  constructor(options: BinlogSourceOptions, listener: BinlogListener) {
    const random = options.random ?? Math.random
    this.#options = {
      serverId: 1000 + Math.floor(random() * 2 ** 31),
      pollMs: 1000,
      silenceMs: 5000,
      retry: sourceRetrySteps.binlog.policy,
      applyRetry: sourceRetrySteps.redis.policy,
      clock: steadyClock,
      timers: systemTimers,
      random,
      ...options,
    }
    this.#listener = listener
    this.#retry = new Retry(this.#options.retry, this.#options)
    this.#applyRetry = new Retry(this.#options.applyRetry, this.#options)
  }

  get state(): SourceState {
    return this.#state
  }

  /** The position after the last transaction that was applied. */
  get checkpoint(): string | undefined {
    return this.#applied
  }

  start(): void {
    this.#poll = this.#options.timers.setInterval(() => void this.#watchServer(), this.#options.pollMs)
    void this.#connect()
  }

  async close(): Promise<void> {
    this.#setState({ kind: 'closed' })
    this.#timer?.cancel()
    this.#poll?.cancel()
    this.#stream?.stop()
    await this.#work
  }

  get #isClosed(): boolean {
    return this.#state.kind === 'closed'
  }

  async #connect(): Promise<void> {
    const attempt = ++this.#attempt
    try {
      this.#applied ??= await this.#options.checkpoint.load()
      if (this.#applied === undefined)
        await this.#startHere('no checkpoint found: reading starts at the current position')
      if (this.#isClosed || attempt !== this.#attempt) return
      this.#received = this.#applied
      this.#transaction = { changes: [], flushes: [] }
      this.#lastEventAt = this.#options.clock.now()
      this.#stream = openBinlog(this.#options.connection, this.#options.serverId, this.#applied!, this.#events(attempt))
    } catch (error) {
      this.#lost(attempt, error as Error)
    }
  }

  #events(attempt: number): BinlogEvents {
    const isCurrent = () => attempt === this.#attempt && !this.#isClosed
    return {
      mappedTables: this.#options.mapping,
      onReady: () => {
        if (!isCurrent()) return
        this.#retry.succeeded()
        this.#setState({ kind: 'live' })
      },
      onRows: (changes) => {
        this.#lastEventAt = this.#options.clock.now()
        if (isCurrent()) this.#transaction.changes.push(...changes)
      },
      onTableEmptied: (table, reason) => {
        if (isCurrent()) this.#transaction.flushes.push({ table, reason })
      },
      onCommit: (gtidSet) => {
        this.#lastEventAt = this.#options.clock.now()
        if (!isCurrent()) return
        const transaction = this.#transaction
        this.#transaction = { changes: [], flushes: [] }
        this.#received = gtidSet
        this.#work = this.#work.then(() => this.#apply(attempt, transaction, gtidSet))
      },
      onError: (error) => this.#lost(attempt, error),
    }
  }

  async #apply(attempt: number, transaction: Transaction, gtidSet: string): Promise<void> {
    // Events that follow a failure on the same connection will arrive again from the checkpoint.
    if (attempt !== this.#attempt) return
    try {
      // A transaction on other tables says nothing about Redis.
      if (await this.#hand(transaction)) this.#applyRetry.succeeded()
    } catch (error) {
      if (!this.#isDropped(attempt, error as Error)) return
    }
    try {
      this.#applied = gtidSet
      await this.#options.checkpoint.save(gtidSet)
    } catch (error) {
      this.#lost(attempt, error as Error)
    }
  }

  /** False if there was nothing to pass on. */
  async #hand({ flushes, changes }: Transaction): Promise<boolean> {
    for (const { table, reason } of flushes) await this.#listener.onFlush([table], reason)
    const refreshes = changes.flatMap((change) => this.#refreshes(change))
    if (refreshes.length > 0) await this.#listener.onRefreshes(refreshes)
    return refreshes.length + flushes.length > 0
  }

  /** After a failed transaction: retry it, stop reading, or give it up (true). */
  #isDropped(attempt: number, error: Error): boolean {
    if (attempt !== this.#attempt || this.#isClosed) return false
    const pauseMs = this.#applyRetry.failed()
    if (pauseMs !== undefined || this.#options.applyRetry.atEnd === 'stop') {
      this.#lost(attempt, error, this.#applyRetry, pauseMs)
      return false
    }
    this.#listener.onDropped?.(`${error.message}; ${this.#applyRetry.summary}`)
    this.#applyRetry.succeeded()
    return true
  }

  /** A row that the mapping cannot handle is reported and skipped: it must not block the others forever. */
  #refreshes(change: RowChange): KeyRefresh[] {
    try {
      return refreshesOf(this.#options.mapping, change)
    } catch (error) {
      this.#listener.onProblem?.(error as Error)
      return []
    }
  }

  /** Reconnects after a pause, by the retry policy of the step that failed; without a pause, stops. */
  #lost(attempt: number, error: Error, retry?: Retry, pauseMs?: number): void {
    if (attempt !== this.#attempt || this.#isClosed) return
    this.#attempt++
    this.#stream?.stop()
    this.#stream = undefined
    const problem =
      error instanceof WatchError
        ? error
        : new WatchError('FB_WATCH_BINLOG', `the binlog: ${error.message}`, { cause: error })
    this.#listener.onProblem?.(problem)
    const step = retry ?? this.#retry
    const waitMs = retry === undefined ? step.failed() : pauseMs
    if (waitMs === undefined) {
      this.#poll?.cancel()
      this.#setState({ kind: 'failed', reason: `${problem.message}; given up after ${step.summary}` })
      return
    }
    this.#setState({ kind: 'connecting', ...step.overdue(problem.message) })
    const isPurged = purged.test(`${(error as { code?: string }).code ?? ''} ${error.message}`)
    this.#timer?.cancel()
    this.#timer = this.#options.timers.setTimeout(() => {
      // Whatever is still being applied must finish before the checkpoint is read again.
      void this.#work.then(async () => {
        if (this.#isClosed) return
        if (isPurged)
          await this.#startHere('the binlog was purged before it was read: rows were missed').catch(() => {})
        await this.#connect()
      })
    }, waitMs)
  }

  /** Continues at the server's current position; whatever is mapped may be stale. */
  async #startHere(reason: string): Promise<void> {
    const position = await readServerPosition(this.#options.connection)
    await this.#listener.onFlush([...this.#options.mapping.keys()], reason)
    this.#applied = position
    await this.#options.checkpoint.save(position)
  }

  /** Compares the server's position with ours: if it advances while nothing arrives, the connection is dead. */
  async #watchServer(): Promise<void> {
    if (this.#isPolling || this.#stream === undefined) return
    this.#isPolling = true
    const attempt = this.#attempt
    try {
      const position = await readServerPosition(this.#options.connection)
      const silentMs = this.#options.clock.now() - this.#lastEventAt
      if (position !== this.#received && silentMs > this.#options.silenceMs) {
        this.#lost(
          attempt,
          new WatchError(
            'FB_WATCH_BINLOG',
            `no events on the binlog connection for ${Math.round(silentMs)} ms, while the server has advanced to ${position}`,
          ),
        )
      }
    } catch (error) {
      this.#lost(attempt, error as Error)
    } finally {
      this.#isPolling = false
    }
  }

  #setState(state: SourceState): void {
    if (this.#isClosed || (state.kind === 'live' && this.#state.kind === 'live')) return
    this.#state = state
    this.#listener.onState?.(state)
  }
}
