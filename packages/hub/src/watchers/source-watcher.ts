import type { AlarmView } from '@firebreak/core'
import type { Change, ChangeListener, ChangeSource, SourceState } from '@firebreak/watch'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { LanePublisher, type LanePublisherOptions } from './lane-publisher.ts'

/** What a watcher did, for the metrics. */
export interface WatcherCounts {
  changes: number
  flushes: number
  problems: number
}

/** A change source of one Redis, connected to the lane, and its alarm. */
export class SourceWatcher {
  readonly name: string
  readonly counts: WatcherCounts = { changes: 0, flushes: 0, problems: 0 }
  readonly #source: ChangeSource
  readonly #lane: LanePublisher
  readonly #alarms: AlarmBoard
  #lastProblem = ''

  /** `name` is shown to users: `replica stream of main`. */
  constructor(
    name: string,
    lane: LanePublisherOptions,
    alarms: AlarmBoard,
    open: (listener: ChangeListener) => ChangeSource,
  ) {
    this.name = name
    this.#lane = new LanePublisher(lane)
    this.#alarms = alarms
    this.#source = open({
      onChange: (change) => this.#changed(change),
      onState: (state) => this.#stateChanged(state),
      onProblem: (problem) => {
        this.counts.problems++
        this.#lastProblem = problem.message
      },
    })
  }

  get state(): SourceState {
    return this.#source.state
  }

  start(): void {
    this.#source.start()
  }

  async close(): Promise<void> {
    await this.#source.close()
    this.#lane.close()
    this.#alarms.clear(this.#alarmId)
  }

  get #alarmId(): string {
    return `source:${this.name}`
  }

  #changed(change: Change): void {
    if (change.kind === 'flush') {
      this.counts.flushes++
      this.#lane.flush(change.database)
      return
    }
    this.counts.changes += change.keys.length
    this.#lane.changed(change.database, change.keys)
  }

  #stateChanged(state: SourceState): void {
    switch (state.kind) {
      case 'live':
      case 'closed':
        this.#alarms.clear(this.#alarmId)
        return
      case 'connecting':
        this.#raise(
          state.isOverdue === true ? 'critical' : 'warning',
          `${state.reason}${this.#lastProblem === '' ? '' : ` (${this.#lastProblem})`}`,
          'it reconnects by itself and flushes what was missed',
        )
        return
      case 'lagging':
        this.#raise(
          'warning',
          `it is ${state.behindBytes} bytes behind`,
          'it catches up by itself; tracking and leases still protect readers',
        )
        return
      case 'failed':
        this.#raise('critical', state.reason, 'it will not be retried: change the settings and restart the hub')
        return
    }
  }

  #raise(severity: AlarmView['severity'], reason: string, retry: string): void {
    this.#alarms.raise({ id: this.#alarmId, severity, cause: `${this.name}: ${reason}`, retry })
  }
}
