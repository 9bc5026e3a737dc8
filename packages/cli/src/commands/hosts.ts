import { parseArgs } from 'node:util'
import type { HostView } from '@firebreak/core'
import type { Command } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const columns: readonly Column<HostView>[] = [
  { title: 'SERVICE', text: (host) => host.serviceId },
  { title: 'HOST', text: (host) => host.hostId },
  { title: 'PROCESS', text: (host) => host.instanceId, isFlexible: true },
  { title: 'AGENT', text: (host) => host.agent },
  { title: 'RATE/S', text: (host) => String(Math.round(host.ratePerSecond)), align: 'right' },
  { title: 'TABLE', text: (host) => (host.isOff ? 'off' : String(host.tableVersion)), align: 'right' },
  { title: 'CLOCK MS', text: (host) => String(Math.round(host.clockOffsetMs)), align: 'right' },
  { title: 'WATCHERS', text: (host) => host.watchers.map(({ kind, state }) => `${kind}:${state}`).join(' ') },
  { title: 'SEEN', text: (host) => new Date(host.lastSeenAt).toISOString() },
]

export const hosts: Command = {
  flags: ['hub', 'json', 'ndjson', 'csv'],
  help: `The live processes that report to the hub, what table they have and how their watchers stand.

Examples:
  firebreak hosts
  firebreak hosts --json

Options:
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values } = parseArgs({ args: [...args], options: { hub: { type: 'string' }, ...formatOptions } })
    const answer = await HubApi.of(values.hub, io).call<{ hosts: HostView[] }>('GET', '/v1/hosts')
    printRecords(io, values, columns, answer.hosts, 'No process reports to this hub.')
    return 0
  },
}
