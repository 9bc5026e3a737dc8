import { type Runtime, systemRuntime, type TimerHandle } from '@firebreak/core'
import type { IdService, IdsAlarm } from '@firebreak/ids'
import type { AlarmBoard } from '../alarms/alarm-board.ts'

/** How long an alarm stays on the board after it was last raised. */
const shownMs = 60_000
const lookEveryMs = 1000
const maxEarly = 100

/**
 * Shows the id service's alarms on the hub's board, and so in webhooks. Ids are opened before the hub that shows their
 * alarms: earlier alarms are kept for it.
 */
export class IdsAlarms {
  readonly #runtime: Runtime
  readonly #early: IdsAlarm[] = []
  readonly #shownUntil = new Map<string, number>()
  #board: AlarmBoard | undefined
  #service: IdService | undefined
  #timer: TimerHandle | undefined

  constructor(runtime: Runtime = systemRuntime) {
    this.#runtime = runtime
  }

  /** For `onAlarm` of segments and snowflakes. */
  readonly tell = (alarm: IdsAlarm): void => {
    if (this.#board === undefined) {
      if (this.#early.length < maxEarly) this.#early.push(alarm)
      return
    }
    const id = `ids:${alarm.code}`
    const now = this.#runtime.wallClock.now()
    this.#shownUntil.set(id, now + shownMs)
    const retry = 'ids resume by themselves once the cause is gone'
    this.#board.raise({ id, severity: 'warning', cause: `ids: ${alarm.message} (${alarm.code})`, retry })
  }

  /** From now on shows alarms on a board, as long as they last. */
  showOn(board: AlarmBoard, service: IdService): void {
    this.#board = board
    this.#service = service
    for (const alarm of this.#early.splice(0)) this.tell(alarm)
    this.#timer ??= this.#runtime.timers.setInterval(() => this.#look(), lookEveryMs)
  }

  close(): void {
    this.#timer?.cancel()
  }

  #look(): void {
    const now = this.#runtime.wallClock.now()
    const isTroubled = this.#isTroubled()
    for (const [id, until] of this.#shownUntil) {
      if (isTroubled || until > now) continue
      this.#shownUntil.delete(id)
      this.#board?.clear(id)
    }
  }

  #isTroubled(): boolean {
    const { snowflake, segments } = this.#service!
    if (snowflake?.status().state === 'refusing') return true
    return segments?.buffers().some(({ error }) => error !== undefined) ?? false
  }
}
