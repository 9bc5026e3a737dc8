import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import { fetchWithin } from '../http/fetch-within.ts'
import type { AlarmNotice } from './alarm-webhooks.ts'
import { type AlertTarget, alertRequest, refusalIn } from './alert-shapes.ts'

/** How to notify one address. */
export interface AlertOutletOptions {
  readonly target: AlertTarget
  readonly timers: Timers
  readonly clock: Clock
  /** How to retry a notice that was not accepted. */
  readonly retry: RetryPolicy
  /** An attempt without an answer for this long has failed. */
  readonly timeoutMs: number
  /** Notices that may wait; beyond that the oldest is dropped. */
  readonly maxQueued: number
  readonly onResult: (notice: AlarmNotice, result: AlertResult) => void
  readonly onDropped: () => void
}

/** The outcome of a notice. */
export interface AlertResult {
  readonly isDelivered: boolean
  readonly tries: number
  /** The answer, or why there was none. */
  readonly detail: string
}

const maxAnswerBytes = 4096

/** One address and its queue of notices: in order, with retries, never waiting for another address. */
export class AlertOutlet {
  readonly #options: AlertOutletOptions
  readonly #queue: AlarmNotice[] = []
  #isSending = false
  #isClosed = false
  #wake: { readonly timer: TimerHandle; readonly resolve: () => void } | undefined

  constructor(options: AlertOutletOptions) {
    this.#options = options
  }

  add(notice: AlarmNotice): void {
    this.#queue.push(notice)
    if (this.#queue.length > this.#options.maxQueued) {
      this.#queue.shift()
      this.#options.onDropped()
    }
    if (!this.#isSending) void this.#drain()
  }

  /** Sends one notice now, once. */
  async test(notice: AlarmNotice): Promise<AlertResult> {
    const result = await this.#try(notice, 1)
    this.#options.onResult(notice, result)
    return result
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
    // There is no contention here, so the pauses need no jitter.
    const retry = new Retry(this.#options.retry, { clock: this.#options.clock, random: () => 1 })
    for (;;) {
      const result = await this.#try(notice, retry.failures + 1)
      const pauseMs = result.isDelivered ? undefined : retry.failed()
      if (pauseMs === undefined || this.#isClosed) {
        this.#options.onResult(notice, result)
        return
      }
      await this.#pause(pauseMs)
    }
  }

  async #try(notice: AlarmNotice, tries: number): Promise<AlertResult> {
    const { target, timers, timeoutMs } = this.#options
    try {
      const { url, headers, body } = alertRequest(target, notice)
      // A checked address must not redirect the notice to an unchecked one.
      const init = { method: 'POST', headers, body, redirect: 'manual' } as const
      return await fetchWithin(timers, timeoutMs, url, init, async (response) => {
        const text = await beginning(response)
        const refusal = response.ok ? refusalIn(target.shape, text) : `it answered ${response.status}`
        return { isDelivered: refusal === undefined, tries, detail: refusal ?? `it answered ${response.status}` }
      })
    } catch (error) {
      // For an invalid certificate, only the cause says what is wrong.
      const { message, cause } = error as Error
      return { isDelivered: false, tries, detail: cause instanceof Error ? cause.message : message }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = { timer: this.#options.timers.setTimeout(resolve, ms), resolve }
    })
  }
}

/** The first bytes of an answer; the rest is left unread. */
async function beginning(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  while (reader !== undefined && text.length < maxAnswerBytes) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
  }
  await reader?.cancel()
  return text
}
