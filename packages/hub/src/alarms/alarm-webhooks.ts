import { type AlarmView, type Clock, steadyClock, type Timers } from '@firebreak/core'
import type { RetryPolicy } from '@firebreak/core/settings'
import { hubRetrySteps } from '../config/retry-steps.ts'
import type { HubLogger } from '../hub-options.ts'
import { AlertOutlet } from './alert-outlet.ts'

/** The body of a webhook's POST. */
export interface AlarmNotice {
  /** It began or became critical; it ended; or somebody tries the route. */
  readonly event: 'raised' | 'cleared' | 'test'
  /** The hub that sends it. */
  readonly hubId: string
  /** When, hub time in milliseconds. */
  readonly at: number
  /** What is broken; `state` and what follows it are not sent. */
  readonly alarm: AlarmView
}

/** How notices are sent. */
export interface AlarmWebhooksOptions {
  readonly urls: readonly string[]
  /** @default the process's own */
  readonly clock?: Clock
  readonly timers: Timers
  readonly logger: HubLogger
  /** Signs each notice: header `firebreak-signature`. @default none: not signed */
  readonly secret?: string | undefined
  /** How to retry a notice that was not accepted. @default five times, after 1, 2, 4, 8 and 16 s */
  readonly retry?: RetryPolicy
  /** An attempt without an answer for this long has failed. @default 5000 */
  readonly timeoutMs?: number
  /** Notices that may wait for one address; beyond that the oldest is dropped. @default 1000 */
  readonly maxQueued?: number
}

export const webhookDefaults = {
  retry: hubRetrySteps.webhook.policy as RetryPolicy,
  clock: steadyClock,
  timeoutMs: 5000,
  maxQueued: 1000,
}

/**
 * Posts every alarm that starts or ends to each address, in order. If an address does not answer with 2xx, its policy
 * governs retries; after that the notice is dropped, counted and logged. One address never waits for another.
 */
export class AlarmWebhooks {
  readonly counts = { sent: 0, failed: 0, dropped: 0 }
  readonly #outlets: readonly AlertOutlet[]

  constructor(given: AlarmWebhooksOptions) {
    const { urls, secret, logger, ...options } = { ...webhookDefaults, ...given }
    this.#outlets = urls.map(
      (url) =>
        new AlertOutlet({
          ...options,
          target: { shape: 'plain', url, secret },
          onDropped: () => this.counts.dropped++,
          onResult: ({ event, alarm }, { isDelivered, detail: problem }) => {
            this.counts[isDelivered ? 'sent' : 'failed']++
            // The address may contain a secret: only its host is logged.
            if (!isDelivered)
              logger.warn({ host: hostOf(url), event, alarm: alarm.id, problem }, 'an alarm could not be delivered')
          },
        }),
    )
  }

  send(notice: AlarmNotice): void {
    for (const outlet of this.#outlets) outlet.add(notice)
  }

  close(): void {
    for (const outlet of this.#outlets) outlet.close()
  }
}

export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? 'not a URL'
}
