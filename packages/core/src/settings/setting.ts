import type { OtlpOptions } from '../metrics/otlp-options.ts'
import { otlpVariables } from '../metrics/otlp-variables.ts'

/** What a setting's value may be. */
export type SettingKind =
  | { readonly kind: 'text' }
  /** A whole number. */
  | { readonly kind: 'number'; readonly min: number; readonly max: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'switch' }
  /** Texts with commas between; in the file a list. */
  | { readonly kind: 'list' }
  /** Texts that may hold commas: a flag that is given several times, a variable with a line each, in the file a list. */
  | { readonly kind: 'lines' }
  /** `name=value,name=value`, values percent-encoded where they hold a comma; in the file an object. */
  | { readonly kind: 'pairs' }
  /** A list of objects, or the name of a YAML or JSON file that holds it. */
  | { readonly kind: 'objects' }

/**
 * One setting of a command. Its field in the settings file is its name; its flag (`--kebab-case`), its variable, its line
 * of help, its row in the reference and its entry in the JSON Schema follow from this.
 */
export interface Setting {
  readonly name: string
  readonly type: SettingKind
  /** For help, reference and schema. */
  readonly summary: string
  /** As people read it; the value itself is the default of the option behind it. */
  readonly default: string
  /** What its value is called in the help. @default by its kind */
  readonly placeholder?: string
  /** Variables that count after the command's own, as `REDIS_URL`. */
  readonly variables?: readonly string[]
  /** The option of `otlp` that this is: OpenTelemetry's own variables count for it too, after the command's. */
  readonly otlp?: Exclude<keyof OtlpOptions, 'isDisabled'>
  /** Never shown: printed as `…`, and not repeated in an error. */
  readonly isSecret?: boolean
}

/** All settings of one command. */
export interface SettingTable {
  /** The command they belong to, as `hub`. */
  readonly command: string
  /** What the command's own variables begin with, as `FIREBREAK_HUB_`. */
  readonly prefix: string
  readonly settings: readonly Setting[]
}

/** The setting that names the file of all others. */
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

/** The variables that name a file with a secret instead of the secret, as `FIREBREAK_TOKEN_FILE`; none where it is no secret. */
export function secretFilesOf(table: SettingTable, { name, variables = [], isSecret }: Setting): readonly string[] {
  return isSecret === true ? [variableOf(table, name), ...variables].map((variable) => `${variable}_FILE`) : []
}

/** What stands for the value in help: `PORT`, `a|b`; undefined for a switch. */
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
