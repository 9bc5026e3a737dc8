import { parseArgs } from 'node:util'
import type { Command } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'

/** The parts of an export, each an answer of the hub's API. */
const parts = {
  rules: '/v1/rules',
  table: '/v1/table',
  keys: '/v1/keys?limit=1000',
  hosts: '/v1/hosts',
  history: '/v1/history?since=0&limit=1000',
  audit: '/v1/audit?limit=1000',
  alarms: '/v1/alarms',
}

export const exportCommand: Command = {
  flags: ['hub'],
  help: `Everything the hub knows as one JSON object on stdout: ${Object.keys(parts).join(', ')}.

Examples:
  firebreak export > incident-42.json
  firebreak export | jq .rules.rules > rules.json && firebreak rules apply rules.json

Options:
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
`,
  async run(args, io) {
    const { values } = parseArgs({ args: [...args], options: { hub: { type: 'string' } } })
    const api = HubApi.of(values.hub, io)
    const answers = await Promise.all(
      Object.entries(parts).map(async ([name, path]) => [name, await api.call('GET', path)] as const),
    )
    io.stdout.write(
      `${JSON.stringify({ exportedAt: new Date().toISOString(), ...Object.fromEntries(answers) }, null, 2)}\n`,
    )
    return 0
  },
}
