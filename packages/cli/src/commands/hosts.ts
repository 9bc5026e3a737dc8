import { parseArgs } from 'node:util'
import type { HostView } from '@firebreak/core'
import { type Command, UsageError } from '../command/command.ts'
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

interface BarredView {
  readonly id: string
  readonly who: string
  readonly why: string
  readonly at: number
}

const barredColumns: readonly Column<BarredView>[] = [
  { title: 'PROCESS', text: ({ id }) => id, isFlexible: true },
  { title: 'BY', text: ({ who }) => who },
  { title: 'SINCE', text: ({ at }) => new Date(at).toISOString() },
  { title: 'WHY', text: ({ why }) => why },
]

export const hosts: Command = {
  subcommands: ['bar', 'unbar', 'barred'],
  flags: ['hub', 'why', 'json', 'ndjson', 'csv'],
  help: `The live processes that report to the hub, their table versions and the state of their watchers.

Examples:
  firebreak hosts
  firebreak hosts --json
  firebreak hosts bar shop/host-1/4711 --why 'reports false counts'
  firebreak hosts unbar shop/host-1/4711
  firebreak hosts barred                    blocked processes

Options:
  --why TEXT  why a process is blocked, shown to other operators
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { hub: { type: 'string' }, why: { type: 'string' }, ...formatOptions },
    })
    const api = HubApi.of(values.hub, io)
    const [action, id] = positionals
    if (action === undefined) {
      const answer = await api.call<{ hosts: HostView[] }>('GET', '/v1/hosts')
      printRecords(io, values, columns, answer.hosts, 'No process reports to this hub.')
    } else if (action === 'barred') {
      const { barred } = await api.call<{ barred: BarredView[] }>('GET', '/v1/barred')
      printRecords(io, values, barredColumns, barred, 'No process is blocked.')
    } else if (id === undefined || (action !== 'bar' && action !== 'unbar')) {
      throw new UsageError('usage: firebreak hosts [barred | bar SERVICE/HOST/PROCESS | unbar SERVICE/HOST/PROCESS]')
    } else if (action === 'bar') {
      await api.call('POST', '/v1/barred', { id, ...(values.why !== undefined && { why: values.why }) })
      io.stdout.write(`${id} is blocked\n`)
    } else {
      await api.call('DELETE', `/v1/barred/${encodeURIComponent(id)}`)
      io.stdout.write(`${id} is no longer blocked\n`)
    }
    return 0
  },
}
