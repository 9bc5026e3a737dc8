import { parseArgs } from 'node:util'
import { pageFolder } from '@firebreak/console'
import {
  configFields,
  flagOf,
  openHubServices,
  resolveHubConfig,
  startHub,
  variableOf,
  variablesOf,
} from '@firebreak/hub'
import type { Command } from '../command/command.ts'
import { whenEnded } from '../command/when-ended.ts'
import { defaultHubPort } from '../hub-api/hub-api.ts'

const flags = ['config', ...configFields.map(({ name }) => flagOf(name))]

export const hub: Command = {
  flags,
  help: `Run a hub with its console.

Examples:
  firebreak hub
  firebreak hub --data-folder ./data --port 7070
  firebreak hub --host 0.0.0.0 --tokens-file tokens.yaml --config hub.yaml

Options (flag, then variable, then file, then default):
  --config FILE   settings as YAML or JSON (env ${variableOf('config')})
${configFields.map((field) => `  --${flagOf(field.name)}\n      ${field.summary} (env ${variablesOf(field).join(', ')}; default ${field.default})`).join('\n')}
SIGTERM and Ctrl-C end it after what is under way.
`,
  async run(args, io) {
    const options = Object.fromEntries(flags.map((flag) => [flag, { type: 'string' as const }]))
    const { values } = parseArgs({ args: [...args], options })
    const { options: hubOptions, warnings } = resolveHubConfig({ flags: values, env: io.env })
    for (const warning of warnings) io.stderr.write(`${warning}\n`)
    const services = await openHubServices(
      hubOptions.dataFolder === undefined ? {} : { dataFolder: hubOptions.dataFolder },
    )
    const running = await startHub({
      port: defaultHubPort,
      consoleFolder: pageFolder,
      ...hubOptions,
      plugins: services.plugins,
    })
    io.stdout.write(`hub ${running.url}\n`)
    await whenEnded(io.signal)
    await running.close()
    await services.close()
    return 0
  },
}
