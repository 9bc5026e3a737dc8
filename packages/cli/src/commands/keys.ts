import { parseArgs } from 'node:util'
import { didYouMean, type KeyView, readableKey } from '@firebreak/core'
import { type Command, UsageError } from '../command/command.ts'
import { wholeNumber } from '../flags/quantities.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { handledBy } from '../output/handled-by.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const states: readonly string[] = ['cold', 'warming', 'hot', 'cooling'] satisfies readonly KeyView['state'][]

const columns: readonly Column<KeyView>[] = [
  { title: 'KEY', text: (key) => readableKey(key.key), isFlexible: true },
  { title: 'CLUSTER', text: (key) => key.redisClusterId },
  { title: 'RATE/S', text: (key) => String(Math.round(key.ratePerSecond)), align: 'right' },
  { title: 'WRITES/S', text: (key) => String(Math.round(key.writesPerSecond)), align: 'right' },
  { title: 'SHARE', text: (key) => `${(key.share * 100).toFixed(1)}%`, align: 'right' },
  { title: 'STATE', text: (key) => key.state },
  { title: 'HANDLED BY', text: handledBy },
  { title: 'HOSTS', text: (key) => String(key.hosts), align: 'right' },
  { title: 'WHY', text: (key) => key.reason, isFlexible: true },
]

export const keys: Command = {
  flags: ['hub', 'state', 'limit', 'json', 'ndjson', 'csv'],
  help: `The hottest keys known to the hub.

Examples:
  firebreak keys
  firebreak keys --state hot --json
  firebreak keys --limit 500 --csv > keys.csv

Options:
  --hub URL     the hub (env FIREBREAK_HUB; default: the running "firebreak up")
  --state NAME  only keys that are cold, warming, hot or cooling
  --limit N     maximum number of keys (default 50)
${formatHelp}
`,
  async run(args, io) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        hub: { type: 'string' },
        state: { type: 'string' },
        limit: { type: 'string', default: '50' },
        ...formatOptions,
      },
    })
    if (values.state !== undefined && !states.includes(values.state)) {
      const close = didYouMean(values.state, states)
      throw new UsageError(
        `--state is "${values.state}"; it must be one of ${states.join(', ')}${close ? `; did you mean ${close}?` : ''}`,
      )
    }
    wholeNumber('limit', values.limit, 1, Number.MAX_SAFE_INTEGER)
    const query = new URLSearchParams({
      limit: values.limit,
      ...(values.state !== undefined && { state: values.state }),
    })
    const answer = await HubApi.of(values.hub, io).call<{ keys: KeyView[] }>('GET', `/v1/keys?${query}`)
    printRecords(io, values, columns, answer.keys, 'No keys.')
    return 0
  },
}
