import { readFileSync } from 'node:fs'
import {
  describeValue,
  didYouMean,
  FieldReader,
  type OtlpOptions,
  parsePairs,
  readOtlpVariables,
} from '@firebreak/core'
import { parse as parseYaml } from 'yaml'
import { HubConfigError } from '../errors.ts'
import type { HubTokens } from '../http/access-guard.ts'
import type { HubOptions } from '../start-hub.ts'
import { parseWatchers } from '../watchers/watcher-settings.ts'
import { type ConfigField, configFields, flagOf, variableOf, variablesOf } from './config-fields.ts'

/** Where a setting came from. */
export type ConfigSource = 'flag' | 'env' | 'file' | 'default'

export interface HubConfigInput {
  /** Flags by name without dashes: `{ port: '7070', 'data-folder': 'data' }`. */
  readonly flags?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface HubConfig {
  readonly options: HubOptions
  /** For each setting, who said it. */
  readonly sources: Readonly<Record<string, ConfigSource>>
  /** Variables of OpenTelemetry that were set and could not be used, a sentence each. */
  readonly warnings: readonly string[]
}

const variablePrefix = 'FIREBREAK_HUB_'
const fileSetting = 'config'
const failure = (field: string, message: string) => new HubConfigError(field, message)

/**
 * Resolves the hub's settings: flags, then variables (`FIREBREAK_HUB_…`, then OpenTelemetry's own), then the file that
 * `--config` or `FIREBREAK_HUB_CONFIG` names (YAML or JSON), then defaults. What is not a setting is refused by name.
 */
export function resolveHubConfig({ flags = {}, env = {} }: HubConfigInput): HubConfig {
  refuseUnknown(Object.keys(flags), [fileSetting, ...configFields.map(({ name }) => flagOf(name))], '--')
  const variables = Object.keys(env).filter((name) => name.startsWith(variablePrefix) && env[name] !== undefined)
  refuseUnknown(variables, [variableOf(fileSetting), ...configFields.map(({ name }) => variableOf(name))], '')
  const path = (flags[fileSetting] ?? env[variableOf(fileSetting)]) as string | undefined
  const file = path === undefined ? {} : (readYaml(fileSetting, path) ?? {})
  const reader = new FieldReader(file, '', failure, 'an object of settings')
  const otlp = readOtlpVariables(env)
  const values: Record<string, unknown> = {}
  const otlpValues: Record<string, unknown> = {}
  const sources: Record<string, ConfigSource> = {}
  for (const field of configFields) {
    const flag = flags[flagOf(field.name)]
    const variable = env[variableOf(field.name)]
    const shared = field.otlp && otlp.options[field.otlp]
    const inFile = reader.raw(field.name)
    const [source, place, value] =
      flag !== undefined
        ? (['flag', `--${flagOf(field.name)}`, flag] as const)
        : variable !== undefined
          ? (['env', variableOf(field.name), variable] as const)
          : shared !== undefined
            ? (['env', variablesOf(field).slice(1).join(' or '), shared] as const)
            : inFile !== undefined
              ? (['file', field.name, inFile] as const)
              : (['default', field.name, undefined] as const)
    sources[field.name] = source
    if (value === undefined) continue
    const converted = convert(field, place, value)
    if (field.otlp === undefined) values[field.name] = converted
    else otlpValues[field.otlp] = converted
  }
  reader.end()
  const isPushing = otlpValues['endpoint'] !== undefined && otlp.options.isDisabled !== true
  const options = { ...toOptions(values), ...(isPushing && { otlp: otlpValues as OtlpOptions }) }
  return { options, sources, warnings: otlp.warnings }
}

function refuseUnknown(given: readonly string[], known: readonly string[], prefix: string): void {
  for (const name of given) {
    if (known.includes(name)) continue
    const close = didYouMean(name, known)
    const hint = close === undefined ? '' : `; did you mean ${prefix}${close}?`
    throw failure(`${prefix}${name}`, `there is no setting ${prefix}${name}${hint}`)
  }
}

/** Flags and variables are texts; a file has types of its own. Both end as what the field is. */
function convert({ type }: ConfigField, place: string, value: unknown): unknown {
  switch (type.kind) {
    case 'text':
      if (typeof value === 'string' && value !== '') return value
      throw failure(place, `${place} is ${describeValue(value)}; it must be a text that is not empty`)
    case 'number': {
      const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
      if (typeof number === 'number' && number >= type.min && number <= type.max) return number
      throw failure(place, `${place} is ${describeValue(value)}; it must be a number from ${type.min} to ${type.max}`)
    }
    case 'choice': {
      if (type.choices.includes(String(value))) return value
      const close = didYouMean(String(value), type.choices)
      const hint = close === undefined ? '' : `; did you mean ${close}?`
      throw failure(place, `${place} is ${describeValue(value)}; it must be one of ${type.choices.join(', ')}${hint}`)
    }
    case 'list': {
      const items = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
      if (Array.isArray(items) && items.every((item) => typeof item === 'string' && item !== '')) return items
      throw failure(place, `${place} is ${describeValue(value)}; it must be a list of texts`)
    }
    case 'pairs': {
      const pairs = typeof value === 'string' ? parsePairs(value) : value
      if (isPairs(pairs)) return pairs
      // A value may be a secret: none is repeated.
      throw failure(place, `${place} must be name=value,name=value`)
    }
    case 'objects':
      return typeof value === 'string' ? readYaml(place, value) : value
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

function toOptions(values: Record<string, unknown>): HubOptions {
  const { watchers, alarmWebhooks, ...plain } = values
  const { rulesFile, tokensFile, tlsCertFile, tlsKeyFile, tlsCaFile, ...rest } = plain as Record<string, string>
  if ((tlsCertFile === undefined) !== (tlsKeyFile === undefined)) {
    const missing = tlsCertFile === undefined ? 'tlsCertFile' : 'tlsKeyFile'
    throw failure(missing, `${missing} is missing: TLS needs both tlsCertFile and tlsKeyFile`)
  }
  const ca = tlsCaFile === undefined ? {} : { caFile: tlsCaFile }
  const tls = tlsCertFile && tlsKeyFile ? { tls: { certFile: tlsCertFile, keyFile: tlsKeyFile, ...ca } } : {}
  return {
    port: 7070,
    ...(rest as HubOptions),
    ...tls,
    ...(watchers !== undefined && { watchers: parseWatchers(watchers) }),
    ...(alarmWebhooks !== undefined && { alarmWebhooks: checkUrls(alarmWebhooks as readonly string[]) }),
    ...(rulesFile !== undefined && { initialRules: readRules(rulesFile) }),
    ...(tokensFile !== undefined && { tokens: readTokens(tokensFile) }),
  }
}

function checkUrls(urls: readonly string[]): readonly string[] {
  const wrong = urls.findIndex((url) => !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
  // An address may hold a secret: it is not repeated.
  if (wrong >= 0) throw failure(`alarmWebhooks[${wrong}]`, `alarmWebhooks[${wrong}] must be an http or https URL`)
  return urls
}

/** Rules of a file: a list, or an object with `rules`. */
export function readRules(path: string): readonly unknown[] {
  const content = readYaml('rulesFile', path)
  const rules = Array.isArray(content) ? content : (content as { rules?: unknown } | null)?.rules
  if (Array.isArray(rules)) return rules
  throw failure('rulesFile', `${path} must hold a list of rules, or an object with rules`)
}

/** Tokens of a file: `apps: [{name, token}]` and `people: [{name, role, token}]`. */
export function readTokens(path: string): HubTokens {
  const reader = new FieldReader(readYaml('tokensFile', path), '', failure, 'an object with apps and people')
  const secret = (fields: FieldReader) => {
    const name = fields.text('name', undefined)
    const token = fields.text('token', undefined)
    if (name === undefined) throw failure(fields.at('name'), `${fields.at('name')} is missing`)
    // The value itself must not be in the sentence.
    if (token === undefined || !/^\S{16,}$/.test(token)) {
      throw failure(fields.at('token'), `${fields.at('token')} must have 16 characters at least, and no blank`)
    }
    return { name, token }
  }
  const items = <Item>(field: string, read: (fields: FieldReader) => Item): Item[] =>
    (reader.list(field) ?? []).map((item, index) => {
      const fields = new FieldReader(item, `${field}[${index}]`, failure)
      const result = read(fields)
      fields.end()
      return result
    })
  const apps = items('apps', secret)
  const people = items('people', (fields) => {
    const role = fields.choice('role', ['viewer', 'operator', 'admin'], undefined)
    if (role === undefined)
      throw failure(fields.at('role'), `${fields.at('role')} is missing: viewer, operator or admin`)
    return { ...secret(fields), role }
  })
  reader.end()
  return { apps, people }
}

function readYaml(field: string, path: string): unknown {
  try {
    return parseYaml(readFileSync(path, 'utf8')) as unknown
  } catch (cause) {
    throw new HubConfigError(field, `${field}: ${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
}
