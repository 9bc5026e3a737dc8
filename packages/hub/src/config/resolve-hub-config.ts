import { readFileSync } from 'node:fs'
import { readSecretFile } from '@firebreak/core/node'
import { parseRetryLines, portBounds, type ResolvedSettings, resolveSettings } from '@firebreak/core/settings'
import { parse as parseYaml } from 'yaml'
import { readTokens } from '../access/tokens-file.ts'
import { HubConfigError } from '../errors.ts'
import { unfinishedFrameDefaults } from '../hub-options.ts'
import type { HubOptions } from '../start-hub.ts'
import { parseWatchers } from '../watchers/watcher-settings.ts'
import { hubSettings } from './hub-settings.ts'
import { type HubRetryChoices, hubRetrySteps, resolveHubRetry, retryFailure } from './retry-steps.ts'

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
  const settings = resolveSettings(hubSettings, { ...input, readFile: readYaml, readSecret, failure })
  const { otlp } = settings
  return { options: { ...toOptions(settings.values), ...(otlp !== undefined && { otlp }) }, settings }
}

function toOptions(values: Record<string, unknown>): HubOptions {
  const { bounds, others } = portBounds(values, Object.keys(unfinishedFrameDefaults))
  const { watchers, alarmWebhooks, retry, ...plain } = others
  const {
    rulesFile,
    limitsPolicy: _,
    limitsRedis: _redis,
    limitsLeakStorage: _leakStorage,
    limitsPrefix: _prefix,
    limitsKoalaPaths: _koalaPaths,
    saleRedis: __,
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
    ...(bounds !== undefined && { connections: bounds }),
    ...tls,
    ...(watchers !== undefined && { watchers: parseWatchers(watchers) }),
    ...(alarmWebhooks !== undefined && { alarmWebhooks: checkUrls(alarmWebhooks as readonly string[]) }),
    ...(retry !== undefined && { retry: readRetry(retry as readonly string[]) }),
    ...(rulesFile !== undefined && { initialRules: readRules(rulesFile) }),
    ...(tokensFile !== undefined && { tokens: readTokens(tokensFile), tokensFile }),
  }
}

function checkUrls(urls: readonly string[]): readonly string[] {
  const wrong = urls.findIndex((url) => !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
  // An address may contain a secret: it is not repeated.
  if (wrong >= 0) throw failure(`alarmWebhooks[${wrong}]`, `alarmWebhooks[${wrong}] must be an http or https URL`)
  return urls
}

/** Refused here, where the origin of the setting is known. */
function readRetry(lines: readonly string[]): HubRetryChoices {
  const choices = parseRetryLines(hubRetrySteps, lines, retryFailure)
  resolveHubRetry(choices)
  return choices
}

/** Rules of a file: a list, or an object with `rules`. */
export function readRules(path: string): readonly unknown[] {
  const content = readYaml('rulesFile', path)
  const rules = Array.isArray(content) ? content : (content as { rules?: unknown } | null)?.rules
  if (Array.isArray(rules)) return rules
  throw failure('rulesFile', `${path} must contain a list of rules, or an object with rules`)
}

function readSecret(place: string, path: string): string {
  try {
    return readSecretFile(path)
  } catch (cause) {
    throw new HubConfigError(place, `${place}: ${(cause as Error).message}`, { cause })
  }
}

function readYaml(field: string, path: string): unknown {
  try {
    // Its warnings go to stderr; they and its errors quote the line, which may contain a password.
    return parseYaml(readFileSync(path, 'utf8'), { logLevel: 'error' }) as unknown
  } catch (cause) {
    const reason = (cause as Error).message.split('\n')[0]!.replace(/:$/, '')
    throw new HubConfigError(field, `${field}: ${path} cannot be read: ${reason}`)
  }
}
