import { hotSamplingFactor } from '@firebreak/core/heat'
import type { Trace } from '../traces/trace.ts'
import { DetectionJudge, type DetectionVerdict } from './detection-judge.ts'
import type { DetectionRule, Detector, OpenDetector } from './detector.ts'
import { type ExactHeats, exactHeats, thresholdFor } from './exact-heats.ts'
import { SimulatedHost } from './simulated-host.ts'

/** A fleet that plays a trace to a hub. */
export interface DetectionOptions {
  readonly hosts: number
  /** How long it plays; a shorter trace is repeated. */
  readonly seconds: number
  /** @default 100000 */
  readonly accessesPerSecond?: number
  /** @default 5000 */
  readonly windowMs?: number
  /** How often a host reports; also the length of a slice. @default 500 */
  readonly intervalMs?: number
  /** The threshold is set so that this many keys are hot in a window. @default 350 */
  readonly hotKeys?: number
  /** Rows per second that hubs accept from all hosts together; the factor follows from it. @default 39000 */
  readonly rowsPerSecond?: number
  /** A fixed sampling factor. @default what the hub asks of its hosts */
  readonly factor?: number
  /** @default 1 */
  readonly seed?: number
}

/** How accurately a hub detected hot keys. */
export interface DetectionResult extends DetectionVerdict {
  readonly threshold: number
  /** The last factor sent to the first host. */
  readonly factor: number
  /** Once the hubs have learnt what comes in. */
  readonly rowsPerHostAndFlush: number
}

/**
 * Plays a trace through the real path: each access is counted by the counter of a random host; each host flushes at its
 * own moment of the interval, samples, and writes a binary report, which the detector takes. The exact truth is counted
 * alongside, per slice. A key at 1.5 × the threshold in a true window must be hot at the end of that window or one
 * interval later (when the last host has reported), and a key may only become hot within two intervals of a true window
 * of 0.67 × it. If several hubs share the hosts, it must be hot in all of them, and may become hot in none without
 * reason.
 */
export async function replayDetection(
  trace: Trace,
  options: DetectionOptions,
  open: OpenDetector,
): Promise<DetectionResult> {
  const { seconds, accessesPerSecond = 100_000, windowMs = 5000, intervalMs = 500 } = options
  const { hotKeys = 350, rowsPerSecond = 39_000 } = options
  const slices = windowMs / intervalMs
  const perSlice = (accessesPerSecond * intervalMs) / 1000
  const truth = exactHeats(trace, Math.floor((seconds * 1000) / intervalMs), perSlice, slices)
  const threshold = thresholdFor(truth, slices, hotKeys)
  const pace = { minHoldMs: intervalMs, intervalMs, rowsPerSecond }
  const rule: DetectionRule = { threshold, exit: threshold * 0.7, windowMs, ...pace }
  const detector = await open(rule)
  try {
    return await play(trace, options, { rule, truth, perSlice, detector })
  } finally {
    await detector.close()
  }
}

/** A hub starts with all rows and sets its hosts' factor once a second. */
const learningMs = 4000

interface Stage {
  readonly rule: DetectionRule
  readonly truth: ExactHeats
  /** Accesses in a slice. */
  readonly perSlice: number
  readonly detector: Detector
}

async function play(trace: Trace, options: DetectionOptions, stage: Stage): Promise<DetectionResult> {
  const { hosts, seed = 1 } = options
  const { rule, truth, perSlice, detector } = stage
  const { threshold, exit, intervalMs } = rule
  const random = seeded(seed)
  const factorOf = (host: number) => options.factor ?? detector.factorOf(host)
  const fleet = Array.from({ length: hosts }, (_, number) => new SimulatedHost(number, random))
  const judge = new DetectionJudge(trace, truth, threshold)
  let reports = 0
  let rows = 0
  // What hosts know to be hot: the table of the interval before.
  let table: ReadonlySet<string> = new Set()
  let steppedMs = 0
  for (let slice = 0; slice < truth.length; slice++) {
    let nextHost = 0
    for (let nth = 0; nth < perSlice; nth++) {
      const atMs = (slice + nth / perSlice) * intervalMs
      for (; atMs >= steppedMs + detector.stepMs; await detector.moveTo(steppedMs)) steppedMs += detector.stepMs
      // Host h flushes h / hosts into each interval.
      for (; nextHost < hosts && nextHost * perSlice <= nth * hosts; nextHost++) {
        const factor = factorOf(nextHost)
        const hotFactor = hotSamplingFactor(factor, [{ measure: 'accesses', enter: threshold, exit }])
        const report = fleet[nextHost]!.flush(atMs, factor, hotFactor, table)
        if (report === undefined) continue
        await detector.take(report.bytes, nextHost, atMs)
        if (atMs < learningMs) continue
        reports++
        rows += report.rows
      }
      const id = trace.ids[(slice * perSlice + nth) % trace.ids.length]!
      fleet[Math.floor(random() * hosts)]!.counter.add(trace.keys[id]!)
    }
    steppedMs = (slice + 1) * intervalMs
    await detector.moveTo(steppedMs)
    table = detector.hot()
    judge.see(slice, table, detector.takeAlarms())
  }
  return { threshold, factor: factorOf(0), ...judge.verdict(), rowsPerHostAndFlush: rows / reports }
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
