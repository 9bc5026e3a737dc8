import { parseArgs } from 'node:util'
import type { ForecastSettings, ForecastView, RecurrenceView } from '@firebreak/core'
import { type Command, UsageError } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const columns: readonly Column<RecurrenceView>[] = [
  { title: 'KEY', text: ({ name, isPrefix }) => (isPrefix ? `${name}*` : name), isFlexible: true },
  { title: 'CLUSTER', text: ({ redisClusterId }) => redisClusterId },
  { title: 'WHEN', text: ({ when }) => when },
  { title: 'SURE', text: ({ confidence }) => `${Math.round(confidence * 100)} %`, align: 'right' },
  { title: 'SEEN', text: ({ seen }) => String(seen), align: 'right' },
  { title: 'MISSED', text: ({ missed }) => String(missed), align: 'right' },
  { title: 'NEXT', text: ({ nextAt }) => new Date(nextAt).toISOString() },
  { title: 'WARMED AT', text: ({ warmAt, isTrusted }) => (isTrusted ? new Date(warmAt).toISOString() : '-') },
]

const modes: readonly string[] = ['off', 'suggest', 'do']

export const forecast: Command = {
  flags: ['hub', 'mode', 'time-zone', 'lead', 'json', 'ndjson', 'csv'],
  help: `Recurring heat, daily or weekly, as learned by the hub, and whether its keys are warmed in advance.

Examples:
  firebreak forecast
  firebreak forecast --mode do                        warm what is expected, shortly before
  firebreak forecast --time-zone Europe/Berlin        the time zone for days and weeks
  firebreak forecast --mode do --lead 300             five minutes before, at the latest

Options:
  --mode MODE       off: warm nothing; suggest: only show it (the hub's default); do: warm it
  --time-zone NAME  an IANA name; changing it restarts the learning (the hub's default: UTC)
  --lead SECONDS    how long before the earliest expected time to warm keys (the hub's default: 120)
  --hub URL         the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        hub: { type: 'string' },
        mode: { type: 'string' },
        'time-zone': { type: 'string' },
        lead: { type: 'string' },
        ...formatOptions,
      },
    })
    const { mode, 'time-zone': timeZone, lead } = values
    if (mode !== undefined && !modes.includes(mode))
      throw new UsageError(`--mode is ${JSON.stringify(mode)}; it must be one of ${modes.join(', ')}`)
    const leadMs = lead === undefined ? undefined : Number(lead) * 1000
    if (leadMs !== undefined && !(leadMs >= 0))
      throw new UsageError(`--lead is ${JSON.stringify(lead)}; it must be seconds`)
    const api = HubApi.of(values.hub, io)
    const change = {
      ...(mode !== undefined && { mode }),
      ...(timeZone !== undefined && { timeZone }),
      ...(leadMs !== undefined && { leadMs }),
    }
    if (Object.keys(change).length > 0) {
      const settings = await api.call<ForecastSettings>('PUT', '/v1/forecast/settings', change)
      io.stdout.write(`${settingsText(settings)}\n`)
      return 0
    }
    const view = await api.call<ForecastView>('GET', '/v1/forecast')
    if (view.isQuiet)
      io.stderr.write('Hardly anything expected today has come: nothing is warmed until something does.\n')
    printRecords(
      io,
      values,
      columns,
      view.recurrences,
      'No recurring heat is known yet: it must have occurred three times.',
    )
    return 0
  },
}

function settingsText({ mode, leadMs, timeZone }: ForecastSettings): string {
  const what = {
    off: 'Nothing is warmed by forecast',
    suggest: 'Expected heat is shown but not warmed',
    do: `Expected heat is warmed ${Math.round(leadMs / 1000)} s before`,
  }[mode]
  return `${what}; days and weeks in ${timeZone}.`
}
