import { type Clock, formatTextReport, type Timers } from '@firebreak/core'
import type { HubAddress } from './hub-address.ts'
import { decodePending, type Reporter } from './pending-report.ts'
import type { RenewableToken } from './renewable-token.ts'
import type { ReportQueue } from './report-queue.ts'

const timeoutMs = 2000

/** The outcome of a report: the hub answered, never saw it, or may have counted it before the answer was lost. */
type Outcome = 'answered' | 'unseen' | 'unknown'

/** Failures after which a hub cannot have seen a request; a browser reports none of them. */
const unseenCodes = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Sends reports as text over HTTP, one at a time, while the hub's WebSocket cannot be reached. */
export class HttpReporter {
  readonly #token: RenewableToken | undefined
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #reporter: Reporter
  #isSending = false

  constructor(reporter: Reporter, token: RenewableToken | undefined, clock: Clock, timers: Timers) {
    this.#reporter = reporter
    this.#token = token
    this.#clock = clock
    this.#timers = timers
  }

  /**
   * Sends the queued reports, oldest first, until one fails. That one stays at the head of the queue if it was
   * certainly not seen; otherwise it is dropped: a report may be lost, but never counted twice.
   */
  async send(queue: ReportQueue, { reportsUrl }: HubAddress): Promise<void> {
    if (this.#isSending || queue.length === 0) return
    this.#isSending = true
    await this.#sendAll(queue, reportsUrl).finally(() => {
      this.#isSending = false
    })
  }

  async #sendAll(queue: ReportQueue, url: string): Promise<void> {
    for (let report = queue.peek(); report !== undefined; report = queue.peek()) {
      const body = formatTextReport(decodePending(report, this.#reporter, this.#clock.now()), 2)
      const outcome = await this.#post(url, body)
      // A full queue may have dropped it meanwhile; then the head is another one.
      if (outcome !== 'unseen' && queue.peek() === report) queue.shift()
      if (outcome !== 'answered') return
    }
  }

  async #post(url: string, body: string): Promise<Outcome> {
    const deadline = new AbortController()
    const timer = this.#timers.setTimeout(() => deadline.abort(), timeoutMs)
    const token = this.#token?.current
    try {
      const response = await fetch(url, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'text/plain; v=2',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        signal: deadline.signal,
      })
      await response.arrayBuffer()
      if (response.status === 401) this.#token?.renew()
      // A report that the hub refuses is not resent: it would be refused again.
      const isAnswered = response.ok || (response.status >= 400 && response.status < 500 && response.status !== 404)
      return isAnswered ? 'answered' : 'unseen'
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: string }
      return code !== undefined && unseenCodes.has(code) ? 'unseen' : 'unknown'
    } finally {
      timer.cancel()
    }
  }
}
