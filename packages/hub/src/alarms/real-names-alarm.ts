import { type Clock, describeValue } from '@firebreak/core'
import type { AlarmBoard } from './alarm-board.ts'

/** How long the alarm lasts after the last real name. */
const lastsMs = 60_000

/**
 * Raises an alarm for processes that report real names to a hub that redacts them: they cannot match the names in their
 * table.
 */
export class RealNamesAlarm {
  readonly #alarms: AlarmBoard
  readonly #clock: Clock
  #lastAt = Number.NEGATIVE_INFINITY

  constructor(alarms: AlarmBoard, clock: Clock) {
    this.#alarms = alarms
    this.#clock = clock
  }

  tell(serviceId: string): void {
    this.#lastAt = this.#clock.now()
    const cause = `processes of ${describeValue(serviceId)} report keys by their real names, which the hub redacts: they cannot match the redacted names in their table, and handle no hot keys`
    const retry = 'give them the same redactKeys and redactSecret as the hub'
    this.#alarms.raise({ id: 'keys-not-redacted', severity: 'warning', cause, retry })
  }

  watch(now: number): void {
    if (now - this.#lastAt > lastsMs) this.#alarms.clear('keys-not-redacted')
  }
}
