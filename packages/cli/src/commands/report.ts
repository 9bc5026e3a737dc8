import { parseArgs } from 'node:util'
import { type HeatReport, type ReportKey, readableKey } from '@firebreak/core'
import { type Command, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const columns: readonly Column<ReportKey>[] = [
  { title: 'KEY', text: ({ key }) => readableKey(key), isFlexible: true },
  { title: 'CLUSTER', text: ({ redisClusterId }) => redisClusterId },
  { title: 'HOT', text: ({ hotMs }) => duration(hotMs), align: 'right' },
  { title: 'TIMES', text: ({ episodes }) => String(episodes), align: 'right' },
  { title: 'PEAK/S', text: ({ peakPerSecond }) => String(peakPerSecond), align: 'right' },
  { title: 'SHARE', text: ({ share }) => `${(share * 100).toFixed(1)}%`, align: 'right' },
  { title: 'SAVED', text: ({ saved }) => String(saved), align: 'right' },
  { title: 'FALSE', text: ({ falseAlarms }) => String(falseAlarms), align: 'right' },
  { title: 'SERVICES', text: ({ services }) => services.join(' '), isFlexible: true },
  { title: 'RULES', text: ({ ruleIds }) => ruleIds.join(' '), isFlexible: true },
]

export const report: Command = {
  flags: ['hub', 'week', 'on', 'json', 'ndjson', 'csv'],
  help: `What was hot in a day or a week, and how much load Redis was spared.

Examples:
  firebreak report
  firebreak report --on 2026-11-17
  firebreak report --week --csv > week.csv

Options:
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
  --week      a week instead of a day
  --on NAME   the day, 2026-11-17, or with --week 2026-W47, in UTC (default: today's)
${formatHelp}

HOT: how long the key was hot. TIMES: how often it became hot. SHARE: of all accesses. SAVED: reads that never reached Redis.
FALSE: times when it became hot and cooled again without need.
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        hub: { type: 'string' },
        week: { type: 'boolean', default: false },
        on: { type: 'string' },
        ...formatOptions,
      },
    })
    const by = values.week ? 'week' : 'day'
    const pattern = values.week ? /^\d{4}-W\d\d$/ : /^\d{4}-\d\d-\d\d$/
    if (values.on !== undefined && !pattern.test(values.on))
      throw new UsageError(`--on is "${values.on}"; write ${values.week ? '2026-W47' : '2026-11-17'}`)
    const query = new URLSearchParams({ by, ...(values.on !== undefined && { on: values.on }) })
    const answer = await HubApi.of(values.hub, io).call<HeatReport>('GET', `/v1/reports?${query}`)
    if (values.json) io.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
    else {
      if (!values.csv && !values.ndjson) io.stdout.write(`${summary(answer)}\n`)
      printRecords(io, values, columns, answer.keys, 'No key was hot.')
    }
    return 0
  },
}

function summary({ by, name, totals, coverage, recurring }: HeatReport): string {
  const times = totals.episodes === 1 ? 'once' : `${totals.episodes} times`
  const lines = [
    `${by} ${name}, ${Math.round(coverage * 100)} % of the period recorded`,
    `${totals.keys} ${totals.keys === 1 ? 'key was' : 'keys were'} hot, ${times}; ${totals.saved} reads (${(totals.savedShare * 100).toFixed(1)} %) never reached Redis; ${totals.falseAlarms} false alarms`,
    ...(recurring.length === 0
      ? []
      : [`recurring: ${recurring.map(({ key, days }) => `${readableKey(key)} (${days.length} days)`).join(', ')}`]),
  ]
  return `${lines.join('\n')}\n`
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
