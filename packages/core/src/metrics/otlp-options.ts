import { InvalidOptionError } from '../errors/firebreak-error.ts'

/** Where a process' metrics are pushed to as OTLP over HTTP, and how. */
export interface OtlpOptions {
  /**
   * The collector: `http://collector:4318`, to which `/v1/metrics` is added, or an address with a path, which is taken
   * as it is. @default none: nothing is pushed
   */
  readonly endpoint?: string
  /** Headers of each request, as a vendor's key; never logged. @default {} */
  readonly headers?: Readonly<Record<string, string>>
  /** How often metrics are pushed. @default 60000 */
  readonly intervalMs?: number
  /** Without an answer for this long a request has failed. @default 10000 */
  readonly timeoutMs?: number
  /** What the process is called, `service.name`. @default what it is: 'firebreak-hub', 'firebreak-proxy' */
  readonly serviceName?: string
  /** Further attributes of the resource; they may also replace those that the process gives itself. @default {} */
  readonly attributes?: Readonly<Record<string, string>>
  /** Pushes nothing whatever the other options say. @default false */
  readonly isDisabled?: boolean
}

/** `OtlpOptions` of a process that pushes. */
export type ResolvedOtlpOptions = Required<Omit<OtlpOptions, 'serviceName' | 'isDisabled'>>

const metricsPath = '/v1/metrics'
/** The longest that a timer takes. */
export const maxDelayMs = 2 ** 31 - 1

/** Checks the options and fills the defaults in; undefined where nothing is to be pushed. */
export function resolveOtlpOptions(options: OtlpOptions | undefined): ResolvedOtlpOptions | undefined {
  if (options?.endpoint === undefined || options.isDisabled === true) return undefined
  const { headers = {}, intervalMs = 60_000, timeoutMs = 10_000, attributes = {}, serviceName } = options
  for (const [name, value] of Object.entries({ 'otlp.intervalMs': intervalMs, 'otlp.timeoutMs': timeoutMs })) {
    if (!Number.isFinite(value) || value < 1 || value > maxDelayMs)
      throw new InvalidOptionError(name, value, `a number from 1 to ${maxDelayMs}`)
  }
  checkHeaders(headers)
  return {
    endpoint: metricsUrl(options.endpoint),
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
    throw new InvalidOptionError('otlp.endpoint', shown, 'without user and password: they belong into a header')
  }
  return /^[a-z]+:\/\/[^/]+$/i.test(endpoint) ? `${endpoint}${metricsPath}` : endpoint
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
