import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** Where and how a process' metrics are pushed as OTLP over HTTP. */
export interface OtlpOptions {
  /**
   * The collector: `http://collector:4318`, to which `/v1/metrics` is added, or an address with a path, which is used
   * as it is. @default none: nothing is pushed
   */
  readonly endpoint?: string
  /** Headers of each request, such as a vendor's API key; never logged. @default {} */
  readonly headers?: Readonly<Record<string, string>>
  /** How often metrics are pushed. @default 60000 */
  readonly intervalMs?: number
  /** A request without a response for this long has failed. @default 10000 */
  readonly timeoutMs?: number
  /** The name of the process, `service.name`. @default what it is: 'firebreak-hub', 'firebreak-proxy' */
  readonly serviceName?: string
  /** Additional resource attributes; they may also override the process' own. @default {} */
  readonly attributes?: Readonly<Record<string, string>>
  /** Also pushes a hub's decisions as traces, to `/v1/traces` next to `/v1/metrics`. @default false */
  readonly traces?: boolean
  /** Pushes nothing, whatever the other options say. @default false */
  readonly isDisabled?: boolean
}

/** `OtlpOptions` of a process that pushes. */
export interface ResolvedOtlpOptions extends Required<Omit<OtlpOptions, 'serviceName' | 'isDisabled' | 'traces'>> {
  /** Undefined if no traces are pushed. */
  readonly tracesEndpoint: string | undefined
}

const metricsPath = '/v1/metrics'
/** The longest delay that a timer supports. */
export const maxDelayMs = 2 ** 31 - 1

/** Validates the options and fills in the defaults; undefined if nothing is to be pushed. */
export function resolveOtlpOptions(options: OtlpOptions | undefined): ResolvedOtlpOptions | undefined {
  if (options?.endpoint === undefined || options.isDisabled === true) return undefined
  const { headers = {}, intervalMs = 60_000, timeoutMs = 10_000, attributes = {}, serviceName } = options
  for (const [name, value] of Object.entries({ 'otlp.intervalMs': intervalMs, 'otlp.timeoutMs': timeoutMs })) {
    if (!Number.isFinite(value) || value < 1 || value > maxDelayMs)
      throw new InvalidOptionError(name, value, `a number from 1 to ${maxDelayMs}`)
  }
  checkHeaders(headers)
  const endpoint = metricsUrl(options.endpoint)
  return {
    endpoint,
    tracesEndpoint: options.traces === true ? tracesUrl(endpoint) : undefined,
    headers,
    intervalMs,
    timeoutMs,
    attributes: { ...attributes, ...(serviceName !== undefined && { 'service.name': serviceName }) },
  }
}

function metricsUrl(endpoint: string): string {
  const url = URL.parse(endpoint)
  // Neither an address with a password nor a header is repeated in an error.
  const shown = endpoint.replace(/\/\/[^@/]*@/, '//…@').replace(/\?.*$/, '?…')
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidOptionError('otlp.endpoint', shown, 'an address as http://127.0.0.1:4318')
  }
  if (url.username !== '' || url.password !== '') {
    throw new InvalidOptionError('otlp.endpoint', shown, 'without user and password: they belong in a header')
  }
  return /^[a-z]+:\/\/[^/]+$/i.test(endpoint) ? `${endpoint}${metricsPath}` : endpoint
}

function tracesUrl(endpoint: string): string {
  if (endpoint.endsWith(metricsPath)) return `${endpoint.slice(0, -metricsPath.length)}/v1/traces`
  throw new InvalidOptionError(
    'otlp.traces',
    true,
    `used with an endpoint without a path, or with one that ends with ${metricsPath}`,
  )
}

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers([[name, value]])
    } catch {
      throw new InvalidOptionError(`otlp.headers.${name}`, '…', 'a header that HTTP allows')
    }
  }
}
