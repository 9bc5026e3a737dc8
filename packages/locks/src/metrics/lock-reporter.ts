import { hostname } from 'node:os'
import { type Runtime, systemRuntime, type TimerHandle } from '@firebreak/core'
import type { Locks } from '../locks.ts'
import type { LocksSnapshot } from './locks-snapshot.ts'

/** A process' report about its locks: the body of `POST /v1/locks`. */
export interface LockReport extends LocksSnapshot {
  readonly version: 1
  readonly serviceId: string
  readonly hostId: string
  /** How long this report is valid: the hub forgets a process that sends no newer one. */
  readonly validMs: number
}

/** Locks given up after one report. */
const maxReleases = 100

/** How to report a process' locks. */
export interface LockReporterOptions {
  /** The hub, such as `http://127.0.0.1:7077`. */
  readonly hubUrl: string
  readonly serviceId: string
  /** @default the machine's host name */
  readonly hostId?: string
  /** The application's token, if the hub requires one. */
  readonly token?: string
  /** @default 2000 */
  readonly everyMs?: number
  /** @default the global fetch */
  readonly fetch?: typeof globalThis.fetch
  /** Its timers. @default the system's */
  readonly runtime?: Runtime
}

/** Periodically posts a snapshot of a process' locks to the hub. Lossy by design: a failed report is only counted. */
export class LockReporter {
  /** Reports that the hub accepted. */
  sent = 0
  /** Reports that failed or were refused. */
  failed = 0
  /** Locks given up at a user's request. */
  released = 0
  readonly #locks: Locks
  readonly #options: LockReporterOptions
  readonly #everyMs: number
  readonly #timer: TimerHandle
  #isSending = false

  constructor(locks: Locks, options: LockReporterOptions) {
    this.#locks = locks
    this.#options = options
    this.#everyMs = options.everyMs ?? 2000
    this.#timer = (options.runtime ?? systemRuntime).timers.setInterval(() => void this.report(), this.#everyMs)
  }

  /** Sends one report now, after any report in progress. */
  async report(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    const { hubUrl, serviceId, hostId = hostname(), token, fetch = globalThis.fetch } = this.#options
    const snapshot = this.#locks.snapshot()
    const body: LockReport = { version: 1, serviceId, hostId, validMs: this.#everyMs * 3, ...snapshot }
    const deadline = new AbortController()
    const { timers } = this.#options.runtime ?? systemRuntime
    const timer = timers.setTimeout(() => deadline.abort(), Math.max(1000, this.#everyMs))
    try {
      const response = await fetch(new URL('/v1/locks', hubUrl), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify(body),
        signal: deadline.signal,
      })
      if (response.ok) this.sent++
      else this.failed++
      if (response.status === 200) await this.#release((await response.json()) as { readonly release?: unknown })
      else await response.body?.cancel()
    } catch {
      this.failed++
    } finally {
      timer.cancel()
      this.#isSending = false
    }
  }

  stop(): void {
    this.#timer.cancel()
  }

  /** Gives up the locks that a user released at the hub. */
  async #release({ release }: { readonly release?: unknown }): Promise<void> {
    for (const one of Array.isArray(release) ? (release as unknown[]).slice(0, maxReleases) : []) {
      const { kind, token } = (one ?? {}) as { readonly kind?: unknown; readonly token?: unknown }
      if ((kind === 'lock' || kind === 'fair') && typeof token === 'number') {
        if (await this.#locks.giveUp(kind, token)) this.released++
      }
    }
  }
}
