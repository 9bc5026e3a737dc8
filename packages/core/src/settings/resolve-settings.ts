import { didYouMean } from '../errors/did-you-mean.ts'
import { describeValue } from '../errors/firebreak-error.ts'
import type { OtlpOptions } from '../metrics/otlp-options.ts'
import { parsePairs, readOtlpVariables } from '../metrics/otlp-variables.ts'
import { kubernetesVariables } from './kubernetes-variables.ts'
import {
  fileSetting,
  flagOf,
  type Setting,
  type SettingTable,
  secretFilesOf,
  variableOf,
  variablesOf,
} from './setting.ts'

/** Where a setting came from. */
export type SettingSource = 'flag' | 'env' | 'file' | 'default'

/** One setting as it is in force. */
export interface ResolvedSetting {
  readonly setting: Setting
  readonly source: SettingSource
  /** The flag, variable or field that set it; for a default, the setting's name. */
  readonly place: string
  /** Undefined if the default applies. */
  readonly value: unknown
}

export interface SettingInput {
  /** Flags by name without dashes: `{ port: '7070', 'data-folder': 'data' }`. */
  readonly flags?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Reads and parses the settings file, and files that a setting names; `place` is what named it. */
  readonly readFile: (place: string, path: string) => unknown
  /** Reads the secret from the file that `…_FILE` names; refuses one that everybody can read. */
  readonly readSecret?: (place: string, path: string) => string
  /** Makes the error from a place and a sentence. */
  readonly failure: (place: string, message: string) => Error
}

/** The resolved settings of a command. */
export interface ResolvedSettings {
  /** One for each setting of the table, in its order. */
  readonly all: readonly ResolvedSetting[]
  /** Values by name, for the settings that were given; OpenTelemetry's are in `otlp`. */
  readonly values: Readonly<Record<string, unknown>>
  /** Where metrics are pushed; undefined: nowhere. */
  readonly otlp: OtlpOptions | undefined
  /** OpenTelemetry variables that are unusable, and secrets given in a flag, one sentence each. */
  readonly warnings: readonly string[]
}

/**
 * Resolves a command's settings: flags, then variables, then the file named by `--config` or its variable, then
 * defaults. Unknown settings are refused by name in all three places, and so are empty values: an unset shell variable
 * must not turn into a default that nobody asked for.
 */
export function resolveSettings(table: SettingTable, input: SettingInput): ResolvedSettings {
  const { flags = {}, readFile, failure } = input
  const env = withoutKubernetes(input.env ?? {})
  const names = [fileSetting, ...table.settings.map(({ name }) => name)]
  const secretFiles = table.settings.flatMap((setting) => secretFilesOf(table, setting))
  const own = Object.keys(env).filter((name) => name.startsWith(table.prefix) && env[name] !== undefined)
  refuseUnknown(Object.keys(flags), names.map(flagOf), '--', failure)
  refuseUnknown(own, [...names.map((name) => variableOf(table, name)), ...secretFiles], '', failure)
  const path = (flags[fileSetting] ?? env[variableOf(table, fileSetting)]) as string | undefined
  const file = path === undefined ? {} : (readFile(fileSetting, path) ?? {})
  if (typeof file !== 'object' || Array.isArray(file)) {
    throw failure('', `${path} is ${describeValue(file)}; it must be an object of settings`)
  }
  refuseUnknown(
    Object.keys(file),
    table.settings.map(({ name }) => name),
    '',
    failure,
  )
  const shared = readOtlpVariables(env)
  const all = table.settings.map((setting): ResolvedSetting => {
    const { name, otlp, variables = [] } = setting
    const flag = flags[flagOf(name)]
    const found = (value: unknown, source: SettingSource, place: string): ResolvedSetting => ({
      setting,
      source,
      place,
      value: convert(setting, place, value, input),
    })
    if (flag !== undefined) return found(flag, 'flag', `--${flagOf(name)}`)
    const variable = variableOf(table, name)
    if (env[variable] !== undefined) return found(env[variable], 'env', variable)
    if (input.readSecret !== undefined) {
      const place = secretFilesOf(table, setting).find((candidate) => env[candidate] !== undefined)
      if (place !== undefined) return found(input.readSecret(place, env[place]!), 'env', place)
    }
    const other = variables.find((candidate) => env[candidate] !== undefined)
    if (other !== undefined) return found(env[other], 'env', other)
    const exported = otlp && shared.options[otlp]
    if (exported !== undefined) return found(exported, 'env', variablesOf(table, setting).slice(1).join(' or '))
    const inFile = (file as Record<string, unknown>)[name]
    if (inFile !== undefined && inFile !== null) return found(inFile, 'file', name)
    return { setting, source: 'default', place: name, value: undefined }
  })
  const given = all.filter(({ value }) => value !== undefined)
  const otlp = Object.fromEntries(given.flatMap(({ setting, value }) => (setting.otlp ? [[setting.otlp, value]] : [])))
  const isPushing = otlp['endpoint'] !== undefined && shared.options.isDisabled !== true
  return {
    all,
    values: Object.fromEntries(given.flatMap(({ setting, value }) => (setting.otlp ? [] : [[setting.name, value]]))),
    otlp: isPushing ? (otlp as OtlpOptions) : undefined,
    warnings: [...shared.warnings, ...all.flatMap((one) => flagWarning(table, one))],
  }
}

function withoutKubernetes(env: NonNullable<SettingInput['env']>): NonNullable<SettingInput['env']> {
  const injected = kubernetesVariables(env)
  return injected.size === 0 ? env : Object.fromEntries(Object.entries(env).filter(([name]) => !injected.has(name)))
}

function flagWarning(table: SettingTable, { setting, source, place, value }: ResolvedSetting): string[] {
  if (setting.isSecret !== true || source !== 'flag') return []
  const warning = secretFlagWarning(place, value, variableOf(table, setting.name), setting.isRedisAddress)
  return warning === undefined ? [] : [warning]
}

/**
 * What to say of a secret in a flag: every user of the machine can see it with `ps`. An address is only secret if it
 * contains a password.
 */
export function secretFlagWarning(
  place: string,
  value: unknown,
  variable: string,
  isRedisAddress = false,
): string | undefined {
  const text = JSON.stringify(value)
  // In other addresses the path may be the secret.
  const isRedis = isRedisAddress || /^"(rediss?|unix|redis\+unix):\/\//i.test(text)
  if (isRedis && !/:.*@/.test(text.replace(/[a-z+]+:\/\//gi, ''))) return undefined
  if (/:\/\//.test(text) && !/:\/\/[^/@"]*:[^/@"]*@|:\/\/[^/"]*\/[^"]{16}/.test(text)) return undefined
  return `${place} is visible to every user of this machine (ps); use ${variable}, or ${variable}_FILE for a file`
}

function refuseUnknown(
  given: readonly string[],
  known: readonly string[],
  prefix: string,
  failure: SettingInput['failure'],
): void {
  for (const name of given) {
    if (known.includes(name)) continue
    const close = didYouMean(name, known)
    const hint = close === undefined ? '' : `; did you mean ${prefix}${close}?`
    throw failure(`${prefix}${name}`, `unknown setting ${prefix}${name}${hint}`)
  }
}

/** Flags and variables are strings; a file has types of its own. Both are converted to the setting's type. */
function convert({ type, isSecret }: Setting, place: string, value: unknown, input: SettingInput): unknown {
  const refuse = (expected: string): Error => {
    const given = isSecret === true ? `${place} ` : `${place} is ${describeValue(value)}; it `
    return input.failure(place, `${given}must be ${expected}`)
  }
  if (value === '') throw input.failure(place, `${place} is empty; give it a value or leave it out`)
  switch (type.kind) {
    case 'text':
      if (typeof value === 'string') return value
      throw refuse('a non-empty string')
    case 'number': {
      const number = typeof value === 'string' && /^\s*\d+\s*$/.test(value) ? Number(value) : value
      if (Number.isInteger(number) && (number as number) >= type.min && (number as number) <= type.max) return number
      const isOpen = type.max === Number.MAX_SAFE_INTEGER
      throw refuse(isOpen ? `a whole number from ${type.min} on` : `a whole number from ${type.min} to ${type.max}`)
    }
    case 'choice': {
      if (type.choices.includes(String(value))) return value
      const close = didYouMean(String(value), type.choices)
      throw refuse(`one of ${type.choices.join(', ')}${close === undefined ? '' : `; did you mean ${close}?`}`)
    }
    case 'switch':
      if (value === true || value === 'true') return true
      if (value === false || value === 'false') return false
      throw refuse('true or false')
    case 'list':
    case 'lines': {
      const separator = type.kind === 'list' ? ',' : '\n'
      const parts = typeof value === 'string' ? value.split(separator) : value
      const items = Array.isArray(parts)
        ? parts.map((item: unknown) => (typeof item === 'string' ? item.trim() : item))
        : parts
      // The last line of a variable may end with a newline too.
      if (type.kind === 'lines' && Array.isArray(items) && items.at(-1) === '') items.pop()
      if (Array.isArray(items) && items.every((item) => typeof item === 'string' && item !== '')) return items
      throw refuse('a list of strings')
    }
    case 'pairs': {
      const pairs = typeof value === 'string' ? parsePairs(value) : value
      if (isPairs(pairs)) return pairs
      // A value may be a secret: none is repeated.
      throw input.failure(place, `${place} must be name=value,name=value`)
    }
    case 'objects':
      return typeof value === 'string' ? input.readFile(place, value) : value
  }
}

function isPairs(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((item) => typeof item === 'string')
  )
}
