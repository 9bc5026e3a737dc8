import type { Clock, Timers } from '@firebreak/core'
import { type Redis, replyErrorCode } from '@firebreak/redis'

/** When Redis counts as unreachable, and how soon it is probed. */
export interface AvailabilityOptions {
  /** A call that takes longer has failed. */
  readonly deadlineMs: number
  /** This many consecutive failures open the circuit. */
  readonly failures: number
  /** How often an open circuit probes Redis. */
  readonly probeMs: number
  readonly clock: Clock
  readonly timers: Timers
  onError(error: unknown): void
  /** Called when Redis counts as unreachable, or as recovered. */
  onAway?(isAway: boolean): void
}

/** A call was not answered within its deadline; it is unknown whether it ran, so it is never repeated. */
export class DeadlineError extends Error {}

/** A call without a reply yet. */
interface Call {
  /** Its deadline, by the steady clock. */
  readonly endsAt: number
  failed(error: unknown): void
}

/** Unanswered probes that may sit in a client's queue while it is not connected. */
const maxProbes = 32

/**
 * A deadline for each call and a circuit breaker over all of them.
 *
 * While the circuit is open only a PING every `probeMs` is sent (a probe must not charge anyone), and another as soon
 * as the client reports that it is connected again; the first PONG closes it.
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

  /** True while Redis counts as unreachable. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Makes one call under the deadline; rejects and counts a failure. */
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
    // A server that answers, even with an error about this key, is reachable.
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

/** The result of `run`; a client that throws counts as having rejected. */
function outcomeOf<T>(run: () => Promise<T>): Promise<T> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Replies of a server that is there but cannot serve. */
const awayCodes = new Set(['LOADING', 'MASTERDOWN', 'CLUSTERDOWN', 'READONLY', 'OOM', 'BUSY', 'NOREPLICAS', 'MISCONF'])
