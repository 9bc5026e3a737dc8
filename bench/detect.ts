import { loadTrace, replayDetection, traceNames, zipfTrace } from '@firebreak/testkit'
import { measureFastPath } from './detect/fast-path.ts'
import { detectWithThreeHubs } from './detect/three-hubs.ts'
import { Bench, isQuick, quantile, rounds, say } from './harness/bench.ts'

/**
 * Does a hub find what is hot over a whole fleet, when each host sees next to nothing of it?
 *
 * Traces played at 100,000 accesses/s, split at random over 1, 20, 200 and 1,000 hosts that report every 500 ms, through
 * the real counter, sampling, report and window of 5 s; the threshold is set so that some 350 keys are hot. `recall-…`
 * is of keys at 1.5 × the threshold or more, window by window; `false-alarms-…` counts keys that became hot below 0.67 ×
 * of it. Plain ids are of the longest trace, the only one that lasts 50 s at this speed; shorter ones begin again and
 * again, and their name ends the id.
 *
 * `fast-path-…`: one process alone pushes a key over its threshold, at 20 thresholds a second (`storm`) or at 1.3
 * (`creeping`): the time from the access that reached it to the key being served from that process' memory.
 *
 * `…-3-hubs`: the same fleet on three whole hubs that share one Redis, in real time, at half the speed with a window twice
 * as long (`FIREBREAK_ONLY=three-hubs`, `fast-path` or `one-hub` runs one part alone); found means in the table of every hub, false in that of any.
 */
const bench = new Bench('detect')
const recorded = traceNames()
const traces = recorded.length > 0 ? recorded.map(loadTrace) : [zipfTrace(5_000_000, 86_000, 0.6)]
traces.sort((a, b) => b.ids.length - a.ids.length)

const only = process.env['FIREBREAK_ONLY']

function oneHub(): void {
  for (const hosts of [1, 20, 200, 1000]) {
    for (const [nth, trace] of traces.entries()) {
      const seconds = isQuick ? 8 : nth === 0 ? 50 : 20
      const result = replayDetection(trace, { hosts, seconds })
      say(
        `${hosts} hosts, ${trace.name}: threshold ${result.threshold}, factor ${result.factor.toFixed(2)}, ` +
          `${result.meanHotKeys.toFixed(0)} hot, ${result.found} of ${result.wanted} found, ` +
          `${result.falseAlarms} false, ${result.rowsPerHostAndFlush.toFixed(1)} rows`,
      )
      const suffix = `${hosts}-hosts${nth === 0 ? '' : `-${trace.name}`}`
      const note = `${trace.name}, threshold ${result.threshold}, ${result.wanted} keys × windows`
      bench.report({ id: `recall-${suffix}`, value: result.recall, unit: 'of keys at 1.5 × the threshold', note })
      bench.report({ id: `false-alarms-${suffix}`, value: result.falseAlarms, unit: 'keys' })
      bench.report({ id: `rows-per-host-${suffix}`, value: result.rowsPerHostAndFlush, unit: 'rows a flush' })
    }
  }
}

async function threeHubs(): Promise<void> {
  for (const [nth, trace] of traces.entries()) {
    if (isQuick && nth > 0) return
    const { threshold } = replayDetection(trace, { hosts: 1, seconds: 12 })
    const result = await detectWithThreeHubs(trace, { hosts: 1000, threshold, windows: isQuick ? 1.2 : 2.5 })
    const { found, wanted, falseAlarms, rowsPerHostAndFlush, meanHotKeys, judged, late } = result
    say(
      `1000 hosts, 3 hubs, ${trace.name}: threshold ${threshold}, ${meanHotKeys.toFixed(0)} hot, ` +
        `${found} of ${wanted} found, ${falseAlarms} false, ${rowsPerHostAndFlush.toFixed(1)} rows; ${judged} windows, ${late} came late`,
    )
    const suffix = `1000-hosts-3-hubs${nth === 0 ? '' : `-${trace.name}`}`
    const note = `${trace.name}, threshold ${threshold}, ${wanted} keys × windows`
    bench.report({
      id: `recall-${suffix}`,
      value: wanted === 0 ? 1 : found / wanted,
      unit: 'of keys at 1.5 × the threshold',
      note,
    })
    bench.report({ id: `false-alarms-${suffix}`, value: falseAlarms, unit: 'keys' })
    bench.report({ id: `rows-per-host-${suffix}`, value: rowsPerHostAndFlush, unit: 'rows a flush' })
  }
}

async function fastPath(): Promise<void> {
  const delays = await measureFastPath(rounds(3, 20))
  for (const [name, values] of Object.entries(delays)) {
    say(`fast path, ${name}: ${values.map((ms: number) => ms.toFixed(1)).join(' ')} ms`)
    bench.report({ id: `fast-path-${name}-p50`, value: quantile(values, 0.5), unit: 'ms after the crossing' })
    bench.report({ id: `fast-path-${name}-max`, value: Math.max(...values), unit: 'ms after the crossing' })
  }
}

if (only === undefined || only === 'one-hub') oneHub()
if (only === undefined || only === 'fast-path') await fastPath()
if (only === undefined || only === 'three-hubs') await threeHubs()
bench.done()
