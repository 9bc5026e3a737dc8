import { type Clock, formatTextReport } from '@firebreak/core'
import type { HubAddress } from './hub-address.ts'
import { decodePending, type Reporter } from './pending-report.ts'
import type { ReportQueue } from './report-queue.ts'

const timeoutMs = 2000

/** Sends reports as text over HTTP, one at a time, where the hub's WebSocket cannot be reached. */
export class HttpReporter {
  readonly #token: string | undefined
  readonly #clock: Clock
  readonly #reporter: Reporter
  #isSending = false

  constructor(reporter: Reporter, token: string | undefined, clock: Clock) {
    this.#reporter = reporter
    this.#token = token
    this.#clock = clock
  }

  /** Sends what the queue holds, oldest first, until one fails; that one stays at the head of the queue. */
  send(queue: ReportQueue, { reportsUrl }: HubAddress): void {
    if (this.#isSending || queue.length === 0) return
    this.#isSending = true
    void this.#sendAll(queue, reportsUrl).finally(() => {
      this.#isSending = false
    })
  }

  async #sendAll(queue: ReportQueue, url: string): Promise<void> {
    for (let report = queue.peek(); report !== undefined; report = queue.peek()) {
      const body = formatTextReport(decodePending(report, this.#reporter, this.#clock.now()), 2)
      const isTaken = await this.#post(url, body)
      if (!isTaken) return
      // A full queue may have dropped it meanwhile; then the head is another one.
      if (queue.peek() === report) queue.shift()
    }
  }

  async #post(url: string, body: string): Promise<boolean> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'text/plain; v=2',
          ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        },
        signal: AbortSignal.timeout(timeoutMs),
      })
      await response.arrayBuffer()
      // A report that the hub refuses is not sent again: it would be refused again.
      return response.ok || (response.status >= 400 && response.status < 500 && response.status !== 404)
    } catch {
      return false
    }
  }
}
