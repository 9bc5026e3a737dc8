import type { AlarmView, Clock } from '@firebreak/core'

const maxAlarms = 200

/** Something that is broken: what, how badly, and what is done about it. */
export type Alarm = Pick<AlarmView, 'id' | 'severity' | 'cause' | 'retry'>

/** Hears of alarms that begin and end. */
export type AlarmListener = (event: 'raised' | 'cleared', alarm: AlarmView) => void

/** What is broken right now; each alarm is raised again while it lasts, and cleared when it ends. */
export class AlarmBoard {
  readonly #clock: Clock
  readonly #alarms = new Map<string, AlarmView>()
  readonly #listeners = new Set<AlarmListener>()
  #raisedCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many alarms ever began. */
  get raisedCount(): number {
    return this.#raisedCount
  }

  /** Tells of every alarm that begins or ends. */
  onChange(listener: AlarmListener): void {
    this.#listeners.add(listener)
  }

  /** Raises an alarm, or counts it once more. */
  raise(alarm: Alarm): void {
    const known = this.#alarms.get(alarm.id)
    if (known === undefined && this.#alarms.size >= maxAlarms) return
    const view = { ...alarm, since: known?.since ?? this.#clock.now(), count: (known?.count ?? 0) + 1 }
    this.#alarms.set(alarm.id, view)
    if (known !== undefined) return
    this.#raisedCount++
    this.#tell('raised', view)
  }

  clear(id: string): void {
    const alarm = this.#alarms.get(id)
    if (alarm !== undefined && this.#alarms.delete(id)) this.#tell('cleared', alarm)
  }

  /** Ends the alarms of one kind (`kind:…`) that are not among those that still last. */
  keepOnly(kind: string, ids: ReadonlySet<string>): void {
    for (const id of this.#alarms.keys()) if (id.startsWith(`${kind}:`) && !ids.has(id)) this.clear(id)
  }

  /** Critical ones first, then the oldest. */
  list(): AlarmView[] {
    return [...this.#alarms.values()].sort(
      (a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical') || a.since - b.since,
    )
  }

  #tell(event: 'raised' | 'cleared', alarm: AlarmView): void {
    for (const listener of this.#listeners) listener(event, alarm)
  }
}
