import {
  type DetectionRule,
  loadTrace,
  type OpenDetector,
  replayDetection,
  startCluster,
  startRedis,
  traceNames,
  zipfTrace,
} from '@firebreak/testkit'
import { measureFastPath } from './detect/fast-path.ts'
import { openOneHub, openThreeHubs } from './detect/replayed-hubs.ts'
import { Bench, isQuick, quantile, rounds, say } from './harness/bench.ts'

/**
 * Does a hub find what is hot over a whole fleet, when each host sees next to nothing of it?
 *
 * Traces played at 100,000 accesses/s, split at random over 1, 20, 200 and 1,000 hosts that report every 500 ms, through
 * the real counter, sampling, report and a whole hub with a window of 5 s; the threshold is set so that some 350 keys are
 * hot. `recall-…` is of keys at 1.5 × the threshold or more, window by window; `false-alarms-…` counts keys that became hot
 * below 0.67 × of it. Plain ids are of the longest trace, the only one that lasts 50 s at this speed; shorter ones begin
 * again and again, and their name ends the id.
 *
 * `three-hubs-…`: the same fleet on three whole hubs that share a real Redis; found means in the table of every hub, false
 * in that of any. `three-hubs-on-cluster-…`: they share a real Redis Cluster of three. Hubs, hosts and the time that Redis'
 * scripts go by are the replay's: no window is left out, and the machine's speed changes nothing.
 *
 * `fast-path-…`: one process alone pushes a key over its threshold, at 20 thresholds a second (`storm`) or at 1.3
 * (`creeping`): the time from the access that reached it to the key being served from that process' memory.
 *
 * `FIREBREAK_ONLY=one-hub`, `three-hubs` or `fast-path` runs one part alone.
 */
const bench = new Bench('detect')
const recorded = traceNames()
const traces = recorded.length > 0 ? recorded.map(loadTrace) : [zipfTrace(5_000_000, 86_000, 1)]
traces.sort((a, b) => b.ids.length - a.ids.length)
const only = process.env['FIREBREAK_ONLY']

interface Setting {
  /** What ids begin with. */
  readonly prefix: string
  readonly fleets: readonly number[]
  /** How long each trace is played; the others not at all where it is 0. */
  readonly longestSeconds: number
  readonly otherSeconds: number
  readonly open: OpenDetector
}

async function detect({ prefix, fleets, longestSeconds, otherSeconds, open }: Setting): Promise<void> {
  for (const hosts of fleets) {
    for (const [nth, trace] of traces.entries()) {
      const seconds = nth === 0 ? longestSeconds : otherSeconds
      if (seconds === 0) continue
      const result = await replayDetection(trace, { hosts, seconds }, open)
      say(
        `${prefix}${hosts}-hosts, ${trace.name}: threshold ${result.threshold}, factor ${result.factor.toFixed(2)}, ` +
          `${result.meanHotKeys.toFixed(0)} hot, ${result.found} of ${result.wanted} found, ` +
          `${result.falseAlarms} false, ${result.rowsPerHostAndFlush.toFixed(1)} rows`,
      )
      const suffix = `${hosts}-hosts${nth === 0 ? '' : `-${trace.name}`}`
      const note = `${trace.name}, threshold ${result.threshold}, ${result.wanted} keys × windows`
      const { recall, falseAlarms, rowsPerHostAndFlush } = result
      bench.report({ id: `${prefix}recall-${suffix}`, value: recall, unit: 'of keys at 1.5 × the threshold', note })
      bench.report({ id: `${prefix}false-alarms-${suffix}`, value: falseAlarms, unit: 'keys' })
      bench.report({ id: `${prefix}rows-per-host-${suffix}`, value: rowsPerHostAndFlush, unit: 'rows a flush' })
    }
  }
}

async function oneHub(): Promise<void> {
  const [longestSeconds, otherSeconds] = isQuick ? [8, 8] : [50, 20]
  await detect({ prefix: '', fleets: [1, 20, 200, 1000], longestSeconds, otherSeconds, open: openOneHub })
}

async function threeHubs(): Promise<void> {
  const redis = await startRedis()
  const [longestSeconds, otherSeconds] = isQuick ? [8, 0] : [20, 10]
  const open = (rule: DetectionRule) => openThreeHubs(rule, redis.url)
  const fleets = isQuick ? [1000] : [1, 20, 200, 1000]
  await detect({ prefix: 'three-hubs-', fleets, longestSeconds, otherSeconds, open })
  await redis.stop()
}

async function threeHubsOnCluster(): Promise<void> {
  const cluster = await startCluster({ masters: 3 })
  const url = `redis://${cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`
  const open = (rule: DetectionRule) => openThreeHubs(rule, url)
  const prefix = 'three-hubs-on-cluster-'
  await detect({ prefix, fleets: [1000], longestSeconds: 10, otherSeconds: 0, open })
  await cluster.stop()
}

async function fastPath(): Promise<void> {
  const delays = await measureFastPath(rounds(3, 20))
  for (const [name, values] of Object.entries(delays)) {
    say(`fast path, ${name}: ${values.map((ms: number) => ms.toFixed(1)).join(' ')} ms`)
    bench.report({ id: `fast-path-${name}-p50`, value: quantile(values, 0.5), unit: 'ms after the crossing' })
    bench.report({ id: `fast-path-${name}-max`, value: Math.max(...values), unit: 'ms after the crossing' })
  }
}

if (only === undefined || only === 'one-hub') await oneHub()
if (only === undefined || only === 'fast-path') await fastPath()
if (only === undefined || only === 'three-hubs') {
  await threeHubs()
  if (!isQuick) await threeHubsOnCluster()
}
bench.done()
