import { loadTrace, replayDetection, traceNames, zipfTrace } from '@firebreak/testkit'
import { Bench, isQuick, say } from './harness/bench.ts'

/**
 * Does a hub find what is hot over a whole fleet, when each host sees next to nothing of it?
 *
 * Traces played at 100,000 accesses/s, split at random over 1, 20, 200 and 1,000 hosts that report every 500 ms, through
 * the real counter, sampling, report and window of 5 s; the threshold is set so that some 350 keys are hot. `recall-…`
 * is of keys at 1.5 × the threshold or more, window by window; `false-alarms-…` counts keys that became hot below 0.67 ×
 * of it. Plain ids are of the longest trace, the only one that lasts 50 s at this speed; shorter ones begin again and
 * again, and their name ends the id.
 */
const bench = new Bench('detect')
const recorded = traceNames()
const traces = recorded.length > 0 ? recorded.map(loadTrace) : [zipfTrace(5_000_000, 86_000, 0.6)]
traces.sort((a, b) => b.ids.length - a.ids.length)

for (const hosts of [1, 20, 200, 1000]) {
  for (const [nth, trace] of traces.entries()) {
    const seconds = isQuick ? 12 : nth === 0 ? 50 : 20
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
bench.done()
