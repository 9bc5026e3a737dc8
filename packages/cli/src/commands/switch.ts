import { parseArgs } from 'node:util'
import type { Command } from '../command/command.ts'
import { HubApi } from '../hub-api/hub-api.ts'

function switchCommand(name: 'off' | 'on', whatFor: string, said: string): Command {
  return {
    flags: ['hub'],
    help: `${whatFor}.

Examples:
  firebreak ${name}
  firebreak ${name} --hub http://127.0.0.1:7070

Options:
  --hub URL   the hub (env FIREBREAK_HUB; default: the running "firebreak up")
`,
    async run(args, io) {
      const { values } = parseArgs({ args: [...args], options: { hub: { type: 'string' } } })
      const api = HubApi.of(values.hub, io)
      await api.call('POST', '/v1/switch', { isOff: name === 'off' })
      io.stdout.write(`${said} (hub ${api.url}).\n`)
      return 0
    },
  }
}

export const off: Command = switchCommand(
  'off',
  'The kill switch: turn every shield into a plain pass-through, fleet-wide within a second',
  'Off: every shield passes through. Switch back with: firebreak on',
)

export const on: Command = switchCommand('on', 'Protect again after "firebreak off"', 'On: hot keys are handled again')
