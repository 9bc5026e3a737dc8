import { didYouMean, withoutCredentials } from '@firebreak/core'
import { type ResolvedSetting, type SettingTable, settingsSchema } from '@firebreak/core/settings'
import { hubSettings } from '@firebreak/hub'
import { proxySettings } from '@firebreak/proxy'
import { type Command, UsageError } from '../command/command.ts'
import { CommandSettings } from '../flags/command-settings.ts'
import { upSettings } from '../up/up-settings.ts'
import { idsSettings } from './ids/ids-settings.ts'
import { limitsSettings } from './limits-settings.ts'

/** The commands that have a table of settings. */
export const settingTables: readonly SettingTable[] = [
  hubSettings,
  proxySettings,
  limitsSettings,
  idsSettings,
  upSettings,
]

const names = settingTables.map(({ command }) => command)

/** `firebreak config`: what a command would run with, and where each value comes from. */
export const config: Command = {
  subcommands: ['print', 'schema'],
  help: `The settings of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}: current values and where they come from.

Examples:
  firebreak config print hub --config hub.yaml
  FIREBREAK_PROXY_PORT=7000 firebreak config print proxy
  firebreak config schema hub > hub.schema.json

  print COMMAND [ITS FLAGS]   each setting with its value and the flag, variable or file that gave it; secrets as "…"
  schema COMMAND              a JSON Schema of the settings file, for an editor
`,
  run(args, io) {
    const [verb, name, ...rest] = args
    if (verb !== 'print' && verb !== 'schema')
      throw new UsageError('usage: config print COMMAND or config schema COMMAND')
    const table = tableOf(name)
    if (verb === 'schema') {
      if (rest.length > 0) throw new UsageError(`"${rest[0]}" is one word too many`)
      io.stdout.write(`${JSON.stringify(settingsSchema(table), undefined, 2)}\n`)
      return Promise.resolve(0)
    }
    const { all } = CommandSettings.read(table, rest, io)
    const rows = all.map((row) => [row.setting.name, shown(row), origin(row)] as const)
    const widths = [0, 1].map((column) => Math.min(48, Math.max(...rows.map((row) => row[column]!.length))))
    for (const [setting, value, from] of rows) {
      io.stdout.write(`${setting.padEnd(widths[0]!)}  ${value.padEnd(widths[1]!)}  ${from}\n`)
    }
    return Promise.resolve(0)
  },
}

function tableOf(name: string | undefined): SettingTable {
  const table = settingTables.find(({ command }) => command === name)
  if (table !== undefined) return table
  const close = name === undefined ? undefined : didYouMean(name, names)
  const hint = close === undefined ? `it is one of ${names.join(', ')}` : `did you mean ${close}?`
  throw new UsageError(
    name === undefined ? `name a command: ${names.join(', ')}` : `"${name}" has no settings; ${hint}`,
  )
}

function shown({ setting, value }: ResolvedSetting): string {
  if (value === undefined) return setting.default
  if (setting.isSecret === true) return '…'
  return withoutCredentials(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

function origin({ source, place }: ResolvedSetting): string {
  return { flag: `flag ${place}`, env: `env ${place}`, file: 'file', default: 'default' }[source]
}
