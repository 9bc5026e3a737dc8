import { readFileSync } from 'node:fs'
import { FieldReader, type ResolvedSettings, resolveSettings } from '@firebreak/core'
import { parse as parseYaml } from 'yaml'
import { HubConfigError } from '../errors.ts'
import type { HubTokens } from '../http/access-guard.ts'
import type { HubOptions } from '../start-hub.ts'
import { parseWatchers } from '../watchers/watcher-settings.ts'
import { hubSettings } from './hub-settings.ts'

export interface HubConfigInput {
  /** Flags by name without dashes: `{ port: '7070', 'data-folder': 'data' }`. */
  readonly flags?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string | undefined>>
}

export interface HubConfig {
  readonly options: HubOptions
  readonly settings: ResolvedSettings
}

const failure = (field: string, message: string) => new HubConfigError(field, message)

/** The hub's settings as options of `startHub`; see `resolveSettings`. */
export function resolveHubConfig(input: HubConfigInput): HubConfig {
  const settings = resolveSettings(hubSettings, { ...input, readFile: readYaml, failure })
  const { otlp } = settings
  return { options: { ...toOptions(settings.values), ...(otlp !== undefined && { otlp }) }, settings }
}

function toOptions(values: Record<string, unknown>): HubOptions {
  const { watchers, alarmWebhooks, ...plain } = values
  const {
    rulesFile,
    limitsPolicy: _,
    tokensFile,
    tlsCertFile,
    tlsKeyFile,
    tlsCaFile,
    ...rest
  } = plain as Record<string, string>
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
