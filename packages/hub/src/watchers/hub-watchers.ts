import type { Runtime, TimerHandle, WatchedCluster, WatcherView } from '@firebreak/core'
import { Retry } from '@firebreak/core/settings'
import { openRedis } from '@firebreak/redis'
import { AofTail, type ChangeListener, ReplicaStream, type SourceState } from '@firebreak/watch'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { HubRetry } from '../config/retry-steps.ts'
import type { InvalidationLane } from '../lane/invalidation-lane.ts'
import type { HubStore } from '../store/hub-store.ts'
import { explainStoreTrouble, storeName } from '../store/store-trouble.ts'
import { BinlogWatcher } from './binlog-watcher.ts'
import type { PublishInvalidation } from './lane-publisher.ts'
import { SourceWatcher } from './source-watcher.ts'
import { type BinlogWatcherSetting, type WatcherSetting, watcherName } from './watcher-settings.ts'

/** What sources of changes need from the hub. */
export interface HubWatchersOptions {
  readonly runtime: Runtime
  readonly store: HubStore
  readonly alarms: AlarmBoard
  readonly lane: InvalidationLane
  /** How to retry each step. */
  readonly retry: HubRetry
  /** Tells which keys are hot. */
  readonly isHot: (redisClusterId: string, key: string) => boolean
}

interface Running {
  readonly setting: WatcherSetting
  readonly watcher: SourceWatcher | BinlogWatcher
  /** Reports that everything written until then, by the hub's clock, was seen. */
  completeAt(): number
  /** Saves the source's position. */
  keepPosition?(): Promise<void>
  readonly end?: () => void
}

/** How often the position in a replica stream is saved; a restart resumes from there. */
const positionMs = 1000
/** A repeated change of a key may wait this long before it is sent on the lane. */
const coalesceMs = 5

/**
 * The sources of changes that a hub runs, from its settings: started and stopped with it, and shown in API and metrics.
 */
export class HubWatchers {
  readonly #options: HubWatchersOptions
  readonly #running: Running[] = []
  readonly #positionRetry: Retry
  /** Positions are not saved before this time. */
  #positionsNotBefore = Number.NEGATIVE_INFINITY
  #timer: TimerHandle | undefined

  constructor(options: HubWatchersOptions) {
    this.#options = options
    this.#positionRetry = new Retry(options.retry.positions, options.runtime)
  }

  async start(settings: readonly WatcherSetting[]): Promise<void> {
    for (const setting of settings) {
      const running = await this.#open(setting)
      this.#running.push(running)
      running.watcher.start()
    }
    if (this.#running.length > 0)
      this.#timer = this.#options.runtime.timers.setInterval(() => void this.#keepPositions(), positionMs)
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#positionsNotBefore = Number.NEGATIVE_INFINITY
    await this.#keepPositions()
    for (const { watcher, end } of this.#running.splice(0)) {
      await watcher.close()
      end?.()
    }
  }

  /** The clusters whose guarding sources are all alive, and up to when they have seen everything; for heartbeats. */
  watched(): WatchedCluster[] {
    const completeAt = new Map<string, number>()
    for (const { setting, completeAt: at } of this.#running) {
      if (setting.kind === 'binlog' || setting.guards !== true) continue
      const { redisClusterId } = setting
      completeAt.set(redisClusterId, Math.min(at(), completeAt.get(redisClusterId) ?? Number.POSITIVE_INFINITY))
    }
    const now = this.#options.runtime.clock.now()
    return [...completeAt]
      .filter(([, at]) => Number.isFinite(at))
      .map(([redisClusterId, at]) => ({ redisClusterId, completeAgoMs: Math.max(0, now - at) + coalesceMs }))
  }

  views(): WatcherView[] {
    return this.#running.map(({ setting, watcher }) => ({
      name: watcher.name,
      kind: setting.kind,
      redisClusterId: setting.redisClusterId,
      state: watcher.state.kind,
      detail: detailOf(watcher.state),
      counts: { ...watcher.counts, ...(watcher instanceof BinlogWatcher ? watcher.refreshCounts : {}) },
    }))
  }

  async #open(setting: WatcherSetting): Promise<Running> {
    switch (setting.kind) {
      case 'replica': {
        const { address, maxValueBytes, allowMinReplicas = false, allowSentinel = false } = setting
        const saved = await this.#options.store.position(watcherName(setting))
        const position = saved === undefined ? {} : { position: JSON.parse(saved) as ReplicaStream['position'] }
        const { retry, runtime } = this.#options
        const { clock, timers, random } = runtime
        const shared = { address, allowMinReplicas, allowSentinel, clock, timers, random, retry: retry.replica }
        const value = maxValueBytes === undefined ? {} : { maxValueBytes }
        let stream!: ReplicaStream
        const watcher = this.#source(setting, (listener) => {
          stream = new ReplicaStream({ ...shared, ...value, ...position }, listener)
          return stream
        })
        return {
          setting,
          watcher,
          completeAt: () => (stream.state.kind === 'live' ? stream.liveSentAt : Number.NEGATIVE_INFINITY),
          keepPosition: async () => {
            const { id, offset } = stream.position
            if (offset >= 0) await this.#options.store.savePosition(watcher.name, JSON.stringify({ id, offset }))
          },
        }
      }
      case 'aof': {
        const { kind: _, redisClusterId: __, name: ___, guards: ____, ...options } = setting
        let tail!: AofTail
        const watcher = this.#source(setting, (listener) => {
          const { retry, runtime } = this.#options
          const { clock, timers, random } = runtime
          tail = new AofTail({ ...options, clock, timers, random, retry: retry.aof }, listener)
          return tail
        })
        return { setting, watcher, completeAt: () => tail.completeAt }
      }
      case 'binlog':
        return this.#openBinlog(setting)
    }
  }

  #source(setting: WatcherSetting, open: (listener: ChangeListener) => ReplicaStream | AofTail): SourceWatcher {
    return new SourceWatcher(watcherName(setting), this.#lane(setting), this.#options.alarms, open)
  }

  async #openBinlog(setting: BinlogWatcherSetting): Promise<Running> {
    const name = watcherName(setting)
    const { redis, close } = await openRedis(setting.redis, setting.database)
    const { store, isHot, runtime, alarms, retry } = this.#options
    const { clock, timers, random } = runtime
    const watcher = new BinlogWatcher(setting, {
      clock,
      timers,
      random,
      retry,
      alarms,
      lane: this.#lane(setting),
      redis,
      isHot: (key) => isHot(setting.redisClusterId, key),
      checkpoint: { load: () => store.position(name), save: (gtidSet) => store.savePosition(name, gtidSet) },
    })
    // A binlog does not see writes made to Redis directly, so it never guards.
    return { setting, watcher, completeAt: () => Number.NEGATIVE_INFINITY, end: close }
  }

  #lane({ redisClusterId }: WatcherSetting) {
    const publish: PublishInvalidation = (invalidation) => void this.#options.lane.publish(invalidation)
    return { redisClusterId, publish, coalesceMs, timers: this.#options.runtime.timers }
  }

  async #keepPositions(): Promise<void> {
    const { alarms, runtime, store } = this.#options
    if (runtime.clock.now() < this.#positionsNotBefore) return
    try {
      for (const { keepPosition } of this.#running) await keepPosition?.()
      this.#positionRetry.succeeded()
      alarms.clear('positions')
    } catch (error) {
      const pauseMs = this.#positionRetry.failed()
      this.#positionsNotBefore = pauseMs === undefined ? Number.POSITIVE_INFINITY : runtime.clock.now() + pauseMs
      const cause = `sources' positions cannot be saved in ${storeName(store)}: ${explainStoreTrouble(error)}`
      const again = pauseMs === undefined ? 'no retries until the hub restarts' : 'retrying'
      const retry = `${again}; a restart meanwhile flushes the clients`
      alarms.raise({ id: 'positions', severity: this.#positionRetry.isOver ? 'critical' : 'warning', cause, retry })
    }
  }
}

function detailOf(state: SourceState): string {
  if (state.kind === 'lagging') return `${state.behindBytes} bytes behind`
  return 'reason' in state ? state.reason : ''
}
