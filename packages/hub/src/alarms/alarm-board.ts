import type { AlarmView, Clock } from '@firebreak/core'

const maxAlarms = 200
/** Bounds on alarms reported by processes, in total and per service; the hub's own alarms always have room. */
const maxToldAlarms = 100
const maxAlarmsOfService = 20

/** Something that is broken: what, how badly, and what is being done about it. */
export type Alarm = Pick<AlarmView, 'id' | 'severity' | 'cause' | 'retry' | 'subject'>

/** Called for alarms that are raised, become critical, or clear. */
export type AlarmListener = (event: 'raised' | 'cleared', alarm: AlarmView) => void

/** What is broken right now; each alarm is raised again while it lasts, and cleared when it ends. */
export class AlarmBoard {
  readonly #clock: Clock
  readonly #alarms = new Map<string, AlarmView>()
  readonly #listeners = new Set<AlarmListener>()
  /** By the service whose processes reported them. */
  readonly #told = new Map<string, Set<string>>()
  #raisedCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many alarms have been raised so far. */
  get raisedCount(): number {
    return this.#raisedCount
  }

  /** Registers a listener for alarms that are raised, become critical, or clear. */
  onChange(listener: AlarmListener): void {
    this.#listeners.add(listener)
  }

  /**
   * Raises an alarm, or counts another occurrence. `toldBy`: the service whose processes report it, which may be false.
   */
  raise(alarm: Alarm, toldBy?: string): void {
    const known = this.#alarms.get(alarm.id)
    if (known === undefined && toldBy !== undefined && !this.#takePlace(alarm.id, toldBy)) return
    if (known === undefined && this.#alarms.size >= maxAlarms) return
    const view = { ...alarm, since: known?.since ?? this.#clock.now(), count: (known?.count ?? 0) + 1 }
    this.#alarms.set(alarm.id, view)
    if (known === undefined) this.#raisedCount++
    if (known === undefined || (known.severity === 'warning' && alarm.severity === 'critical'))
      this.#tell('raised', view)
  }

  clear(id: string): void {
    const alarm = this.#alarms.get(id)
    if (alarm === undefined || !this.#alarms.delete(id)) return
    this.#tell('cleared', alarm)
    for (const [service, ids] of this.#told) {
      if (!ids.delete(id)) continue
      if (ids.size === 0) this.#told.delete(service)
      this.clear(`crowd:${service}`)
    }
  }

  /** Ends the alarms of one kind (`kind:…`) that are not in the list of ongoing ones. */
  keepOnly(kind: string, ids: ReadonlySet<string>): void {
    for (const id of this.#alarms.keys()) if (id.startsWith(`${kind}:`) && !ids.has(id)) this.clear(id)
  }

  /** Critical ones first, then the oldest. */
  list(): AlarmView[] {
    return [...this.#alarms.values()].sort(
      (a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical') || a.since - b.since,
    )
  }

  #takePlace(id: string, service: string): boolean {
    const ids = this.#told.get(service) ?? new Set<string>()
    const all = [...this.#told.values()].reduce((sum, { size }) => sum + size, 0)
    if (ids.size < maxAlarmsOfService && all < maxToldAlarms) {
      this.#told.set(service, ids.add(id))
      return true
    }
    if (ids.size > 0) {
      const cause = `processes of ${service} report more than ${ids.size} alarms; the others are not shown`
      const retry = 'they are shown as others end'
      this.raise({ id: `crowd:${service}`, severity: 'warning', cause, retry })
    }
    return false
  }

  #tell(event: 'raised' | 'cleared', alarm: AlarmView): void {
    for (const listener of this.#listeners) listener(event, alarm)
  }
}
