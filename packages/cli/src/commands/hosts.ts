import { parseArgs } from 'node:util'
import type { HostView } from '@firebreak/core'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { HubApi, hubUrls } from '../hub-api/hub-api.ts'
import { hubShareOf, processesText } from '../hub-api/other-hubs.ts'
import { type FormatValues, formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

/** A process, and the hub that listed it where several were asked. */
type HostRow = HostView & { readonly hub?: string }

const columns: readonly Column<HostRow>[] = [
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

const hubColumn: Column<HostRow> = { title: 'HUB', text: ({ hub }) => hub }

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
  help: `The live processes that report to a hub, their table versions and the state of their watchers. Each process reports to one of
the hubs: name all of them to see every process.

Examples:
  firebreak hosts
  firebreak hosts --hub http://hub-1:7070,http://hub-2:7070
  firebreak hosts --json
  firebreak hosts bar shop/host-1/4711 --why 'reports false counts'
  firebreak hosts unbar shop/host-1/4711
  firebreak hosts barred                    blocked processes

Options:
  --why TEXT  why a process is blocked, shown to other operators
  --hub URL   the hub, or several separated by commas (env FIREBREAK_HUB; default: the running "firebreak up")
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
      await list(hubUrls(values.hub, io), values, io)
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

async function list(urls: readonly string[], values: FormatValues, io: CommandIo): Promise<void> {
  const answers = await Promise.all(
    urls.map(async (url) => {
      const api = HubApi.of(url, io)
      try {
        const { hosts } = await api.call<{ hosts: HostView[] }>('GET', '/v1/hosts')
        return { url, hosts, share: await hubShareOf(api) }
      } catch (failure) {
        return { url, failure: failure as Error }
      }
    }),
  )
  const heard = answers.filter((answer) => answer.hosts !== undefined)
  if (heard.length === 0) throw answers[0]!.failure!
  for (const { url, failure } of answers) {
    if (failure !== undefined) io.stderr.write(`The processes of the hub at ${url} are missing: ${failure.message}\n`)
  }
  const isOne = urls.length === 1
  const rows = heard.flatMap(({ url, hosts }) => hosts.map((host): HostRow => (isOne ? host : { ...host, hub: url })))
  const shown = isOne ? columns : [...columns, hubColumn]
  printRecords(io, values, shown, withoutMoved(rows), isOne ? 'No process reports to this hub.' : 'No process reports.')
  const share = heard[0]!.share
  if (share === undefined || share.hubs <= urls.length) return
  const others = isOne ? ` ${processesText(share.otherProcesses)} to the others;` : ''
  const which = isOne
    ? `This is hub ${share.hubId}, one of ${share.hubs}:`
    : `${urls.length} of ${share.hubs} hubs were asked:`
  io.stderr.write(
    `${which}${others} name every hub in --hub or FIREBREAK_HUB, separated by commas, to see all processes.\n`,
  )
}

/** A process that has moved is still listed for a while by the hub that it left. */
function withoutMoved(rows: readonly HostRow[]): readonly HostRow[] {
  const nameOf = ({ serviceId, hostId, instanceId }: HostRow) => `${serviceId}/${hostId}/${instanceId}`
  const connected = new Set(rows.filter(({ isConnected }) => isConnected !== false).map(nameOf))
  return rows.filter((row) => row.isConnected !== false || !connected.has(nameOf(row)))
}
