import {
  AccessCounter,
  ByteWriter,
  HeatWindow,
  hotSamplingFactor,
  Ingest,
  isHandled,
  maxSamplingFactor,
  nextSamplingFactor,
  ThresholdSampler,
  writeReportEntry,
} from '@firebreak/core'
import type { Trace } from './trace.ts'

/** A fleet that plays a trace to a hub. */
export interface DetectionOptions {
  readonly hosts: number
  /** How long it plays; a shorter trace begins again. */
  readonly seconds: number
  /** @default 100000 */
  readonly accessesPerSecond?: number
  /** @default 5000 */
  readonly windowMs?: number
  /** How often a host reports; also the length of a slice. @default 500 */
  readonly intervalMs?: number
  /** The threshold is set so that this many keys are hot in a window. @default 350 */
  readonly hotKeys?: number
  /** Rows per second that the hub takes of all hosts together; the factor follows from it. @default 38000 */
  readonly rowsPerSecond?: number
  /** A fixed sampling factor. @default the hub adapts it to the rows that come in */
  readonly factor?: number
  /** @default 1 */
  readonly seed?: number
}

/** How well a hub saw what was hot. */
export interface DetectionResult {
  readonly threshold: number
  /** The last one. */
  readonly factor: number
  /** Keys per window that were truly at 1.5 × the threshold or more, summed over the windows; and those found. */
  readonly wanted: number
  readonly found: number
  readonly recall: number
  /** Keys that became hot though they were never near it at 0.67 × the threshold. */
  readonly falseAlarms: number
  readonly rowsPerHostAndFlush: number
  /** Keys that were hot in the hub at the end of a slice, on average. */
  readonly meanHotKeys: number
}

/**
 * Plays a trace through the real path: each access is counted by the counter of a random host; each host flushes at its
 * own moment of the interval, samples, writes a binary report; the hub takes it into its window. What is exactly true is
 * counted beside it, per slice. A key at 1.5 × the threshold in a true window must be hot in the hub at the end of that
 * window or one interval later (when the last host has reported), and a key may only become hot within two intervals of
 * a true window of 0.67 × it.
 */
export function replayDetection(trace: Trace, options: DetectionOptions): DetectionResult {
  const { hosts, seconds, accessesPerSecond = 100_000, windowMs = 5000, intervalMs = 500, hotKeys = 350 } = options
  const { rowsPerSecond = 38_000, seed = 1 } = options
  const slices = windowMs / intervalMs
  const perSlice = (accessesPerSecond * intervalMs) / 1000
  const sliceCount = Math.floor((seconds * 1000) / intervalMs)
  const truth = exactHeats(trace, sliceCount, perSlice, slices)
  const threshold = thresholdFor(truth, slices, hotKeys)

  const random = seeded(seed)
  const maxRows = (rowsPerSecond * intervalMs) / 1000 / hosts
  let factor = options.factor ?? maxSamplingFactor(threshold)
  const idOfKey = new Map(trace.keys.map((key, id) => [key, id]))
  const alarms: { id: number; slice: number }[] = []
  let nowMs = 0
  const thresholds = { levels: [{ enter: threshold, exit: threshold * 0.7 }], minHoldMs: intervalMs }
  const window: HeatWindow = new HeatWindow({
    rules: { rules: [{ windowMs, thresholds }], match: () => 0 },
    startMs: 0,
    slices,
    onChange({ index, before, after }) {
      if (after.phase !== 'hot' || isHandled(before)) return
      alarms.push({ id: idOfKey.get(window.keyOf(index))!, slice: Math.floor(nowMs / intervalMs) })
    },
  })
  const ingest = new Ingest({ makeWindow: () => window })
  const fleet = Array.from({ length: hosts }, (_, number) => new SimulatedHost(number, random))

  let wanted = 0
  let found = 0
  let rows = 0
  let hotSum = 0
  let hotBefore = new Set<number>()
  // What hosts know to be hot: the table of the interval before.
  let table: ReadonlySet<string> = new Set()
  for (let slice = 0; slice < sliceCount; slice++) {
    let nextHost = 0
    const rowsBefore = rows
    const hotFactor = hotSamplingFactor(factor, [{ measure: 'accesses', ...thresholds.levels[0]! }])
    for (let nth = 0; nth < perSlice; nth++) {
      nowMs = (slice + nth / perSlice) * intervalMs
      // Host h flushes h / hosts into each interval.
      for (; nextHost < hosts && nextHost * perSlice <= nth * hosts; nextHost++) {
        const report = fleet[nextHost]!.flush(factor, hotFactor, table)
        if (report !== undefined) rows += ingest.take(report, nowMs)
      }
      const id = trace.ids[(slice * perSlice + nth) % trace.ids.length]!
      fleet[Math.floor(random() * hosts)]!.counter.add(trace.keys[id]!)
    }
    window.evaluate()
    const hotNow = new Set<number>()
    for (const index of window.candidates()) {
      if (isHandled(window.stateOf(index))) hotNow.add(idOfKey.get(window.keyOf(index))!)
    }
    hotSum += hotNow.size
    for (const [id, heat] of truth[slice - 1] ?? []) {
      if (heat < 1.5 * threshold) continue
      wanted++
      if (hotBefore.has(id) || hotNow.has(id)) found++
    }
    hotBefore = hotNow
    table = new Set([...hotNow].map((id) => trace.keys[id]!))
    // The hub tells the hosts what it can take; the first interval was a part of one.
    if (options.factor === undefined && slice > 0) {
      const load = { factor, rows: (rows - rowsBefore) / hosts, maxRows, lowestThreshold: threshold }
      factor = nextSamplingFactor(load)
    }
  }
  const isFalse = ({ id, slice }: { id: number; slice: number }) => {
    const near = [-2, -1, 0, 1].map((step) => truth[slice + step]?.get(id) ?? 0)
    return Math.max(...near) < 0.67 * threshold
  }
  return {
    threshold,
    factor,
    wanted,
    found,
    recall: wanted === 0 ? 1 : found / wanted,
    falseAlarms: alarms.filter(isFalse).length,
    rowsPerHostAndFlush: rows / ingest.counters.reports,
    meanHotKeys: hotSum / sliceCount,
  }
}

/** One process with a shield: counts, samples and reports. */
class SimulatedHost {
  readonly counter = new AccessCounter()
  readonly #name: string
  readonly #sampler: ThresholdSampler

  constructor(number: number, random: () => number) {
    this.#name = `host-${number}`
    this.#sampler = new ThresholdSampler(random)
  }

  /** The report of the interval; undefined where nothing happened. Keys of the table are sampled with a factor of their own. */
  flush(factor: number, hotFactor: number, table: ReadonlySet<string>): Uint8Array | undefined {
    const drain = this.counter.swap()!
    if (drain.totalCount === 0) return undefined
    const entries = new ByteWriter(4096)
    let count = 0
    const sampler = this.#sampler
    const visit = (key: string, accesses: number, writes: number, bytes: number) => {
      sampler.factor = table.has(key) ? hotFactor : factor
      if (!sampler.sample(accesses, writes, bytes)) return
      writeReportEntry(entries, key, sampler.count, sampler.writes, sampler.bytes)
      count++
    }
    while (drain.take(1024, visit));
    const report = new ByteWriter(entries.length + 64)
    report.varint(0)
    report.varint(0)
    for (const text of ['service', this.#name, this.#name]) report.text(text)
    report.varint(1)
    report.text('cluster')
    report.varint(drain.totalCount)
    report.varint(count)
    report.raw(entries.finish())
    return report.finish()
  }
}

/** For each slice, the true heat of the window that ends with it; keys with hardly any are left out. */
function exactHeats(trace: Trace, sliceCount: number, perSlice: number, slices: number): Map<number, number>[] {
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
function thresholdFor(truth: readonly Map<number, number>[], slices: number, hotKeys: number): number {
  const full = truth.length > slices ? truth.slice(slices) : truth.slice(-1)
  const levels = full.map((window) => [...window.values()].sort((a, b) => b - a)[hotKeys - 1] ?? 10)
  return levels.sort((a, b) => a - b)[levels.length >>> 1]!
}

function seeded(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}
