import type { AlarmView } from '@firebreak/core'

const maxAlarms = 200

/** What is broken right now; each alarm is raised again while it lasts, and cleared when it ends. */
export class AlarmBoard {
  readonly #alarms = new Map<string, AlarmView>()

  /** Raises an alarm, or counts it once more. */
  raise(alarm: Pick<AlarmView, 'id' | 'severity' | 'cause' | 'retry'>, now: number): void {
    const known = this.#alarms.get(alarm.id)
    if (known === undefined && this.#alarms.size >= maxAlarms) return
    this.#alarms.set(alarm.id, { ...alarm, since: known?.since ?? now, count: (known?.count ?? 0) + 1 })
  }

  clear(id: string): void {
    this.#alarms.delete(id)
  }

  /** Ends the alarms of one kind (`kind:…`) that are not among those that still last. */
  keepOnly(kind: string, ids: ReadonlySet<string>): void {
    for (const id of this.#alarms.keys()) if (id.startsWith(`${kind}:`) && !ids.has(id)) this.#alarms.delete(id)
  }

  /** Critical ones first, then the oldest. */
  list(): AlarmView[] {
    return [...this.#alarms.values()].sort(
      (a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical') || a.since - b.since,
    )
  }
}
