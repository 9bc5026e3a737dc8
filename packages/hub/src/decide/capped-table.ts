import type { TableEntry } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { DecisionSink } from './decider.ts'

const alarmId = 'hot-keys'
/** A key takes another's place only where it is so much hotter: else two of the same heat would take turns. */
const clearlyHotter = 1.2
/** Keys that change places in one review. */
const maxSwaps = 1000

/**
 * Bounds the strategy table. A rule that is too wide makes more keys hot than a process should keep: the hottest are
 * handled, the others wait for a place, and an alarm names the rule that has most of them.
 */
export class CappedTable implements DecisionSink {
  readonly #sink: DecisionSink
  readonly #alarms: AlarmBoard
  readonly #maxKeys: number
  readonly #handled = new Map<HeatTrack, TableEntry>()
  readonly #waiting = new Map<HeatTrack, TableEntry>()

  constructor(sink: DecisionSink, alarms: AlarmBoard, maxKeys: number) {
    this.#sink = sink
    this.#alarms = alarms
    this.#maxKeys = maxKeys
  }

  set(track: HeatTrack, entry: TableEntry): void {
    if (this.#handled.has(track) || this.#handled.size < this.#maxKeys) this.#handle(track, entry)
    else this.#waiting.set(track, entry)
  }

  remove(track: HeatTrack): void {
    this.#waiting.delete(track)
    if (this.#handled.delete(track)) this.#sink.remove(track)
  }

  /** Gives free places to the hottest that wait, and theirs to keys that have become clearly hotter. */
  review(now: number): void {
    if (this.#waiting.size === 0) {
      this.#alarms.clear(alarmId)
      return
    }
    this.#tell()
    const waiting = byHeat(this.#waiting.keys(), now).reverse()
    const handled = byHeat(this.#handled.keys(), now)
    for (const [index, { track, heat }] of waiting.slice(0, maxSwaps).entries()) {
      if (this.#handled.size >= this.#maxKeys) {
        const coolest = handled[index]
        if (coolest === undefined || heat <= coolest.heat * clearlyHotter) break
        const entry = this.#handled.get(coolest.track)!
        this.remove(coolest.track)
        this.#waiting.set(coolest.track, entry)
      }
      this.#handle(track, this.#waiting.get(track)!)
    }
  }

  #handle(track: HeatTrack, entry: TableEntry): void {
    this.#waiting.delete(track)
    this.#handled.set(track, entry)
    this.#sink.set(track, entry)
  }

  #tell(): void {
    const counts = new Map<string, number>()
    for (const { ruleId } of [...this.#handled.values(), ...this.#waiting.values()]) {
      counts.set(ruleId, (counts.get(ruleId) ?? 0) + 1)
    }
    const [ruleId, count] = [...counts].reduce((widest, next) => (next[1] > widest[1] ? next : widest))
    const all = this.#handled.size + this.#waiting.size
    this.#alarms.raise({
      id: alarmId,
      severity: 'warning',
      cause: `${all} keys are hot, more than the ${this.#maxKeys} that are handled (maxHotKeys); rule \`${ruleId}\` alone has ${count}: raise its threshold or narrow its pattern`,
      retry: 'the hottest keys are handled; the others get a place when one is free',
    })
  }
}

function byHeat(tracks: Iterable<HeatTrack>, now: number): { readonly track: HeatTrack; readonly heat: number }[] {
  return Array.from(tracks, (track) => ({ track, heat: track.heat('accesses', now) / track.windowMs })).sort(
    (a, b) => a.heat - b.heat,
  )
}
