import { foretell, type WarmUp } from './forecast/foretell.ts'
import { type Burn, dayMs, generateWeeks, minuteMs } from './forecast/generated-weeks.ts'
import { Bench, isQuick, rounds, say } from './harness/bench.ts'

/**
 * Is heat that comes back warmed in time, and little else?
 *
 * Generated weeks (`forecast/generated-weeks.ts`) from a seed (`--seed N`, and the ones after it; `--holidays N`: one day in N): keys that burn each day, on workdays, or on
 * one or two days of the week, with jitter, holidays, drift, moves for good, the end of summer time, and random heat besides. They are played
 * to the hub's own forecaster in mode `do`, on a clock of their own; what counts are the jobs that it makes.
 *
 * - `hit-share`: occurrences of a pattern that begin while a job keeps their key warm, of all but the first three of each pattern, which
 *   nobody can know. After a move for good nothing is left out: those it misses count.
 * - `needless-share`: jobs in whose time their key did not begin to burn, of all jobs.
 *
 * The baseline `yesterday` warms a key at the time at which it burnt the day before; doing nothing hits nothing.
 */
const bench = new Bench('forecast')
const seedAt = process.argv.indexOf('--seed')
const seed = seedAt < 0 ? 1 : Number(process.argv[seedAt + 1])
const holidaysAt = process.argv.indexOf('--holidays')
const holidayEvery = holidaysAt < 0 ? 35 : Number(process.argv[holidaysAt + 1])
const weeks = 10
const patterns = rounds(30, 80)
const runs = rounds(3, 12)
const learning = 3

interface Sums {
  wanted: number
  hits: number
  jobs: number
  needless: number
}

function judge(
  burns: readonly Burn[],
  jobs: readonly WarmUp[],
  sums: Sums,
): { readonly hitShare: number; readonly needlessShare: number } {
  const jobsOf = Map.groupBy(jobs, ({ key }) => key)
  const burnsOf = Map.groupBy(burns, ({ key }) => key)
  const wanted = burns.filter(({ isRecurring, nth }) => isRecurring && nth >= learning)
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

const sums: Sums = { wanted: 0, hits: 0, jobs: 0, needless: 0 }
const before: Sums = { wanted: 0, hits: 0, jobs: 0, needless: 0 }
let [worstHits, worstNeedless] = [1, 0]
for (let run = 0; run < runs; run++) {
  const generated = generateWeeks(seed + run, weeks, patterns, holidayEvery)
  const { burns } = generated
  const { hitShare, needlessShare } = judge(burns, await foretell(generated), sums)
  judge(burns, yesterday(burns), before)
  worstHits = Math.min(worstHits, hitShare)
  worstNeedless = Math.max(worstNeedless, needlessShare)
  say(
    `seed ${seed + run}: ${(hitShare * 100).toFixed(1)} % hit, ${(needlessShare * 100).toFixed(1)} % of jobs needless`,
  )
}
const note = `${runs} seeds from ${seed}, ${patterns} patterns, ${weeks} weeks`
bench.report({ id: 'hit-share', value: sums.hits / sums.wanted, unit: 'of recurring heat', note })
bench.report({
  id: 'needless-share',
  value: sums.needless / sums.jobs,
  unit: 'of warm-ups',
  note: `${sums.jobs} warm-ups`,
})
bench.report({ id: 'hit-share-worst-seed', value: worstHits, unit: 'of recurring heat' })
bench.report({ id: 'needless-share-worst-seed', value: worstNeedless, unit: 'of warm-ups' })
bench.report({ id: 'yesterday-hit-share', value: before.hits / before.wanted, unit: 'of recurring heat' })
bench.report({ id: 'yesterday-needless-share', value: before.needless / before.jobs, unit: 'of warm-ups' })
bench.report({ id: 'nothing-hit-share', value: 0, unit: 'of recurring heat' })
if (isQuick) say('quick: 3 seeds with 30 patterns; whole: 12 with 80')
bench.done()
