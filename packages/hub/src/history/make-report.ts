import type { HeatReport } from '@firebreak/core'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import { readEpisodes } from './episodes-view.ts'
import { heatReport, reportPeriod } from './heat-report.ts'
import { choosePeriod, dayMs } from './past.ts'
import { queryHistory } from './query-history.ts'

/** Reads the data of a report: series of minutes, and the episodes of its week. */
export async function makeReport(core: HubCore, by: 'day' | 'week', on: string): Promise<HeatReport> {
  const reported = reportPeriod(by, on)
  if (reported === undefined) {
    const example = by === 'day' ? '2026-11-17' : '2026-W47'
    throw new ApiProblem(400, 'FB_INPUT_INVALID', `on: there is no ${by} "${on}"; write ${example}`, 'query.on')
  }
  const { from, to } = reported
  const now = core.now()
  const period = choosePeriod(from, to, now, core.history.settings, { leastMs: 60_000, most: 20_000 })
  const [found, past] = await Promise.all([
    queryHistory(core.history, { by: 'key', period, filter: {}, sort: 'hot', limit: 20_000, page: 1 }),
    readEpisodes(core, Math.min(from, to - 7 * dayMs), to),
  ])
  const { rows, totals, traffic } = found
  const seen = traffic.filter(
    ({ redis, local, copies, limited, writes }) => redis + local + copies + limited + writes > 0,
  )
  const coverage = Math.min(1, (seen.length * period.resolutionMs) / (to - from))
  const { episodes, leftOut, eventsFrom } = past
  return { ...heatReport({ period: reported, now, rows, totals, coverage, episodes }), leftOut, eventsFrom }
}
