import type { Trace } from '../traces/trace.ts'

/** For each slice, the true heat of the window that ends with it, by key id; keys with hardly any are left out. */
export type ExactHeats = readonly ReadonlyMap<number, number>[]

/** Counts a trace exactly. */
export function exactHeats(trace: Trace, sliceCount: number, perSlice: number, slices: number): ExactHeats {
  const heats = new Float64Array(trace.keys.length)
  const truth: Map<number, number>[] = []
  const ids = (slice: number, visit: (id: number) => void) => {
    const first = slice * perSlice
    for (let nth = first; nth < first + perSlice; nth++) visit(trace.ids[nth % trace.ids.length]!)
  }
  for (let slice = 0; slice < sliceCount; slice++) {
    ids(slice, (id) => heats[id]!++)
    if (slice >= slices) ids(slice - slices, (id) => heats[id]!--)
    const window = new Map<number, number>()
    for (let id = 0; id < heats.length; id++) if (heats[id]! >= 10) window.set(id, heats[id]!)
    truth.push(window)
  }
  return truth
}

/** The heat that, in the middle one of the full windows, this many keys have. */
export function thresholdFor(truth: ExactHeats, slices: number, hotKeys: number): number {
  const full = truth.length > slices ? truth.slice(slices) : truth.slice(-1)
  const levels = full.map((window) => [...window.values()].sort((a, b) => b - a)[hotKeys - 1] ?? 10)
  return levels.sort((a, b) => a - b)[levels.length >>> 1]!
}
