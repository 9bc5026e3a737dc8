import { parseArgs } from 'node:util'
import type { AutopilotView, BesideKeyView, NodeLoadView } from '@firebreak/core'
import type { Command } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'
import { formatHelp, formatOptions, printRecords } from '../output/print-records.ts'
import type { Column } from '../output/table.ts'

const percent = (part: number) => `${Math.round(part * 100)} %`
const rate = (value: number | null) => (value === null ? '-' : Math.round(value).toLocaleString('en-US'))

const nodeColumns: readonly Column<NodeLoadView>[] = [
  { title: 'CLUSTER', text: (node) => node.redisClusterId },
  { title: 'NODE', text: (node) => node.node },
  { title: 'LOAD', text: (node) => percent(node.utilisation), align: 'right' },
  { title: 'UNHANDLED', text: (node) => percent(node.unhandledUtilisation), align: 'right' },
  { title: 'FULL AT/S', text: (node) => rate(node.capacityPerSecond), align: 'right' },
  { title: 'OPS/S', text: (node) => rate(node.operationsPerSecond), align: 'right' },
  { title: 'BY', text: (node) => node.source },
  { title: 'IN WORDS', text: (node) => node.text, isFlexible: true },
]

const besideColumns: readonly Column<BesideKeyView>[] = [
  { title: 'KEY', text: ({ key }) => key, isFlexible: true },
  { title: 'CLUSTER', text: ({ redisClusterId }) => redisClusterId },
  { title: 'RULE', text: ({ ruleId }) => ruleId },
  { title: 'HANDLED', text: ({ isHandled }) => (isHandled ? 'yes' : 'no') },
  { title: 'SINCE', text: ({ since }) => new Date(since).toISOString() },
  { title: 'WHY', text: ({ reason }) => reason },
]

export const autopilot: Command = {
  subcommands: ['shadow'],
  flags: ['hub', 'json', 'ndjson', 'csv'],
  help: `The load of each Redis node as rules with "threshold: auto" see it, and what such rules in shadow mode would do.

Examples:
  firebreak autopilot                  the nodes: load, load without strategies, and the rate from which a key is handled
  firebreak autopilot shadow           keys that a rule in shadow mode would handle now, and why
  firebreak autopilot --json

Nodes are measured only while there is such a rule: {id: auto, glob: "*", threshold: auto, mode: shadow}

Options:
  --hub URL  the hub (env FIREBREAK_HUB; default: the running "firebreak up")
${formatHelp}
`,
  async run(args, io) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { hub: { type: 'string' }, ...formatOptions },
    })
    const view = await HubApi.of(values.hub, io).call<AutopilotView>('GET', '/v1/autopilot')
    if (positionals[0] === 'shadow') {
      printRecords(io, values, besideColumns, view.beside, 'No rule in shadow mode would handle a key now.')
      return 0
    }
    printRecords(io, values, nodeColumns, view.nodes, 'No nodes are measured, because no rule has "threshold: auto".')
    return 0
  },
}
