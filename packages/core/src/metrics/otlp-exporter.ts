import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers, wallClock } from '../time/clock.ts'
import type { MetricFamily } from './metric-family.ts'
import type { ResolvedOtlpOptions } from './otlp-options.ts'
import { type OtlpHead, otlpRequest } from './otlp-request.ts'

/** What is sent to a collector. */
export interface OtlpSignal {
  readonly name: 'metrics' | 'traces'
  /** The current request; undefined if there is nothing to send. */
  request(head: OtlpHead): object | undefined | Promise<object | undefined>
  /** The collector accepted the last request. */
  onTaken?(): void
}

/** The current metrics, cumulative since the start. */
export function metricsSignal(collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>): OtlpSignal {
  return { name: 'metrics', request: async (head) => otlpRequest(await collect(), head) }
}

/** Options of an exporter. */
export interface OtlpExporterOptions {
  readonly otlp: ResolvedOtlpOptions
  /** Identifies this process; `otlp.attributes` are added. */
  readonly resource: Readonly<Record<string, string>>
  readonly signal: OtlpSignal
  /** Logs when the collector is unreachable and when it has recovered, once each. */
  readonly logger: { info(data: object, message: string): void; warn(data: object, message: string): void }
  /** @default a monotonic clock */
  readonly clock?: Clock
  /** @default the wall clock */
  readonly wallClock?: Clock
  /** @default the runtime's */
  readonly timers?: Timers
  /** @default Math.random */
  readonly random?: () => number
}

/** How a request that the collector did not accept ended. */
interface Refusal {
  readonly problem: string
  readonly isPassing: boolean
  readonly retryAfterMs?: number | undefined
}

const firstPauseMs = 1000
/** Time limit for all attempts of one export. */
const maxExportMs = 30_000
/** Time limit for the last export while the process ends. */
const maxFarewellMs = 2000
/** The longest pause that we accept from `Retry-After`. */
const maxRetryAfterMs = 600_000
const maxAnswerBytes = 65_536
/** The responses after which OTLP wants the same request again. */
const passingStatuses = new Set([429, 502, 503, 504])

/**
 * Pushes a process' metrics or traces to an OpenTelemetry collector, as JSON over HTTP. Nothing is buffered for a
 * collector that is down: an export that fails on every attempt is dropped and counted, and the next one carries the
 * same data and more. Only one export runs at a time; within it the request is retried, with doubling pauses, if there
 * was no response or one that OTLP calls retryable. Nobody waits for any of this, and it never throws.
 */
export class OtlpExporter {
  /** Exports by outcome, and points that the collector rejected. */
  readonly counts = { sent: 0, failed: 0, rejectedPoints: 0 }
  readonly #options: OtlpExporterOptions
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #startTimeMs: number
  #timer: TimerHandle | undefined
  #request: AbortController | undefined
  #endPause: (() => void) | undefined
  #isEnding = false
  #running: Promise<void> | undefined
  #silentUntil = Number.NEGATIVE_INFINITY
  #isAway = false
  #hasRejected = false

  constructor(options: OtlpExporterOptions) {
    this.#options = options
    this.#clock = options.clock ?? steadyClock
    this.#timers = options.timers ?? systemTimers
    this.#startTimeMs = (options.wallClock ?? wallClock).now()
  }

  /** Exports periodically, for the first time after one interval. */
  start(): void {
    this.#timer ??= this.#timers.setInterval(() => void this.export(), this.#options.otlp.intervalMs)
  }

  /**
   * Exports the current metrics; if an export is under way, waits for that one. Resolves when it was accepted or given
   * up.
   */
  export(): Promise<void> {
    this.#running ??= this.#export(Math.min(maxExportMs, this.#options.otlp.intervalMs)).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Stops exporting, after a last export unless the collector is down. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#isEnding = true
    this.#endPause?.()
    const farewell = this.#timers.setTimeout(() => this.#request?.abort(), maxFarewellMs)
    const { failed } = this.counts
    if (this.#running !== undefined) await this.#running
    // Not awaited, so that a caller that closes the exporter first may then close what it reads from.
    if (!this.#isAway && this.counts.failed === failed) await this.#export(0)
    farewell.cancel()
  }

  async #export(budgetMs: number): Promise<void> {
    const endAt = this.#clock.now() + budgetMs
    if (this.#clock.now() < this.#silentUntil) return
    let body: string | undefined
    try {
      body = await this.#body()
    } catch (error) {
      this.#givenUp(`the ${this.#options.signal.name} are unavailable: ${messageOf(error)}`)
      return
    }
    if (body === undefined) return
    for (let pauseMs = firstPauseMs; ; pauseMs *= 2) {
      const refusal = await this.#post(body)
      if (refusal === undefined) {
        this.#taken()
        return
      }
      const now = this.#clock.now()
      if (refusal.retryAfterMs !== undefined) this.#silentUntil = now + refusal.retryAfterMs
      const waitMs = refusal.retryAfterMs ?? pauseMs * (0.8 + 0.4 * (this.#options.random ?? Math.random)())
      if (!refusal.isPassing || now + waitMs >= endAt || this.#isEnding) {
        this.#givenUp(refusal.problem)
        return
      }
      await this.#pause(waitMs)
      if (this.#isEnding) return
    }
  }

  async #body(): Promise<string | undefined> {
    const { signal, resource, otlp } = this.#options
    const request = await signal.request({
      resource: { ...resource, ...otlp.attributes },
      startTimeMs: this.#startTimeMs,
      timeMs: (this.#options.wallClock ?? wallClock).now(),
    })
    return request && JSON.stringify(request)
  }

  async #post(body: string): Promise<Refusal | undefined> {
    const { endpoint, headers, timeoutMs } = this.#options.otlp
    const request = new AbortController()
    this.#request = request
    const late = new Error(`it did not answer within ${timeoutMs} ms`)
    const deadline = this.#timers.setTimeout(() => request.abort(late), timeoutMs)
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: { 'user-agent': 'firebreak', ...headers, 'content-type': 'application/json' },
        body,
        // A collector does not move, and headers with API keys must not follow a redirect.
        redirect: 'manual',
        signal: request.signal,
      })
      const answer = await readSome(response)
      if (response.ok) {
        this.#checkAnswer(answer)
        return undefined
      }
      return {
        problem: `it answered ${response.status}`,
        isPassing: passingStatuses.has(response.status),
        retryAfterMs: passingStatuses.has(response.status) ? this.#retryAfterMs(response) : undefined,
      }
    } catch (error) {
      return { problem: messageOf(error), isPassing: true }
    } finally {
      deadline.cancel()
    }
  }

  /** `Retry-After` holds seconds or a date. */
  #retryAfterMs({ headers }: Response): number | undefined {
    const text = headers.get('retry-after')
    if (text === null) return undefined
    const ms = /^\d+$/.test(text)
      ? Number(text) * 1000
      : Date.parse(text) - (this.#options.wallClock ?? wallClock).now()
    return Number.isNaN(ms) ? undefined : Math.min(maxRetryAfterMs, Math.max(0, ms))
  }

  /** A collector may accept a request but leave points out: it is not sent again, and logged once. */
  #checkAnswer(answer: string): void {
    const { rejectedDataPoints, rejectedSpans, errorMessage } = partialSuccessOf(answer)
    const rejected = Number(rejectedDataPoints ?? rejectedSpans ?? 0)
    if (!(rejected > 0)) return
    this.counts.rejectedPoints += rejected
    if (this.#hasRejected) return
    this.#hasRejected = true
    this.#options.logger.warn(
      { collector: this.#place, rejected, reason: errorMessage },
      `the OpenTelemetry collector left ${this.#options.signal.name === 'metrics' ? 'points' : 'spans'} out`,
    )
  }

  #taken(): void {
    this.counts.sent++
    this.#options.signal.onTaken?.()
    if (!this.#isAway) return
    this.#isAway = false
    this.#options.logger.info(
      { collector: this.#place },
      `the OpenTelemetry collector takes ${this.#options.signal.name} again`,
    )
  }

  #givenUp(problem: string): void {
    this.counts.failed++
    if (this.#isAway || this.#isEnding) return
    this.#isAway = true
    this.#options.logger.warn(
      { collector: this.#place, problem },
      `${this.#options.signal.name} are not reaching the OpenTelemetry collector; retrying; this is reported once`,
    )
  }

  /** Without path and query, which may hold a secret. */
  get #place(): string {
    return new URL(this.#options.otlp.endpoint).host
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#timers.setTimeout(resolve, ms)
      this.#endPause = () => {
        timer.cancel()
        resolve()
      }
    })
  }
}

/** The start of a response, as much as can matter. */
async function readSome({ body }: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > maxAnswerBytes) break
  }
  return text
}

interface PartialSuccess {
  readonly rejectedDataPoints?: string | number
  readonly rejectedSpans?: string | number
  readonly errorMessage?: string
}

function partialSuccessOf(answer: string): PartialSuccess {
  try {
    return (JSON.parse(answer) as { partialSuccess?: object } | null)?.partialSuccess ?? {}
  } catch {
    // The collector answered in protobuf, or not at all.
    return {}
  }
}

function messageOf(error: unknown): string {
  const { message, cause } = error as Error
  // `fetch failed` says nothing; its cause does. If several addresses were tried, take the first one's.
  const reason = cause instanceof AggregateError ? (cause.errors[0] as Error) : cause
  return reason instanceof Error ? reason.message : message
}
