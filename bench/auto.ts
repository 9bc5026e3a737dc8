import { loadTrace, restlessTrace, type Trace, traceNames, zipfTrace } from '@firebreak/testkit'
import { judge, type Score, score } from './auto/oracle.ts'
import { play } from './auto/play.ts'
import {
  bursting,
  calm,
  type PlayOptions,
  parseShape,
  played,
  type Shape,
  scaled,
  surged,
  ticksPerSecond,
  type Workload,
} from './auto/workload.ts'
import { Bench, isQuick, rounds, say } from './harness/bench.ts'

/**
 * Does a rule without a threshold handle what matters, and leave the rest alone?
 *
 * Traces and generated workloads are played to one Redis node that is full at 100,000 operations a second (`small-…`: at 20,000), through
 * a whole hub: once with the rule that `firebreak up` begins with (1,000 accesses a second), once with `threshold: auto`, which knows
 * nothing but reports and the node's own figures. Load follows two days in fast motion: 25 to 80 %, then a sudden 92 %. `…-calm` stays at
 * 30 to 35 %; in `…-surge` one key comes on top of it, with a fifth or more of the node. What is hot changes in `…-drift` every few
 * seconds; in `…-bursts` keys of a dozen or two burst for a tenth of a second or some, each with an eighth of the node; `…-flicker` is
 * three keys at 13 % of the requests each, other three every 8,000 requests.
 *
 * What mattered is decided by an oracle that knows the whole workload and no rule (`auto/oracle.ts`): only seconds in which the node,
 * unhandled, would be at 70 % or more, and in them the fewest keys without which it would not.
 *
 * - `recall-vs-threshold`: the part of what mattered that `auto` handled, to that of the threshold. Above 1 is better.
 * - `needless-actions-vs-threshold`: actions in whose time no second mattered, to those of the threshold. Below 1 is better.
 * - `load-kept-vs-threshold`: of the load above 70 %, what was kept from the node, to that of the threshold. Above 1 is better.
 *
 * Ids that end with the name of a workload are of that alone. Doing nothing has recall 0, no action, and keeps nothing (`nothing-…`).
 * `FIREBREAK_TRACES` names a folder of traces; `--seed N` makes other workloads, `--seconds N` longer ones; `--capacity N` is
 * what the node can do a second, `--shape days|calm|0.8` how full it is, both for all workloads that are not about one of them;
 * `--threshold N` is the rival's; `--only NAME` plays the workloads with that in their name.
 */
const bench = new Bench('auto')
const option = (name: string) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}
/** A whole number above 0. */
function count(name: string, initial: number): number {
  const given = Number(option(name) ?? initial)
  if (!Number.isSafeInteger(given) || given < 1) throw new Error(`--${name} must be a whole number above 0`)
  return given
}
const seed = Number(option('seed') ?? 1)
const seconds = count('seconds', rounds(30, 120))
const capacity = count('capacity', 100_000)
const usual = parseShape(option('shape') ?? 'days')
const threshold = { threshold: count('threshold', 1000) }
const auto = { threshold: 'auto' }

function playAll(trace: Trace, shape: Shape, more: Partial<PlayOptions> = {}): Workload {
  const capacityPerSecond = more.capacityPerSecond ?? capacity
  // A trace of some ten thousand requests is over in a blink: each then stands for several.
  const weight = Math.max(1, Math.round((capacityPerSecond * seconds * 0.4) / trace.ids.length / 4))
  return played(trace, shape, { capacityPerSecond, seconds, seed, weight, ...more })
}

const recorded = traceNames().map(loadTrace)
const skewed = zipfTrace(400_000, 20_000, 1.1, seed)
const flat = zipfTrace(400_000, 50_000, 0.3, seed + 1)
const named = (name: string, workload: Workload): Workload => ({ ...workload, name })
const restless = { requests: 400_000, keyCount: 20_000, seed: seed + 2 }
const drifting = restlessTrace({ ...restless, exponent: 1.1, moveEvery: 100_000 })
const flickering = restlessTrace({ ...restless, exponent: 0.8, burstShare: 0.39, burstKeys: 3, burstLength: 8000 })
const workloads: Workload[] = [
  ...recorded.map((trace) => playAll(trace, usual)),
  named('generated-skewed', playAll(skewed, usual)),
  named('generated-small-node', playAll(skewed, usual, { capacityPerSecond: Math.ceil(capacity / 5) })),
  named('generated-calm', playAll(skewed, calm)),
  named('generated-drift', playAll(drifting, usual)),
  named('generated-flicker', playAll(flickering, usual, { weight: 1 })),
  named('generated-bursts', bursting(playAll(flat, scaled(usual, 0.6)), { keys: 24, atOnce: 3, part: 0.12, seed })),
  named('generated-bursts-calm', bursting(playAll(flat, scaled(calm, 0.5)), { keys: 24, atOnce: 3, part: 0.06, seed })),
  named(
    'generated-surge',
    surged(
      playAll(flat, () => 0.55),
      0.2,
      seconds * 0.5,
      seconds * 0.8,
    ),
  ),
]

type Scored = Score & { readonly surgeDelayMs: number | undefined }

interface Result {
  readonly name: string
  readonly threshold: Scored
  readonly auto: Scored
}

const only = option('only')
const chosen = workloads.filter(({ name }) => only === undefined || name.includes(only))
if (chosen.length === 0) throw new Error(`--only ${only}: there is ${workloads.map(({ name }) => name).join(', ')}`)
const results: Result[] = []
for (const workload of chosen) {
  const truth = judge(workload)
  const scored = async (rule: Record<string, unknown>) => {
    const { actions, reasons } = await play(workload, rule)
    const example = [...reasons.values()][0]
    if (rule === auto && example !== undefined) say(`  e.g. ${example}`)
    return { ...score(workload, truth, actions), surgeDelayMs: surgeDelay(workload, actions) }
  }
  const byThreshold = await scored(threshold)
  const byAuto = await scored(auto)
  const strained = truth.filter(({ matters }) => matters).length
  say(
    `${workload.name}: ${strained} of ${workload.seconds} s at 70 % or more, ${byAuto.wanted} keys × seconds mattered`,
  )
  for (const [name, result] of Object.entries({ threshold: byThreshold, auto: byAuto }))
    say(
      `  ${name.padEnd(9)} recall ${result.recall.toFixed(3)}, ${result.needless} of ${result.actions} actions needless, ` +
        `load kept ${result.loadKept.toFixed(3)}, accesses kept ${result.accessesKept.toFixed(3)}`,
    )
  results.push({ name: workload.name, threshold: byThreshold, auto: byAuto })
}

/** How long after its beginning the key of a surge was handled; undefined where there is none, the whole surge where it was not. */
function surgeDelay(
  { keys, seconds: length }: Workload,
  actions: readonly { readonly key: number; readonly from: number; readonly to: number }[],
): number | undefined {
  const key = keys.indexOf('surge')
  if (key < 0) return undefined
  const [begins, ends] = [length * 0.5, length * 0.8]
  const found = actions.filter((action) => action.key === key && action.to > begins * ticksPerSecond)
  const from = Math.min(ends * ticksPerSecond, ...found.map((action) => action.from))
  return Math.max(0, (from / ticksPerSecond - begins) * 1000)
}

/** A rival with nothing at all counts as one with a little, so that a ratio can be told; equal is 1. */
const ratio = (a: number, b: number, least: number) => (a === b ? 1 : a / Math.max(least, b))
const sum = (of: (result: Result) => number) => results.reduce((total, result) => total + of(result), 0)
const [of, to] = ['auto', `threshold ${threshold.threshold}`]
function tell(suffix: string, auto: Omit<Score, 'actions'>, other: Omit<Score, 'actions'>): void {
  bench.report({ id: `recall-vs-threshold${suffix}`, ratio: ratio(auto.recall, other.recall, 0.01), of, to })
  bench.report({ id: `needless-actions-vs-threshold${suffix}`, ratio: ratio(auto.needless, other.needless, 1), of, to })
  bench.report({ id: `load-kept-vs-threshold${suffix}`, ratio: ratio(auto.loadKept, other.loadKept, 0.01), of, to })
}
const whole = (which: 'auto' | 'threshold') => ({
  wanted: 0,
  recall:
    sum((result) => result[which].recall * result.auto.wanted) /
    Math.max(
      1,
      sum(({ auto }) => auto.wanted),
    ),
  needless: sum((result) => result[which].needless),
  loadKept: sum((result) => result[which].loadKept) / results.length,
  accessesKept: sum((result) => result[which].accessesKept) / results.length,
})
const [wholeAuto, wholeThreshold] = [whole('auto'), whole('threshold')]
tell('', wholeAuto, wholeThreshold)
for (const { name, auto: one, threshold: other } of results) tell(`-${name}`, one, other)
for (const [name, figures] of Object.entries({ auto: wholeAuto, threshold: wholeThreshold })) {
  bench.report({ id: `${name}-recall`, value: figures.recall, unit: 'of keys × seconds that mattered' })
  bench.report({ id: `${name}-needless`, value: figures.needless, unit: 'actions' })
  bench.report({ id: `${name}-load-kept`, value: figures.loadKept, unit: 'of the load above 70 %' })
}
for (const name of ['auto', 'threshold'] as const) {
  const delay = results.map((result) => result[name].surgeDelayMs).find((ms) => ms !== undefined)
  if (delay !== undefined) bench.report({ id: `${name}-surge-delay`, value: Math.round(delay), unit: 'ms' })
}
bench.report({ id: 'nothing-recall', value: 0, unit: 'of keys × seconds that mattered' })
bench.report({ id: 'nothing-load-kept', value: 0, unit: 'of the load above 70 %' })
for (const { name, auto: one, threshold: other } of results) {
  const isWorse = one.recall < other.recall || one.needless > other.needless || one.loadKept < other.loadKept - 1e-9
  if (isWorse) say(`worse than the threshold: ${name}`)
}
if (isQuick) say('quick: 30 s of each workload; whole: 120 s')
bench.done()
