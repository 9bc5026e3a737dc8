import { maxDelayMs, type OtlpOptions } from './otlp-options.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The settings in OpenTelemetry's own variables. */
export interface OtlpVariables {
  readonly options: OtlpOptions
  /** Variables that were set but unusable, one sentence each. */
  readonly warnings: readonly string[]
}

/** The variables that we read; all are OpenTelemetry's own, with the signal's variable before the general one. */
export const otlpVariables = {
  endpoint: ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'],
  headers: ['OTEL_EXPORTER_OTLP_METRICS_HEADERS', 'OTEL_EXPORTER_OTLP_HEADERS'],
  intervalMs: ['OTEL_METRIC_EXPORT_INTERVAL'],
  timeoutMs: ['OTEL_EXPORTER_OTLP_METRICS_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT'],
  serviceName: ['OTEL_SERVICE_NAME'],
  attributes: ['OTEL_RESOURCE_ATTRIBUTES'],
  protocol: ['OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'],
  traces: ['OTEL_TRACES_EXPORTER'],
  isDisabled: ['OTEL_SDK_DISABLED', 'OTEL_METRICS_EXPORTER'],
} as const

/**
 * Reads OpenTelemetry's variables. They are often set for a whole fleet and meant for other programs too, so, as its
 * specification asks, an unusable one is skipped with a warning, and an empty one counts as unset.
 */
export function readOtlpVariables(env: Environment): OtlpVariables {
  const warnings: string[] = []
  const first = (names: readonly string[]) => {
    const name = names.find((candidate) => (env[candidate]?.trim() ?? '') !== '')
    return name === undefined ? undefined : { name, text: env[name]!.trim() }
  }
  const pairs = (names: readonly string[]) => {
    const found = first(names)
    const read = found && parsePairs(found.text)
    if (found !== undefined && read === undefined) warnings.push(`${found.name} is not as name=value,name=value`)
    return read
  }
  const milliseconds = (names: readonly string[]) => {
    const found = first(names)
    if (found === undefined) return undefined
    const ms = Number(found.text)
    if (ms >= 1 && ms <= maxDelayMs) return ms
    warnings.push(`${found.name} is "${found.text}"; it must be a number from 1 to ${maxDelayMs}`)
    return undefined
  }
  const protocol = first(otlpVariables.protocol)
  const isSpoken = protocol === undefined || protocol.text.startsWith('http/')
  const endpoint = isSpoken ? endpointOf(first(otlpVariables.endpoint), warnings) : undefined
  if (!isSpoken && first(otlpVariables.endpoint) !== undefined) {
    warnings.push(
      `${protocol.name} is "${protocol.text}"; metrics are pushed as http/json only: set ${otlpVariables.protocol[0]}=http/json and name the collector's HTTP port (4318) in ${otlpVariables.endpoint[0]}`,
    )
  }
  const given: { [Name in keyof OtlpOptions]: OtlpOptions[Name] | undefined } = {
    endpoint,
    headers: pairs(otlpVariables.headers),
    intervalMs: milliseconds(otlpVariables.intervalMs),
    timeoutMs: milliseconds(otlpVariables.timeoutMs),
    serviceName: first(otlpVariables.serviceName)?.text,
    attributes: pairs(otlpVariables.attributes),
    traces: first(otlpVariables.traces)?.text.split(',').includes('otlp'),
    isDisabled: isDisabled(env) || undefined,
  }
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as OtlpOptions
  return { options, warnings }
}

/** `a=1,b=two%20words`; undefined if it does not have that form. */
export function parsePairs(text: string): Record<string, string> | undefined {
  const pairs: Record<string, string> = {}
  for (const part of text.split(',')) {
    if (part.trim() === '') continue
    const [, name, value] = /^\s*([^\s=]+)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    if (name === undefined || value === undefined) return undefined
    try {
      pairs[decodeURIComponent(name)] = decodeURIComponent(value)
    } catch {
      return undefined
    }
  }
  return pairs
}

function endpointOf(found: { name: string; text: string } | undefined, warnings: string[]): string | undefined {
  if (found === undefined) return undefined
  const { name, text } = found
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '') {
    warnings.push(`${name} must be an http or https address without a user`)
    return undefined
  }
  // The signal's own address is used as it is, with at least a slash; the general one is the base of the signals'
  // paths.
  if (name === otlpVariables.endpoint[0]) return url.href
  return `${url.origin}${url.pathname.replace(/\/$/, '')}/v1/metrics${url.search}`
}

function isDisabled(env: Environment): boolean {
  const [disabled, exporters] = otlpVariables.isDisabled.map((name) => env[name]?.trim().toLowerCase() ?? '')
  return disabled === 'true' || (exporters !== '' && !exporters!.split(',').some((one) => one.trim() === 'otlp'))
}
