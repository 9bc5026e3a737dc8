import { type AlarmView, type Clock, FirebreakError, type TimerHandle, type Timers } from '@firebreak/core'
import { describePolicy, type RetryPolicy } from '@firebreak/core/settings'
import type { Redis } from '@firebreak/redis'
import { BinlogSource, type KeyRefresh, type SourceState, WatchError } from '@firebreak/watch'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { LanePublisher, type LanePublisherOptions } from './lane-publisher.ts'
import { httpLoader, RowRefresher } from './row-refresher.ts'
import { forEachKeyOf } from './table-sweep.ts'
import { type BinlogWatcherSetting, watcherName } from './watcher-settings.ts'

/** What a binlog watcher needs besides its settings. */
export interface BinlogWatcherOptions {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  /** How to retry reading the log, and writes that Redis does not accept. */
  readonly retry: Readonly<Record<'binlog' | 'redis', RetryPolicy>>
  readonly alarms: AlarmBoard
  readonly lane: LanePublisherOptions
  readonly redis: Redis
  readonly isHot: (key: string) => boolean
  readonly checkpoint: { load(): Promise<string | undefined>; save(gtidSet: string): Promise<void> }
}

/** What it did and what went wrong, for the metrics. */
export interface BinlogCounts {
  changes: number
  flushes: number
  problems: number
  mappingErrors: number
  redisFailures: number
  /** Transactions given up. */
  dropped: number
}

/** How long an alarm about a past event stays visible. */
const passedAlarmMs = 600_000

/**
 * Row changes of a database → Redis → the lane. Every failing step has its own alarm: the log itself, a row that the
 * mapping cannot handle, a Redis that does not accept the value, rows that were lost.
 */
export class BinlogWatcher {
  readonly name: string
  readonly counts: BinlogCounts = {
    changes: 0,
    flushes: 0,
    problems: 0,
    mappingErrors: 0,
    redisFailures: 0,
    dropped: 0,
  }
  readonly #setting: BinlogWatcherSetting
  readonly #options: BinlogWatcherOptions
  readonly #lane: LanePublisher
  readonly #refresher: RowRefresher
  readonly #source: BinlogSource
  readonly #passed = new Map<string, TimerHandle>()

  constructor(setting: BinlogWatcherSetting, options: BinlogWatcherOptions) {
    this.name = watcherName(setting)
    this.#setting = setting
    this.#options = options
    const { redis, isHot, checkpoint } = options
    const { connection, mapping, database = 0, loaderUrl, serverId } = setting
    this.#lane = new LanePublisher(options.lane)
    const loader = loaderUrl === undefined ? {} : { loader: httpLoader(loaderUrl, options.timers) }
    this.#refresher = new RowRefresher({ redis, lane: this.#lane, database, isHot, ...loader })
    this.#source = new BinlogSource(
      {
        connection,
        mapping,
        checkpoint,
        clock: options.clock,
        timers: options.timers,
        random: options.random,
        retry: options.retry.binlog,
        applyRetry: options.retry.redis,
        ...(serverId !== undefined && { serverId }),
      },
      {
        onRefreshes: (refreshes) => this.#refresh(refreshes),
        onFlush: (tables, reason) => this.#flush(tables, reason),
        onDropped: (reason) => this.#dropped(reason),
        onState: (state) => this.#stateChanged(state),
        onProblem: (problem) => this.#problem(problem),
      },
    )
  }

  get state(): SourceState {
    return this.#source.state
  }

  get refreshCounts(): RowRefresher['counts'] {
    return this.#refresher.counts
  }

  start(): void {
    this.#source.start()
  }

  async close(): Promise<void> {
    await this.#source.close()
    this.#lane.close()
    for (const timer of this.#passed.values()) timer.cancel()
    for (const step of ['source', 'mapping', 'redis', 'missed']) this.#options.alarms.clear(`${step}:${this.name}`)
  }

  async #refresh(refreshes: readonly KeyRefresh[]): Promise<void> {
    await this.#onRedis(() => this.#refresher.apply(refreshes))
    this.counts.changes += refreshes.length
  }

  /**
   * Rows are gone or were missed. Cold keys are deleted; hot ones get a tombstone or, if nothing better is known, stay.
   */
  async #flush(tables: readonly string[], reason: string): Promise<void> {
    const { isHot, redis } = this.#options
    const isEmptied = /^(TRUNCATE|DROP)/.test(reason)
    let left = 0
    await this.#onRedis(() =>
      forEachKeyOf(redis, this.#setting.mapping, tables, async (keys, tombstones) => {
        const wanted = isEmptied ? keys : keys.filter((key) => !isHot(key))
        left += keys.length - wanted.length
        await this.#refresher.apply(
          wanted.map((key) => ({ kind: 'gone', key, tombstone: tombstones.get(key)!, ttlSeconds: undefined })),
        )
      }),
    )
    this.counts.flushes++
    this.#lane.flush(-1)
    if (isEmptied || reason.includes('no checkpoint')) return
    const rest = left === 0 ? '' : `; ${left} hot keys may keep an outdated value until their rows change`
    this.#raise(
      'missed',
      'critical',
      `${reason}${rest}`,
      'cold keys were deleted and clients flushed; reading continues',
    )
    this.#clearLater('missed')
  }

  async #onRedis(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.counts.redisFailures++
      const step = error instanceof FirebreakError && error.code === 'FB_HUB_LOADER' ? 'the loader' : 'Redis'
      this.#raise(
        'redis',
        'critical',
        `${step} failed: ${(error as Error).message}`,
        `retrying the transaction from the checkpoint: ${describePolicy(this.#options.retry.redis)}`,
      )
      throw error
    }
    this.#options.alarms.clear(`redis:${this.name}`)
  }

  /** The policy gives a transaction up: Redis keeps its values until the rows change again. */
  #dropped(reason: string): void {
    this.counts.dropped++
    const retry = 'it was given up: the keys of its rows may be outdated until the rows change; reading continues'
    this.#raise('missed', 'critical', `a transaction did not reach Redis: ${reason}`, retry)
    this.#clearLater('missed')
  }

  #stateChanged(state: SourceState): void {
    if (state.kind === 'connecting')
      this.#raise(
        'source',
        state.isOverdue === true ? 'critical' : 'warning',
        state.reason,
        `reconnecting from the checkpoint: ${describePolicy(this.#options.retry.binlog)}`,
      )
    else if (state.kind === 'failed')
      this.#raise('source', 'critical', state.reason, 'it will not be retried: change the settings and restart the hub')
    else this.#options.alarms.clear(`source:${this.name}`)
  }

  #problem(problem: Error): void {
    this.counts.problems++
    if (!(problem instanceof WatchError) || problem.code !== 'FB_WATCH_MAPPING') return
    this.counts.mappingErrors++
    this.#raise('mapping', 'warning', problem.message, 'the row is skipped: change the mapping and restart the hub')
    this.#clearLater('mapping')
  }

  #raise(step: string, severity: AlarmView['severity'], reason: string, retry: string): void {
    this.#options.alarms.raise({ id: `${step}:${this.name}`, severity, cause: `${this.name}: ${reason}`, retry })
  }

  #clearLater(step: string): void {
    const { timers, alarms } = this.#options
    this.#passed.get(step)?.cancel()
    this.#passed.set(
      step,
      timers.setTimeout(() => alarms.clear(`${step}:${this.name}`), passedAlarmMs),
    )
  }
}
