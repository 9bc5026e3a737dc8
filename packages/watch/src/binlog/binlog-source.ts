import { systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import type { ChangeSource, SourceState } from '../change/change.ts'
import { WatchError } from '../errors.ts'
import { type BinlogConnection, type BinlogEvents, openBinlog, readServerPosition } from './binlog-connection.ts'
import { type KeyRefresh, type RowChange, refreshesOf } from './key-refresh.ts'
import type { RowMapping } from './row-mapping.ts'

/** Where the source remembers how far it came. */
export interface BinlogCheckpoint {
  load(): Promise<string | undefined>
  save(gtidSet: string): Promise<void>
}

/** The rows of one transaction, as refreshes of keys. */
export interface BinlogListener {
  /** Resolves once Redis has it; the checkpoint moves after that, so a crash in between repeats it. */
  onRefreshes(refreshes: readonly KeyRefresh[]): Promise<void>
  /** Rows were missed, or a table was emptied: everything that depends on these tables is in doubt. */
  onFlush(tables: readonly string[], reason: string): Promise<void>
  onState?(state: SourceState): void
  onProblem?(error: Error): void
}

/** How a binlog is followed. */
export interface BinlogSourceOptions {
  readonly connection: BinlogConnection
  readonly mapping: RowMapping
  readonly checkpoint: BinlogCheckpoint
  /** Our id among the server's replicas; must differ from every other. @default a random one */
  readonly serverId?: number
  /** How often the server's own position is asked for. @default 1000 */
  readonly pollMs?: number
  /** Behind the server's position for this long without an event: the connection is made again. @default 5000 */
  readonly silenceMs?: number
  /** First and longest pause before a reconnect. @default 100 and 5000 */
  readonly retryMs?: readonly [number, number]
  readonly timers?: Timers
  readonly random?: () => number
}

interface Transaction {
  readonly changes: RowChange[]
  readonly flushes: { readonly table: string; readonly reason: string }[]
}

const purged = /ER_MASTER_FATAL_ERROR_READING_BINLOG|1236|Could not find GTID state|purged/i

/**
 * Follows a MariaDB or MySQL binlog: row changes become refreshes of keys, transaction by transaction, each applied
 * before the next, and the checkpoint moves only behind what was applied.
 *
 * A connection that breaks is made again from the checkpoint. A connection that is silent while the server's own position
 * (asked for on another connection) moves on is broken too, and so is one whose server does not answer. A log that was
 * purged before we read it means missed rows: everything mapped is flushed, an alarm raised, and reading goes on from
 * where the server is.
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
  #failures = 0
  #attempt = 0

  constructor(options: BinlogSourceOptions, listener: BinlogListener) {
    const random = options.random ?? Math.random
    this.#options = {
      serverId: 1000 + Math.floor(random() * 2 ** 31),
      pollMs: 1000,
      silenceMs: 5000,
      retryMs: [100, 5000],
      timers: systemTimers,
      random,
      ...options,
    }
    this.#listener = listener
  }

  get state(): SourceState {
    return this.#state
  }

  /** The position behind the last transaction that was applied. */
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
      if (this.#applied === undefined) await this.#startHere('there is no checkpoint: reading begins here')
      if (this.#isClosed || attempt !== this.#attempt) return
      this.#received = this.#applied
      this.#transaction = { changes: [], flushes: [] }
      this.#lastEventAt = performance.now()
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
        this.#failures = 0
        this.#setState({ kind: 'live' })
      },
      onRows: (changes) => {
        this.#lastEventAt = performance.now()
        if (isCurrent()) this.#transaction.changes.push(...changes)
      },
      onTableEmptied: (table, reason) => {
        if (isCurrent()) this.#transaction.flushes.push({ table, reason })
      },
      onCommit: (gtidSet) => {
        this.#lastEventAt = performance.now()
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
    // What came after a failure on the same connection will come again from the checkpoint.
    if (attempt !== this.#attempt) return
    try {
      for (const { table, reason } of transaction.flushes) await this.#listener.onFlush([table], reason)
      const refreshes = transaction.changes.flatMap((change) => this.#refreshes(change))
      if (refreshes.length > 0) await this.#listener.onRefreshes(refreshes)
      this.#applied = gtidSet
      await this.#options.checkpoint.save(gtidSet)
    } catch (error) {
      this.#lost(attempt, error as Error)
    }
  }

  /** A row that the mapping cannot digest is told and passed over: it must not stop the others for ever. */
  #refreshes(change: RowChange): KeyRefresh[] {
    try {
      return refreshesOf(this.#options.mapping, change)
    } catch (error) {
      this.#listener.onProblem?.(error as Error)
      return []
    }
  }

  #lost(attempt: number, error: Error): void {
    if (attempt !== this.#attempt || this.#isClosed) return
    this.#attempt++
    this.#stream?.stop()
    this.#stream = undefined
    const problem =
      error instanceof WatchError
        ? error
        : new WatchError('FB_WATCH_BINLOG', `the binlog: ${error.message}`, { cause: error })
    this.#listener.onProblem?.(problem)
    this.#setState({ kind: 'connecting', reason: problem.message })
    const [first, longest] = this.#options.retryMs
    const pauseMs = Math.min(longest, first * 2 ** this.#failures++) * (0.5 + this.#options.random() / 2)
    const isPurged = purged.test(`${(error as { code?: string }).code ?? ''} ${error.message}`)
    this.#timer?.cancel()
    this.#timer = this.#options.timers.setTimeout(() => {
      // What is still being applied must be in before the checkpoint is read again.
      void this.#work.then(async () => {
        if (this.#isClosed) return
        if (isPurged)
          await this.#startHere('the binlog was purged before it was read: rows were missed').catch(() => {})
        await this.#connect()
      })
    }, pauseMs)
  }

  /** Reading goes on from where the server is; what is mapped may be out of date. */
  async #startHere(reason: string): Promise<void> {
    const position = await readServerPosition(this.#options.connection)
    await this.#listener.onFlush([...this.#options.mapping.keys()], reason)
    this.#applied = position
    await this.#options.checkpoint.save(position)
  }

  /** Compares the server's position with ours: one that moves on while nothing comes in shows a dead connection. */
  async #watchServer(): Promise<void> {
    if (this.#isPolling || this.#stream === undefined) return
    this.#isPolling = true
    const attempt = this.#attempt
    try {
      const position = await readServerPosition(this.#options.connection)
      const silentMs = performance.now() - this.#lastEventAt
      if (position !== this.#received && silentMs > this.#options.silenceMs) {
        this.#lost(
          attempt,
          new WatchError(
            'FB_WATCH_BINLOG',
            `the binlog connection has been silent for ${Math.round(silentMs)} ms while the server moved on to ${position}`,
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
