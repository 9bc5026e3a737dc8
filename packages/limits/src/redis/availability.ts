import type { Clock, Timers } from '@firebreak/core'
import { type Redis, replyErrorCode } from '@firebreak/redis'

/** When Redis counts as away, and how soon it is asked again. */
export interface AvailabilityOptions {
  /** A call that takes longer has failed. */
  readonly deadlineMs: number
  /** This many consecutive failures open the circuit. */
  readonly failures: number
  /** How often an open circuit asks whether Redis is back. */
  readonly probeMs: number
  readonly clock: Clock
  readonly timers: Timers
  onError(error: unknown): void
  /** Redis counts as away, or as back. */
  onAway?(isAway: boolean): void
}

/** A call did not come back within its deadline; whether it ran is not known, so it is never repeated. */
export class DeadlineError extends Error {}

/** A call that has no reply yet. */
interface Call {
  /** Its deadline, by the steady clock. */
  readonly endsAt: number
  failed(error: unknown): void
}

/** Unanswered probes that a client may hold in its queue while it is not connected. */
const maxProbes = 32

/**
 * A deadline for each call and a circuit breaker over all of them.
 *
 * While the circuit is open nothing is sent but a PING every `probeMs` (a probe must not charge anybody), and one more
 * as soon as the client says that it is connected again; the first PONG closes it.
 */
export class Availability {
  readonly #redis: Redis
  readonly #options: AvailabilityOptions
  /** In the order of their deadlines, so that one timer serves all: it is set for the first. */
  readonly #calls = new Set<Call>()
  #isTimed = false
  #failures = 0
  #isOpen = false
  #probes = 0
  #unwatch: () => void = () => {}

  constructor(redis: Redis, options: AvailabilityOptions) {
    this.#redis = redis
    this.#options = options
  }

  /** True while Redis counts as away. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Makes one call under the deadline; rejects where it fails, and counts that. */
  call<T>(run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => this.start(run, resolve, reject))
  }

  /** The same for those who need no promise: either `done` or `failed` is called, once. */
  start<T>(run: () => Promise<T>, done: (value: T) => void, failed: (error: unknown) => void): void {
    const call: Call = { endsAt: this.#options.clock.now() + this.#options.deadlineMs, failed }
    this.#calls.add(call)
    if (!this.#isTimed) this.#time(this.#options.deadlineMs)
    outcomeOf(run).then(
      (value) => {
        if (!this.#calls.delete(call)) return
        this.#failures = 0
        done(value)
      },
      (error) => {
        if (this.#calls.delete(call)) this.#fail(call, error)
      },
    )
  }

  #time(delayMs: number): void {
    this.#isTimed = true
    this.#options.timers.setTimeout(this.#endOverdue, delayMs)
  }

  readonly #endOverdue = (): void => {
    const now = this.#options.clock.now()
    const overdue: Call[] = []
    this.#isTimed = false
    for (const call of this.#calls) {
      if (call.endsAt > now) {
        this.#time(call.endsAt - now)
        break
      }
      this.#calls.delete(call)
      overdue.push(call)
    }
    for (const call of overdue) this.#fail(call, new DeadlineError(`no reply within ${this.#options.deadlineMs} ms`))
  }

  #fail(call: Call, error: unknown): void {
    this.#failed(error)
    call.failed(error)
  }

  #failed(error: unknown): void {
    this.#options.onError(error)
    // A server that answers, be it with an error about this key, is not away.
    const code = replyErrorCode(error)
    if (code !== undefined && !awayCodes.has(code)) return
    this.#failures++
    if (this.#failures >= this.#options.failures && !this.#isOpen) this.#open()
  }

  #open(): void {
    this.#isOpen = true
    this.#options.onAway?.(true)
    this.#unwatch = this.#redis.onReconnect(() => this.#probe())
    const { timers, probeMs } = this.#options
    const timer = timers.setInterval(() => {
      if (this.#isOpen) this.#probe()
      else timer.cancel()
    }, probeMs)
    this.#probe()
  }

  #probe(): void {
    if (this.#probes >= maxProbes) return
    this.#probes++
    const send =
      this.#redis.topology === 'cluster' ? this.#redis.send(['GET', 'firebreak:probe']) : this.#redis.send(['PING'])
    send.then(
      () => {
        this.#probes--
        this.#close()
      },
      () => {
        this.#probes--
      },
    )
  }

  #close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#failures = 0
    this.#unwatch()
    this.#options.onAway?.(false)
  }
}

/** What `run` gives; a client that throws instead of rejecting has rejected. */
function outcomeOf<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Replies of a server that is there but cannot serve. */
const awayCodes = new Set(['LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'READONLY', 'OOM', 'BUSY', 'NOREPLICAS', 'MISCONF'])
