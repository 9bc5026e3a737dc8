import { hostname } from 'node:os'
import type { TimerHandle } from '../time/clock.ts'
import { type Runtime, systemRuntime } from '../time/runtime.ts'

/** The rooms that a process may raise alarms for. */
export type AlarmRoom = 'limits' | 'locks' | 'ids' | 'sale' | 'proxy' | 'app'

/** How a process reports its problems to a hub. */
export interface AlarmReporterOptions {
  /** The hub, such as `http://127.0.0.1:7070`. */
  readonly hubUrl: string
  readonly serviceId: string
  /** @default the machine's host name */
  readonly hostId?: string
  /** An app token, if the hub requires one. */
  readonly token?: string
  /** How often ongoing problems are reported again. @default 10000 */
  readonly everyMs?: number
  /** How long a one-off problem stays visible. @default 60000 */
  readonly shownMs?: number
  /** @default the global fetch */
  readonly fetch?: typeof globalThis.fetch
  /** @default the process's own */
  readonly runtime?: Runtime
}

interface Told {
  readonly room: AlarmRoom
  readonly code: string
  readonly message: string
  /** By the clock; `Infinity` until it is cleared. */
  readonly until: number
}

const maxAlarms = 10
const maxMessage = 500

/**
 * Shows a process' problems on a hub's alarm board: `POST /v1/alarms`, at once and repeatedly while they last. A hub
 * that does not answer costs only a counter; it gets the next list.
 */
export class AlarmReporter {
  /** Lists that the hub accepted, and lists that it did not. */
  readonly counts = { sent: 0, failed: 0 }
  readonly #options: Required<Omit<AlarmReporterOptions, 'token'>> & Pick<AlarmReporterOptions, 'token'>
  readonly #told = new Map<string, Told>()
  readonly #timer: TimerHandle
  #sending: Promise<void> | undefined
  #isChanged = false
  /** The hub still shows one of our alarms. */
  #isShown = false

  constructor(options: AlarmReporterOptions) {
    this.#options = {
      hostId: hostname(),
      everyMs: 10_000,
      shownMs: 60_000,
      fetch: globalThis.fetch,
      runtime: systemRuntime,
      ...options,
    }
    this.#timer = this.#options.runtime.timers.setInterval(() => this.#look(), this.#options.everyMs)
  }

  /** Reports something that went wrong once; fits `onAlarm` of ids. It stays visible for `shownMs`. */
  tell(room: AlarmRoom, { code, message }: { readonly code: string; readonly message: string }): void {
    this.#put(room, code, message, this.#options.runtime.clock.now() + this.#options.shownMs)
  }

  /** Raises an alarm until it is cleared with `undefined`. */
  set(room: AlarmRoom, code: string, message: string | undefined): void {
    if (message !== undefined) this.#put(room, code, message, Number.POSITIVE_INFINITY)
    else if (this.#told.delete(`${room} ${code}`)) this.#send()
  }

  /** Resolves once the hub has been sent everything so far, or could not be reached. */
  async told(): Promise<void> {
    await this.#sending
  }

  /** Stops reporting; whatever the hub shows expires there. */
  stop(): void {
    this.#timer.cancel()
  }

  #put(room: AlarmRoom, code: string, message: string, until: number): void {
    const id = `${room} ${code}`
    if (!this.#told.has(id) && this.#told.size >= maxAlarms) return
    const isNew = this.#told.get(id)?.message !== message
    this.#told.set(id, { room, code, message, until })
    if (isNew) this.#send()
  }

  #look(): void {
    const now = this.#options.runtime.clock.now()
    for (const [id, { until }] of this.#told) if (until <= now) this.#told.delete(id)
    if (this.#told.size > 0 || this.#isShown) this.#send()
  }

  #send(): void {
    this.#isChanged = true
    this.#sending ??= this.#run().finally(() => {
      this.#sending = undefined
    })
  }

  async #run(): Promise<void> {
    // Changes made while a list is being sent go with the next one.
    while (this.#isChanged) {
      this.#isChanged = false
      await this.#post()
    }
  }

  async #post(): Promise<void> {
    const { hubUrl, serviceId, hostId, token, everyMs, fetch, runtime } = this.#options
    const alarms = [...this.#told.values()].map(({ room, code, message }) => ({
      room,
      code: code.replace(/[^\w.-]/g, '-').slice(0, 64),
      message: message.slice(0, maxMessage),
    }))
    const body = JSON.stringify({ serviceId, hostId, validMs: Math.max(1000, everyMs * 3), alarms })
    const deadline = new AbortController()
    const timer = runtime.timers.setTimeout(() => deadline.abort(), 5000)
    try {
      const response = await fetch(new URL('/v1/alarms', hubUrl), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body,
        signal: deadline.signal,
      })
      await response.body?.cancel()
      this.counts[response.ok ? 'sent' : 'failed']++
      if (response.ok) this.#isShown = alarms.length > 0
    } catch {
      this.counts.failed++
    } finally {
      timer.cancel()
    }
  }
}
