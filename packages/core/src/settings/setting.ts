import type { OtlpOptions } from '../metrics/otlp-options.ts'
import { otlpVariables } from '../metrics/otlp-variables.ts'

/** The types of setting values. */
export type SettingKind =
  | { readonly kind: 'text' }
  /** A whole number. */
  | { readonly kind: 'number'; readonly min: number; readonly max: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'switch' }
  /** Strings separated by commas; a list in the file. */
  | { readonly kind: 'list' }
  /** Strings that may contain commas: a repeatable flag, a variable with one per line, a list in the file. */
  | { readonly kind: 'lines' }
  /** `name=value,name=value`, with values percent-encoded if they contain a comma; an object in the file. */
  | { readonly kind: 'pairs' }
  /** A list of objects, or the name of a YAML or JSON file that contains it. */
  | { readonly kind: 'objects' }

/**
 * One setting of a command. Its name is its field in the settings file; its flag (`--kebab-case`), variable, help line,
 * reference row and JSON Schema entry follow from this.
 */
export interface Setting {
  readonly name: string
  readonly type: SettingKind
  /** For help, reference and schema. */
  readonly summary: string
  /** As shown to users; the actual default is that of the underlying option. */
  readonly default: string
  /** The placeholder for its value in the help. @default by its kind */
  readonly placeholder?: string
  /** Variables that apply after the command's own, such as `REDIS_URL`. */
  readonly variables?: readonly string[]
  /** The `otlp` option that this sets: OpenTelemetry's own variables apply too, after the command's. */
  readonly otlp?: Exclude<keyof OtlpOptions, 'isDisabled'>
  /** Never shown: printed as `…`, and not repeated in errors. */
  readonly isSecret?: boolean
  /** Where the scheme may be left out: `host:port` holds no secret. */
  readonly isRedisAddress?: boolean
}

/** All settings of one command. */
export interface SettingTable {
  /** The command they belong to, such as `hub`. */
  readonly command: string
  /** The prefix of the command's own variables, such as `FIREBREAK_HUB_`. */
  readonly prefix: string
  readonly settings: readonly Setting[]
}

/** The setting that names the settings file. */
export const fileSetting = 'config'

export const text: SettingKind = { kind: 'text' }
export const onOrOff: SettingKind = { kind: 'switch' }
export const textList: SettingKind = { kind: 'list' }
/** A whole number within bounds. */
export const wholeFrom = (min: number, max: number = Number.MAX_SAFE_INTEGER): SettingKind => ({
  kind: 'number',
  min,
  max,
})
export const portNumber: SettingKind = wholeFrom(0, 65_535)
export const choiceOf = (...choices: readonly string[]): SettingKind => ({ kind: 'choice', choices })

/** `dataFolder` → `data-folder` */
export function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** `dataFolder` → `FIREBREAK_HUB_DATA_FOLDER` */
export function variableOf({ prefix }: Pick<SettingTable, 'prefix'>, name: string): string {
  return `${prefix}${flagOf(name).replaceAll('-', '_').toUpperCase()}`
}

/** All variables of a setting, the command's own first. */
export function variablesOf(table: SettingTable, { name, variables = [], otlp }: Setting): readonly string[] {
  return [variableOf(table, name), ...variables, ...(otlp === undefined ? [] : otlpVariables[otlp])]
}

/**
 * The variables that name a file with the secret instead of containing it, such as `FIREBREAK_TOKEN_FILE`; none if it
 * is not a secret.
 */
export function secretFilesOf(table: SettingTable, { name, variables = [], isSecret }: Setting): readonly string[] {
  return isSecret === true ? [variableOf(table, name), ...variables].map((variable) => `${variable}_FILE`) : []
}

/** The value's placeholder in the help: `PORT`, `a|b`; undefined for a switch. */
export function placeholderOf({ type, placeholder }: Setting): string | undefined {
  if (placeholder !== undefined) return placeholder
  switch (type.kind) {
    case 'switch':
      return undefined
    case 'number':
      return 'N'
    case 'choice':
      return type.choices.join('|')
    case 'pairs':
      return 'NAME=VALUE,…'
    case 'list':
      return 'TEXT,…'
    case 'objects':
      return 'FILE'
    default:
      return 'TEXT'
  }
}
