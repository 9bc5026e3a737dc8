import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { OtlpOptions } from '@firebreak/core/metrics'
import { readSecretFile } from '@firebreak/core/node'
import {
  fileSetting,
  flagOf,
  type ResolvedSetting,
  resolveSettings,
  type SettingTable,
  settingsHelp,
} from '@firebreak/core/settings'
import { parse as parseYaml } from 'yaml'
import { type CommandIo, UsageError } from '../command/command.ts'

/** The flags of a table, `--config` included, without dashes. */
export function flagsOf({ settings }: SettingTable): readonly string[] {
  return [fileSetting, ...settings.map(({ name }) => flagOf(name))]
}

/** The part of a help text about a table's settings. */
export function helpOf(table: SettingTable): string {
  return `Options (flag, then variable, then file, then default):\n${settingsHelp(table)}`
}

/** Parses a command line by a table's flags; an unknown flag throws Node's `ERR_PARSE_ARGS…`. */
export function parseSettingFlags(table: SettingTable, args: readonly string[]): Record<string, unknown> {
  const options: Record<string, { type: 'string' | 'boolean'; multiple?: boolean }> = {
    [fileSetting]: { type: 'string' },
  }
  for (const { name, type } of table.settings) {
    options[flagOf(name)] =
      type.kind === 'switch'
        ? { type: 'boolean' }
        : { type: 'string', multiple: type.kind === 'lines' || type.kind === 'list' }
  }
  const values: Record<string, unknown> = { ...parseArgs({ args: [...args], options, allowNegative: true }).values }
  // A list is given with commas, or flag by flag.
  for (const { name, type } of table.settings) {
    const given = values[flagOf(name)]
    if (type.kind === 'list' && Array.isArray(given)) values[flagOf(name)] = given.join(',')
  }
  return values
}

/** Reads a YAML or JSON file that a setting names. */
export function readSettingFile(place: string, path: string): unknown {
  try {
    // Its warnings go to stderr; they and its errors quote the line, which may contain a password.
    return parseYaml(readFileSync(path, 'utf8'), { logLevel: 'error' })
  } catch (cause) {
    const reason = (cause as Error).message.split('\n')[0]!.replace(/:$/, '')
    throw new UsageError(`${place}: ${path} cannot be read: ${reason}`)
  }
}

/** Reads a file with one secret, which a `…_FILE` variable names. */
export function readSecret(place: string, path: string): string {
  try {
    return readSecretFile(path)
  } catch (cause) {
    throw new UsageError(`${place}: ${(cause as Error).message}`, { cause })
  }
}

/** A command's settings from flags, variables and its file. */
export class CommandSettings {
  readonly all: readonly ResolvedSetting[]
  readonly values: Readonly<Record<string, unknown>>
  readonly otlp: OtlpOptions | undefined

  private constructor(
    table: SettingTable,
    args: readonly string[],
    { env, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
  ) {
    const failure = (_place: string, message: string) => new UsageError(message)
    const flags = parseSettingFlags(table, args)
    const { all, values, otlp, warnings } = resolveSettings(table, {
      flags,
      env,
      readFile: readSettingFile,
      readSecret,
      failure,
    })
    for (const warning of warnings) stderr.write(`${warning}\n`)
    this.all = all
    this.values = values
    this.otlp = otlp
  }

  /** Reads them; warnings about OpenTelemetry's variables go to stderr. */
  static read(table: SettingTable, args: readonly string[], io: Pick<CommandIo, 'env' | 'stderr'>): CommandSettings {
    return new CommandSettings(table, args, io)
  }

  /** The setting's name where the user gave it: its flag, variable or field. */
  placeOf(name: string): string {
    return this.all.find(({ setting }) => setting.name === name)!.place
  }

  /** The content of the file that a setting names. */
  file(name: string): Buffer | undefined {
    const path = this.values[name] as string | undefined
    if (path === undefined) return undefined
    try {
      return readFileSync(path)
    } catch (cause) {
      const message = `${this.placeOf(name)} names a file that cannot be read: ${(cause as Error).message}`
      throw new UsageError(message, { cause })
    }
  }

  /** Refuses one of two settings without the other. */
  together(one: string, other: string): void {
    if ((this.values[one] === undefined) === (this.values[other] === undefined)) return
    throw new UsageError(`--${flagOf(one)} and --${flagOf(other)} belong together`)
  }
}
