import type { TableEntry } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { DecisionSink } from './decider.ts'

const alarmId = 'hot-keys'
/** A key displaces another only if it is this much hotter: otherwise two of equal heat would take turns. */
const clearlyHotter = 1.2
/** A key takes one place per this many characters of its name: the table goes into every process' memory. */
const charactersPerPlace = 256
/** Keys that may change places in one review. */
const maxSwaps = 1000

/**
 * Bounds the strategy table. A rule that is too broad makes more keys hot than a process should hold: the hottest are
 * handled, the others wait for a place, and an alarm names the rule with the most of them.
 */
export class CappedTable implements DecisionSink {
  readonly #sink: DecisionSink
  readonly #alarms: AlarmBoard
  readonly #maxKeys: number
  readonly #handled = new Map<HeatTrack, TableEntry>()
  readonly #waiting = new Map<HeatTrack, TableEntry>()
  #takenPlaces = 0

  constructor(sink: DecisionSink, alarms: AlarmBoard, maxKeys: number) {
    this.#sink = sink
    this.#alarms = alarms
    this.#maxKeys = maxKeys
  }

  set(track: HeatTrack, entry: TableEntry): void {
    if (this.#handled.has(track) || this.#hasPlaceFor(track)) this.#handle(track, entry)
    else this.#waiting.set(track, entry)
  }

  remove(track: HeatTrack): void {
    this.#waiting.delete(track)
    if (!this.#handled.delete(track)) return
    this.#takenPlaces -= placesOf(track)
    this.#sink.remove(track)
  }

  /** Gives free places to the hottest waiting keys, and lets keys that have become clearly hotter displace others. */
  review(now: number): void {
    if (this.#waiting.size === 0) {
      this.#alarms.clear(alarmId)
      return
    }
    this.#tell()
    const waiting = byHeat(this.#waiting.keys(), now).reverse()
    const handled = byHeat(this.#handled.keys(), now)
    let next = 0
    for (const { track, heat } of waiting.slice(0, maxSwaps)) {
      // A long name needs the places of several keys, which stay unless all of them together are enough.
      const leaving: HeatTrack[] = []
      let freed = 0
      while (!this.#hasPlaceFor(track, freed)) {
        const coolest = handled[next + leaving.length]
        if (coolest === undefined || heat <= coolest.heat * clearlyHotter) break
        leaving.push(coolest.track)
        freed += placesOf(coolest.track)
      }
      if (!this.#hasPlaceFor(track, freed)) continue
      next += leaving.length
      for (const one of leaving) {
        const entry = this.#handled.get(one)!
        this.remove(one)
        this.#waiting.set(one, entry)
      }
      this.#handle(track, this.#waiting.get(track)!)
    }
  }

  #hasPlaceFor(track: HeatTrack, freed = 0): boolean {
    const taken = this.#takenPlaces - freed
    // The first one always gets a place.
    return taken === 0 || taken + placesOf(track) <= this.#maxKeys
  }

  #handle(track: HeatTrack, entry: TableEntry): void {
    this.#waiting.delete(track)
    if (!this.#handled.has(track)) this.#takenPlaces += placesOf(track)
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
    // Fewer than allowed, and yet too many: their names are long.
    const most = all > this.#maxKeys ? `the ${this.#maxKeys} that are handled` : 'there is room for with names as long'
    this.#alarms.raise({
      id: alarmId,
      severity: 'warning',
      cause: `${all} keys are hot, more than ${most} (maxHotKeys); rule \`${ruleId}\` alone has ${count}: raise its threshold or narrow its pattern`,
      retry: 'the hottest keys are handled; the others follow when there is room',
    })
  }
}

function placesOf({ key }: HeatTrack): number {
  return Math.max(1, Math.ceil(key.length / charactersPerPlace))
}

function byHeat(tracks: Iterable<HeatTrack>, now: number): { readonly track: HeatTrack; readonly heat: number }[] {
  return Array.from(tracks, (track) => ({ track, heat: track.heat('accesses', now) / track.windowMs })).sort(
    (a, b) => a.heat - b.heat,
  )
}
