import { type Clock, InvalidOptionError, type TimerHandle, type Timers } from '@firebreak/core'
import type { Answer } from '../answer.ts'
import { LimitWaitError } from '../errors.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { CallLine, type WaitingCall } from './call-line.ts'
import { PacedCalls } from './paced-calls.ts'
import { delayAtTurn, leastMsAfterTurn } from './turn-estimate.ts'

/** Options of `wait`. */
export interface WaitOptions {
  /** Rejects at once if the turn would come later than this, and at the latest when it has passed. @default 10000 */
  readonly maxWaitMs?: number
  /** Leaves the line when aborted, with the signal's reason. */
  readonly signal?: AbortSignal
}

/** What a line needs from its limiter. */
export interface LineOptions {
  readonly spec: LimitSpec
  take(key: string, cost: number): Answer | Promise<Answer>
  peek(key: string): Answer | Promise<Answer>
  refund(key: string, cost: number): unknown
  /** True if the limiter answers without a promise. */
  readonly isSynchronous: boolean
  readonly clock: Clock
  readonly timers: Timers
  readonly maxWaiting: number
}

/** Longer timers fire at once. */
const longestTimerMs = 2 ** 31 - 1

/**
 * First come, first served, for each key: only the first in a queue asks the limit, and sleeps exactly as long as the
 * limit says. A call whose turn cannot come before its deadline, because of the limit or those ahead of it, is refused
 * at once. A call that gives up leaves at once.
 *
 * Time is measured on the process' steady clock; a limiter may run on another.
 */
export class WaitingLine {
  readonly #options: LineOptions
  readonly #lines = new Map<string, CallLine>()
  readonly #paced: PacedCalls
  #waiting = 0
  #givingBack: Promise<unknown> = Promise.resolve()

  constructor(options: LineOptions) {
    const { spec, clock, timers } = options
    this.#options = options
    this.#paced = new PacedCalls({ clock, timers, intervalMs: spec.kind === 'leakyQueue' ? spec.intervalMs : 0 })
  }

  /** Calls that are currently waiting, in line or for their delay. */
  get waiting(): number {
    return this.#waiting
  }

  wait(key: string, cost: number, { maxWaitMs = 10_000, signal }: WaitOptions): Promise<Answer> {
    if (typeof maxWaitMs !== 'number' || !(maxWaitMs >= 0))
      return Promise.reject(new InvalidOptionError('maxWaitMs', maxWaitMs, 'a number of milliseconds, 0 or more'))
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#waiting >= this.#options.maxWaiting) {
      const message = `${this.#waiting} calls are already waiting; raise maxWaiting or shed load`
      return Promise.reject(new LimitWaitError('FB_LIMIT_WAIT_FULL', message, key, null))
    }
    let line = this.#lines.get(key)
    if (line !== undefined) {
      const least = this.#leastMs(line, line.units - (line.head?.cost ?? 0) + cost)
      if (least > maxWaitMs) return Promise.reject(tooLong(key, least))
    } else {
      line = new CallLine()
      this.#lines.set(key, line)
    }
    return this.#join(key, line, cost, maxWaitMs, signal)
  }

  /** Units were returned: the first in the queue may be served sooner than expected. */
  poke(key: string): void {
    const line = this.#lines.get(key)
    if (line?.timer === undefined) return
    line.wake()
    this.#serve(key, line)
  }

  #join(
    key: string,
    line: CallLine,
    cost: number,
    maxWaitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    const { clock, timers } = this.#options
    this.#waiting++
    return new Promise<Answer>((resolve, reject) => {
      let expiry: TimerHandle | undefined
      const settled = () => {
        this.#waiting--
        expiry?.cancel()
        signal?.removeEventListener('abort', onAbort)
      }
      const waiter: WaitingCall = {
        cost,
        deadline: clock.now() + maxWaitMs,
        before: undefined,
        after: undefined,
        isInLine: false,
        giveUpPlace: undefined,
        resolve: (answer) => {
          settled()
          resolve(answer)
        },
        reject: (error) => {
          settled()
          reject(error)
        },
      }
      const onAbort = () => this.#leave(key, line, waiter, signal!.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      if (maxWaitMs <= longestTimerMs) {
        expiry = timers.setTimeout(() => {
          if (waiter.isInLine) this.#leave(key, line, waiter, tooLong(key, this.#leastMs(line, 0)))
        }, maxWaitMs)
      }
      line.push(waiter)
      if (line.head === waiter) this.#serve(key, line)
    })
  }

  /** Removes a waiter, wherever it is. */
  #leave(key: string, line: CallLine, waiter: WaitingCall, reason: unknown): void {
    const isHead = line.head === waiter
    const wasInLine = waiter.isInLine
    line.remove(waiter)
    waiter.reject(reason)
    if (!wasInLine) this.#giveUpPlace(key, waiter)
    else if (isHead && !line.isAsking) {
      // A call that asks for as much or more is not served sooner: then the sleep continues for it.
      if (line.head !== undefined && line.head.cost >= waiter.cost) return
      line.wake()
      this.#serve(key, line)
    }
  }

  /** Returns the place of an admitted call that will not leave. */
  #giveUpPlace(key: string, waiter: WaitingCall): void {
    const endsAt = waiter.giveUpPlace?.()
    if (endsAt === undefined) return
    const { peek, refund } = this.#options
    const giveBack = ({ resetMs }: Answer) => {
      if (this.#paced.isLast(endsAt, resetMs)) return refund(key, waiter.cost)
    }
    if (this.#options.isSynchronous) {
      giveBack(peek(key) as Answer)
      return
    }
    // One after another: each must see what the previous one returned.
    this.#givingBack = this.#givingBack.then(() => peek(key)).then(giveBack, () => {})
  }

  /** Queries the limit for the first in line until one has to sleep or nobody is left. */
  #serve(key: string, line: CallLine): void {
    while (line.head !== undefined && !line.isAsking && line.timer === undefined) {
      const waiter = line.head
      line.isAsking = true
      let answer: Answer | Promise<Answer>
      try {
        answer = this.#options.take(key, waiter.cost)
      } catch (error) {
        answer = Promise.reject(error)
      }
      if (answer instanceof Promise) {
        answer.then(
          (value) => {
            line.isAsking = false
            this.#conclude(key, line, waiter, value)
            this.#serve(key, line)
          },
          (error) => {
            line.isAsking = false
            if (waiter.isInLine) {
              line.remove(waiter)
              waiter.reject(error)
            }
            this.#serve(key, line)
          },
        )
        return
      }
      line.isAsking = false
      this.#conclude(key, line, waiter, answer)
    }
    if (line.head === undefined && !line.isAsking && this.#lines.get(key) === line) {
      line.wake()
      this.#lines.delete(key)
    }
  }

  /** Handles the limit's answer to the first in line. */
  #conclude(key: string, line: CallLine, waiter: WaitingCall, answer: Answer): void {
    const { clock, timers, refund } = this.#options
    if (!waiter.isInLine) {
      // It left while the limit was being queried.
      if (answer.allowed) refund(key, waiter.cost)
      return
    }
    const leftMs = waiter.deadline - clock.now()
    if (answer.allowed) {
      line.remove(waiter)
      line.isSwept = false
      if (answer.delayMs > leftMs) {
        refund(key, waiter.cost)
        waiter.reject(tooLong(key, answer.delayMs))
      } else if (answer.delayMs === 0) this.#hand(key, waiter, answer)
      // The next in line need not wait for this one to leave: each has its own delay.
      else waiter.giveUpPlace = this.#paced.add(key, waiter.cost, answer.delayMs, () => waiter.resolve(answer))
    } else if (answer.retryAfterMs === null) {
      line.remove(waiter)
      const message = `a cost of ${waiter.cost} can never be allowed by this limit`
      waiter.reject(new LimitWaitError('FB_LIMIT_WAIT_NEVER', message, key, null))
    } else if (answer.retryAfterMs + delayAtTurn(this.#options.spec) > leftMs) {
      line.remove(waiter)
      waiter.reject(tooLong(key, answer.retryAfterMs + delayAtTurn(this.#options.spec)))
    } else {
      const sleepMs = Math.max(1, answer.retryAfterMs)
      line.turnAt = clock.now() + sleepMs
      line.timer = timers.setTimeout(() => {
        line.wake()
        this.#serve(key, line)
      }, sleepMs)
      this.#sweep(key, line)
    }
  }

  /** Serves a waiter after the current code has ended: until then its caller can still leave. */
  #hand(key: string, waiter: WaitingCall, answer: Answer): void {
    let hasLeft = false
    waiter.giveUpPlace = () => {
      hasLeft = true
      this.#options.refund(key, waiter.cost)
      return undefined
    }
    queueMicrotask(() => {
      if (!hasLeft) waiter.resolve(answer)
    })
  }

  /** Refuses, once, those that arrived before the line had to wait and whose turn comes too late. */
  #sweep(key: string, line: CallLine): void {
    if (line.isSwept) return
    line.isSwept = true
    const now = this.#options.clock.now()
    let units = 0
    for (let waiter = line.head?.after; waiter !== undefined; ) {
      const next = waiter.after
      const least = this.#leastMs(line, units + waiter.cost)
      if (least > waiter.deadline - now) {
        line.remove(waiter)
        waiter.reject(tooLong(key, least))
      } else units += waiter.cost
      waiter = next
    }
  }

  /** How long, at least, `units` behind the first in line take; 0 while nothing is known. */
  #leastMs({ head, turnAt }: CallLine, units: number): number {
    if (head === undefined || turnAt === undefined) return 0
    const { spec, clock } = this.#options
    const untilTurn = Math.max(0, turnAt - clock.now()) + delayAtTurn(spec)
    return Math.ceil(untilTurn + (units > 0 ? leastMsAfterTurn(spec, head.cost, units) : 0))
  }
}

function tooLong(key: string, retryAfterMs: number): LimitWaitError {
  return new LimitWaitError(
    'FB_LIMIT_WAIT_TOO_LONG',
    `the next turn is in ${retryAfterMs} ms, later than maxWaitMs allows`,
    key,
    retryAfterMs,
  )
}
