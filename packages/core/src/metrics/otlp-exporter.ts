import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers, wallClock } from '../time/clock.ts'
import type { MetricFamily } from './metric-family.ts'
import type { ResolvedOtlpOptions } from './otlp-options.ts'
import { otlpRequest } from './otlp-request.ts'

/** What an exporter is made of. */
export interface OtlpExporterOptions {
  readonly otlp: ResolvedOtlpOptions
  /** Who this process is; `otlp.attributes` come on top. */
  readonly resource: Readonly<Record<string, string>>
  /** The figures of this moment. */
  readonly collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>
  /** Told when the collector is away and when it is back, once each. */
  readonly logger: { info(data: object, message: string): void; warn(data: object, message: string): void }
  /** @default a clock that never steps */
  readonly clock?: Clock
  /** @default the wall clock */
  readonly wallClock?: Clock
  /** @default the runtime's */
  readonly timers?: Timers
  /** @default Math.random */
  readonly random?: () => number
}

/** How a request ended that the collector did not take. */
interface Refusal {
  readonly problem: string
  readonly isPassing: boolean
  readonly retryAfterMs?: number | undefined
}

const firstPauseMs = 1000
/** All tries of one export together. */
const maxExportMs = 30_000
/** The last export, while the process ends. */
const maxFarewellMs = 2000
/** Nobody silences a process for longer than this, whatever `Retry-After` says. */
const maxRetryAfterMs = 600_000
const maxAnswerBytes = 65_536
/** The answers after which OTLP wants the same request again. */
const passingStatuses = new Set([429, 502, 503, 504])

/**
 * Pushes a process' metrics to an OpenTelemetry collector, as JSON over HTTP. Counters are told as they stand since the
 * start, so that nothing is kept for a collector that is away: an export that no try brought out is given up and
 * counted, and the next one tells the same and more. One export is under way at a time; within it the request is sent
 * again, after pauses that double, where the answer is one of those that OTLP calls passing or there was none. Nothing
 * here is waited for by anybody, and nothing of it throws.
 */
export class OtlpExporter {
  /** Exports by how they ended, and points that a collector did not want. */
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

  /** Exports now and then, the first time after one interval. */
  start(): void {
    this.#timer ??= this.#timers.setInterval(() => void this.export(), this.#options.otlp.intervalMs)
  }

  /** Tells the figures of this moment; where an export is under way, that one. Resolves when it was taken or given up. */
  export(): Promise<void> {
    this.#running ??= this.#export(Math.min(maxExportMs, this.#options.otlp.intervalMs)).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Ends the exports, with a last one where the collector is not away. */
  async close(): Promise<void> {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#isEnding = true
    this.#endPause?.()
    const farewell = this.#timers.setTimeout(() => this.#request?.abort(), maxFarewellMs)
    const { failed } = this.counts
    if (this.#running !== undefined) await this.#running
    // Without a wait before it, so that who closes the exporter first may close what it reads from next.
    if (!this.#isAway && this.counts.failed === failed) await this.#export(0)
    farewell.cancel()
  }

  async #export(budgetMs: number): Promise<void> {
    const endAt = this.#clock.now() + budgetMs
    if (this.#clock.now() < this.#silentUntil) return
    let body: string
    try {
      body = await this.#body()
    } catch (error) {
      this.#givenUp(`the metrics could not be read: ${messageOf(error)}`)
      return
    }
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

  async #body(): Promise<string> {
    const { collect, resource, otlp } = this.#options
    const families = await collect()
    const head = {
      resource: { ...resource, ...otlp.attributes },
      startTimeMs: this.#startTimeMs,
      timeMs: (this.#options.wallClock ?? wallClock).now(),
    }
    return JSON.stringify(otlpRequest(families, head))
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
        // A collector does not move; headers with keys in them must not follow.
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

  /** `Retry-After` has seconds or a date. */
  #retryAfterMs({ headers }: Response): number | undefined {
    const text = headers.get('retry-after')
    if (text === null) return undefined
    const ms = /^\d+$/.test(text)
      ? Number(text) * 1000
      : Date.parse(text) - (this.#options.wallClock ?? wallClock).now()
    return Number.isNaN(ms) ? undefined : Math.min(maxRetryAfterMs, Math.max(0, ms))
  }

  /** A collector may take a request and leave points out: it is not sent again, and told once. */
  #checkAnswer(answer: string): void {
    const { rejectedDataPoints, errorMessage } = partialSuccessOf(answer)
    const rejected = Number(rejectedDataPoints ?? 0)
    if (!(rejected > 0)) return
    this.counts.rejectedPoints += rejected
    if (this.#hasRejected) return
    this.#hasRejected = true
    this.#options.logger.warn(
      { collector: this.#place, rejected, reason: errorMessage },
      'the OpenTelemetry collector left points out',
    )
  }

  #taken(): void {
    this.counts.sent++
    if (!this.#isAway) return
    this.#isAway = false
    this.#options.logger.info({ collector: this.#place }, 'the OpenTelemetry collector takes metrics again')
  }

  #givenUp(problem: string): void {
    this.counts.failed++
    if (this.#isAway || this.#isEnding) return
    this.#isAway = true
    this.#options.logger.warn(
      { collector: this.#place, problem },
      'metrics do not reach the OpenTelemetry collector; retrying; this is reported once',
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

/** The beginning of an answer, as much of it as can matter. */
async function readSome({ body }: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > maxAnswerBytes) break
  }
  return text
}

function partialSuccessOf(answer: string): { rejectedDataPoints?: string | number; errorMessage?: string } {
  try {
    return (JSON.parse(answer) as { partialSuccess?: object } | null)?.partialSuccess ?? {}
  } catch {
    // A collector that answers in protobuf, or nothing at all.
    return {}
  }
}

function messageOf(error: unknown): string {
  const { message, cause } = error as Error
  // `fetch failed` says nothing; its cause does. Of several addresses tried, the first one's.
  const reason = cause instanceof AggregateError ? (cause.errors[0] as Error) : cause
  return reason instanceof Error ? reason.message : message
}
