import type { HistorySettings, HistoryView } from '@firebreak/core'
import { isAutoRule, parseRule } from '@firebreak/core/rules'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubCore } from '../hub-core.ts'
import { dryRunAside } from './dry-run-aside.ts'
import { episodesView } from './episodes-view.ts'
import { heatMap } from './heat-map.ts'
import { periodName, reportCsv } from './heat-report.ts'
import { makeReport } from './make-report.ts'
import {
  checkPeriod,
  choosePeriod,
  dayMs,
  hourMs,
  maxPeriodMs,
  maxPoints,
  maxRowsOfPage,
  type Period,
  type RowFilter,
} from './past.ts'
import { readEvents } from './period-events.ts'
import { queryHistory } from './query-history.ts'
import { maxRecordedPoints, readRecords } from './recorded-seconds.ts'

const time = z.coerce.number().min(0).optional()
const name = z.string().max(4096).optional()
const subject = z.enum(['key', 'prefix', 'service', 'node', 'slot'])
const page = z.coerce.number().int().min(1).max(1_000_000).default(1)
const limit = z.coerce.number().int().min(1).max(10_000).default(200)
const filterFields = {
  cluster: name,
  key: name,
  prefix: name,
  service: name,
  rule: name,
  node: name,
  slot: z.coerce.number().int().min(0).max(16_383).optional(),
}
const historyQuery = z.strictObject({
  by: subject.default('key'),
  from: time,
  since: time,
  to: time,
  resolution: z.coerce.number().int().min(0).max(dayMs).default(0),
  ...filterFields,
  sort: z.enum(['accesses', 'peak', 'saved', 'hot', 'bytes', 'writes', 'name']).default('accesses'),
  limit,
  page,
  /** Returns this many events for a chart, spread over the period, instead of the newest ones. */
  marks: z.coerce.number().int().min(1).max(500).optional(),
})
const heatMapQuery = z.strictObject({
  by: subject.default('slot'),
  from: time,
  to: time,
  cluster: name,
  rows: z.coerce.number().int().min(1).max(512).default(64),
  columns: z.coerce.number().int().min(1).max(maxPoints).default(240),
})
const eventsQuery = z.strictObject({
  from: time,
  to: time,
  cluster: name,
  key: name,
  rule: name,
  service: name,
  who: name,
  limit,
  page,
  /** Single events per page, and which page. */
  events: z.coerce.number().int().min(0).max(1000).default(0),
  eventsPage: page,
  /** Points for which to return the number of hot keys. */
  points: z.coerce.number().int().min(0).max(maxPoints).default(0),
})
const reportQuery = z.strictObject({
  by: z.enum(['day', 'week']).default('day'),
  on: z.string().max(20).optional(),
  format: z.enum(['json', 'csv']).default('json'),
})
const dryRunQuery = z.strictObject({ from: time, to: time })
const keepMs = z
  .number()
  .int()
  .min(60_000)
  .max(400 * dayMs)
const settingsBody = z.strictObject({
  maxBytesPerDay: z
    .number()
    .int()
    .min(8 * 1024 * 1024)
    .max(1e12),
  keepMs: z.strictObject({ second: keepMs, tenSeconds: keepMs, minute: keepMs }),
})
/** Core parses the rule and reports invalid fields; only the outer form is described here. */
const ruleBody = z.looseObject({}).describe('a rule as users write it; see docs/reference/rules.md')

/** The past: series, heat maps, episodes, reports, and dry runs of rules. */
export function historyRoutes(core: HubCore): ApiRoute[] {
  const { history, store } = core
  return [
    {
      method: 'GET',
      path: '/v1/history',
      summary: 'What was hot in a period: series by key, prefix, service, node or slot, and what was decided',
      role: 'viewer',
      query: historyQuery,
      answer: 'HistoryView',
      async handle({ query }): Promise<HistoryView> {
        const asked = query as z.infer<typeof historyQuery>
        const { by, sort, page: pageNumber } = asked
        const period = periodOf(core, { ...asked, from: asked.from ?? asked.since }, hourMs, asked.resolution)
        const rowLimit = Math.min(asked.limit, maxRowsOfPage)
        const filter = filterOf(asked)
        const [found, events, from] = await Promise.all([
          queryHistory(history, { by, period, filter, sort, limit: rowLimit, page: pageNumber }),
          readEvents(store, period, asked),
          history.recordedFrom(),
        ])
        const { from: start, to, resolutionMs, points, stepMs } = period
        return {
          by,
          from: start,
          to,
          resolutionMs,
          points,
          ...found,
          page: pageNumber,
          pages: Math.max(1, Math.ceil(found.total / rowLimit)),
          events,
          recordedFrom: from.get(stepMs) ?? null,
        }
      },
    },
    {
      method: 'GET',
      path: '/v1/history/heatmap',
      summary: 'Time by slot, node, prefix, service or key',
      role: 'viewer',
      query: heatMapQuery,
      answer: 'HeatMapView',
      handle({ query }) {
        const asked = query as z.infer<typeof heatMapQuery>
        const period = periodOf(core, asked, hourMs, 0, asked.columns)
        return heatMap(history, asked.by, period, { redisClusterId: asked.cluster }, asked.rows)
      },
    },
    {
      method: 'GET',
      path: '/v1/history/events',
      summary: 'Each time that a key was hot: detected, delivered, handled, cooled; and what users did meanwhile',
      role: 'viewer',
      query: eventsQuery,
      answer: 'EpisodesView',
      handle: ({ query }) => episodesView(core, query as z.infer<typeof eventsQuery>),
    },
    {
      method: 'GET',
      path: '/v1/history/settings',
      summary: 'What is kept of the past, and what it costs',
      role: 'viewer',
      answer: 'HistorySettingsView',
      handle: () => history.view(),
    },
    {
      method: 'PUT',
      path: '/v1/history/settings',
      summary: 'Sets what is kept of the past',
      role: 'admin',
      body: settingsBody,
      answer: 'HistorySettingsView',
      async handle({ body, caller }) {
        const settings = body as HistorySettings
        const before = history.settings
        await history.saveSettings(settings)
        await core.journal.audit(caller.who, 'change what is kept of the past', before, settings)
        return history.view()
      },
    },
    {
      method: 'GET',
      path: '/v1/reports',
      summary: 'What was hot in a day or a week, and what was saved; as JSON or CSV',
      role: 'viewer',
      query: reportQuery,
      answer: 'HeatReport',
      async handle({ query, reply }) {
        const { by, on, format } = query as z.infer<typeof reportQuery>
        const report = await makeReport(core, by, on ?? periodName(by, core.now()))
        if (format === 'json') return report
        reply.header('content-disposition', `attachment; filename="firebreak-${report.name}.csv"`)
        return reply.type('text/csv; charset=utf-8').send(reportCsv(report))
      },
    },
    ...['/v1/rules/dry-run', '/v1/rules/:id/dry-run'].map(
      (path): ApiRoute => ({
        method: 'POST',
        path,
        summary: 'What a rule would have done with recorded traffic; changes nothing',
        // It occupies a separate thread, in proportion to the period.
        role: 'operator',
        query: dryRunQuery,
        body: ruleBody,
        answer: 'DryRunView',
        async handle({ params, query, body }) {
          const rule = parseRule({ id: params['id'] ?? 'dry-run', ...(body as object) })
          if (isAutoRule(rule)) {
            const message =
              'an auto rule cannot be tried on the past, which has no record of node load; run it in shadow mode'
            throw new ApiProblem(400, 'FB_INPUT_INVALID', message, 'threshold')
          }
          const asked = query as z.infer<typeof dryRunQuery>
          const { settings } = history
          const now = core.now()
          const to = Math.min(asked.to ?? now, now)
          const from = Math.max(0, asked.from ?? to - Math.min(hourMs, settings.keepMs.second))
          checkPeriod(from, to, dayMs)
          const period = choosePeriod(from, to, now, settings, { most: maxRecordedPoints })
          const points = await readRecords(history, period)
          return dryRunAside(rule, { ...period, points }, core.options)
        },
      }),
    ),
  ]
}

/** The requested period, or the most recent one of a given length. */
function periodOf(
  core: HubCore,
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  lengthMs: number,
  leastMs = 0,
  most = maxPoints,
): Period {
  const now = core.now()
  // If everything is requested, the period begins where there can be data.
  const end = Math.min(to ?? now, now + dayMs)
  const start = Math.max(from ?? end - lengthMs, end - maxPeriodMs)
  checkPeriod(start, end, maxPeriodMs)
  return choosePeriod(start, end, now, core.history.settings, { leastMs, most })
}

function filterOf({ cluster, rule, key, prefix, service, node, slot }: z.infer<typeof historyQuery>): RowFilter {
  return { redisClusterId: cluster, ruleId: rule, key, prefix, service, node, slot }
}
