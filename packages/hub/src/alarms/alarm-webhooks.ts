import { createHmac } from 'node:crypto'
import type { AlarmView, TimerHandle, Timers } from '@firebreak/core'
import { fetchWithin } from '../http/fetch-within.ts'
import type { HubLogger } from '../hub-options.ts'

/** The body of a webhook's POST. */
export interface AlarmNotice {
  readonly event: 'raised' | 'cleared'
  readonly hubId: string
  readonly at: number
  readonly alarm: AlarmView
}

/** How notices are sent. */
export interface AlarmWebhooksOptions {
  readonly urls: readonly string[]
  readonly timers: Timers
  readonly logger: HubLogger
  /** Signs each notice: header `firebreak-signature`. @default none: not signed */
  readonly secret?: string | undefined
  /** Pauses before the tries after the first. @default 1, 2, 4, 8 and 16 s */
  readonly retryMs?: readonly number[]
  /** Without an answer for this long a try has failed. @default 5000 */
  readonly timeoutMs?: number
  /** Notices that may wait for one address; beyond, the oldest goes. @default 1000 */
  readonly maxQueued?: number
}

const defaults = { secret: undefined, retryMs: [1000, 2000, 4000, 8000, 16_000], timeoutMs: 5000, maxQueued: 1000 }

/**
 * Posts every alarm that begins or ends to each address, in order. An address that does not answer with 2xx is tried
 * again, five times over half a minute; then the notice is given up, counted and logged. One address never waits for
 * another.
 */
export class AlarmWebhooks {
  readonly counts = { sent: 0, failed: 0, dropped: 0 }
  readonly #outlets: readonly Outlet[]

  constructor(options: AlarmWebhooksOptions) {
    this.#outlets = options.urls.map((url) => new Outlet(url, { ...defaults, ...options }, this.counts))
  }

  send(notice: AlarmNotice): void {
    for (const outlet of this.#outlets) outlet.add(notice)
  }

  close(): void {
    for (const outlet of this.#outlets) outlet.close()
  }
}

/** One address and what waits for it. */
class Outlet {
  readonly #url: string
  readonly #options: Required<AlarmWebhooksOptions>
  readonly #counts: AlarmWebhooks['counts']
  readonly #queue: AlarmNotice[] = []
  #isSending = false
  #isClosed = false
  #wake: { readonly timer: TimerHandle; readonly resolve: () => void } | undefined

  constructor(url: string, options: Required<AlarmWebhooksOptions>, counts: AlarmWebhooks['counts']) {
    this.#url = url
    this.#options = options
    this.#counts = counts
  }

  add(notice: AlarmNotice): void {
    this.#queue.push(notice)
    if (this.#queue.length > this.#options.maxQueued) {
      this.#queue.shift()
      this.#counts.dropped++
    }
    if (!this.#isSending) void this.#drain()
  }

  close(): void {
    this.#isClosed = true
    this.#wake?.timer.cancel()
    this.#wake?.resolve()
  }

  async #drain(): Promise<void> {
    this.#isSending = true
    for (let notice = this.#queue.shift(); notice !== undefined; notice = this.#queue.shift()) await this.#post(notice)
    this.#isSending = false
  }

  async #post(notice: AlarmNotice): Promise<void> {
    for (const pauseMs of [...this.#options.retryMs, undefined]) {
      const problem = await this.#try(notice)
      if (problem === undefined) {
        this.#counts.sent++
        return
      }
      if (pauseMs === undefined || this.#isClosed) {
        this.#counts.failed++
        const { event, alarm } = notice
        // The address may hold a secret: only its host is told.
        this.#options.logger.warn({ host: hostOf(this.#url), event, alarm: alarm.id, problem }, 'an alarm was not told')
        return
      }
      await this.#pause(pauseMs)
    }
  }

  async #try(notice: AlarmNotice): Promise<string | undefined> {
    try {
      const { timers, timeoutMs } = this.#options
      const body = JSON.stringify(notice)
      const headers = { 'content-type': 'application/json', ...signed(this.#options.secret, body) }
      // An address that was checked once must not send the notice on to one that was not.
      const init = { method: 'POST', headers, body, redirect: 'manual' } as const
      return await fetchWithin(timers, timeoutMs, this.#url, init, async (response) => {
        await response.body?.cancel()
        return response.ok ? undefined : `it answered ${response.status}`
      })
    } catch (error) {
      return (error as Error).message
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = { timer: this.#options.timers.setTimeout(resolve, ms), resolve }
    })
  }
}

/** The receiver makes the same HMAC-SHA256 of the body, whose `at` tells an old notice that is sent again. */
function signed(secret: string | undefined, body: string): Record<string, string> {
  if (secret === undefined) return {}
  return { 'firebreak-signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}` }
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'not a URL'
}
