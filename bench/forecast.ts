import { foretell, type WarmUp } from './forecast/foretell.ts'
import { type Burn, dayMs, generateWeeks, minuteMs, prefixOf } from './forecast/generated-weeks.ts'
import { Bench, isQuick, rounds, say } from './harness/bench.ts'

/**
 * Is heat that comes back warmed in time, and little else?
 *
 * Generated weeks (`forecast/generated-weeks.ts`) from a seed (`--seed N`, and the ones after it; `--holidays N`: one day in N; `--seeds`, `--patterns` and `--weeks` say how many): keys that burn each day, on workdays, or on
 * one or two days of the week, with jitter, holidays, drift, moves for good, the end of summer time, and random heat besides. They are played
 * to the hub's own forecaster in mode `do`, on a clock of their own; what counts are the jobs that it makes.
 *
 * - `hit-share`: occurrences of a pattern that begin while a job keeps their key warm, of all but the first three of each pattern, which
 *   nobody can know. After a move for good nothing is left out: those it misses count.
 * - `hit-share-all`: the same of all occurrences, with the three that nobody can know.
 * - `needless-share`: jobs in whose time their key did not begin to burn, of all jobs.
 * - `opening-hit-share`, `opening-needless-share`: the same where keys of a prefix burn together at times of no pattern, and the first
 *   is to bring the others: of those that follow it, from the fourth opening on.
 *
 * The baseline `yesterday` warms a key at the time at which it burnt the day before; doing nothing hits nothing.
 */
const bench = new Bench('forecast')
/** A whole number above 0. */
function option(name: string, initial: number): number {
  const at = process.argv.indexOf(`--${name}`)
  const given = at < 0 ? initial : Number(process.argv[at + 1])
  if (!Number.isSafeInteger(given) || given < 1) throw new Error(`--${name} must be a whole number above 0`)
  return given
}
const seed = option('seed', 1)
const holidayEvery = option('holidays', 35)
const weeks = option('weeks', 10)
const patterns = option('patterns', rounds(30, 80))
const runs = option('seeds', rounds(3, 12))
const learning = 3

interface Sums {
  wanted: number
  hits: number
  jobs: number
  needless: number
}

function judge(
  burns: readonly Burn[],
  isWanted: (burn: Burn) => boolean,
  jobs: readonly WarmUp[],
  sums: Sums,
): { readonly hitShare: number; readonly needlessShare: number } {
  const jobsOf = Map.groupBy(jobs, ({ key }) => key)
  const burnsOf = Map.groupBy(burns, ({ key }) => key)
  const wanted = burns.filter(isWanted)
  const isWarm = ({ key, from }: Burn) => (jobsOf.get(key) ?? []).some((job) => job.from <= from && from < job.to)
  const hits = wanted.filter(isWarm).length
  const isNeedless = ({ key, from, to }: WarmUp) =>
    !(burnsOf.get(key) ?? []).some((burn) => from <= burn.from && burn.from < to)
  const needless = jobs.filter(isNeedless).length
  sums.wanted += wanted.length
  sums.hits += hits
  sums.jobs += jobs.length
  sums.needless += needless
  return { hitShare: hits / Math.max(1, wanted.length), needlessShare: needless / Math.max(1, jobs.length) }
}

/** Each key at the time at which it burnt the day before, for as long as a job of the forecaster holds it. */
function yesterday(burns: readonly Burn[]): WarmUp[] {
  return burns.map(({ key, from }) => ({ key, from: from + dayMs - 10 * minuteMs, to: from + dayMs + 20 * minuteMs }))
}

const known = ({ isRecurring, nth }: Burn) => isRecurring && nth >= learning
const follower = ({ follows, nth }: Burn) => follows === true && nth >= learning
const empty = (): Sums => ({ wanted: 0, hits: 0, jobs: 0, needless: 0 })
const [sums, all, opened, before] = [empty(), empty(), empty(), empty()]
let [worstHits, worstNeedless] = [1, 0]
for (let run = 0; run < runs; run++) {
  const generated = generateWeeks(seed + run, weeks, patterns, holidayEvery)
  const { burns } = generated
  const { planned, following } = await foretell(generated)
  const { hitShare, needlessShare } = judge(burns, known, planned, sums)
  judge(burns, ({ isRecurring }) => isRecurring, planned, all)
  judge(burns, follower, following, opened)
  judge(burns, known, yesterday(burns.filter(({ key }) => prefixOf(key) === key)), before)
  worstHits = Math.min(worstHits, hitShare)
  worstNeedless = Math.max(worstNeedless, needlessShare)
  say(
    `seed ${seed + run}: ${(hitShare * 100).toFixed(1)} % hit, ${(needlessShare * 100).toFixed(1)} % of jobs needless`,
  )
}
const hitShareOf = ({ hits, wanted }: Sums) => hits / Math.max(1, wanted)
const needlessShareOf = ({ needless, jobs }: Sums) => needless / Math.max(1, jobs)
const note = `${runs} seeds from ${seed}, ${patterns} patterns, ${weeks} weeks`
bench.report({ id: 'hit-share', value: hitShareOf(sums), unit: 'of recurring heat', note })
bench.report({
  id: 'needless-share',
  value: needlessShareOf(sums),
  unit: 'of warm-ups',
  note: `${sums.jobs} warm-ups`,
})
bench.report({ id: 'hit-share-all', value: hitShareOf(all), unit: 'of recurring heat' })
bench.report({ id: 'opening-hit-share', value: hitShareOf(opened), unit: 'of keys that follow' })
bench.report({
  id: 'opening-needless-share',
  value: needlessShareOf(opened),
  unit: 'of warm-ups',
  note: `${opened.jobs} warm-ups`,
})
bench.report({ id: 'hit-share-worst-seed', value: worstHits, unit: 'of recurring heat' })
bench.report({ id: 'needless-share-worst-seed', value: worstNeedless, unit: 'of warm-ups' })
bench.report({ id: 'yesterday-hit-share', value: hitShareOf(before), unit: 'of recurring heat' })
bench.report({ id: 'yesterday-needless-share', value: needlessShareOf(before), unit: 'of warm-ups' })
bench.report({ id: 'nothing-hit-share', value: 0, unit: 'of recurring heat' })
if (isQuick) say('quick: 3 seeds with 30 patterns; whole: 12 with 80')
bench.done()
