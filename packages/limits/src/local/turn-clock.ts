import { type Clock, type Runtime, steadyClock, systemRuntime } from '@firebreak/core'
import type { LimitSpec } from '../spec/spec.ts'

/** Reads that must return the same millisecond before the next ones are skipped. */
const sameReads = 4
/** Calls that one read may serve at most. */
const callsPerRead = 32

/**
 * The steady clock in whole milliseconds, read about once per burst: successive calls within one turn of the event loop
 * share a reading, as in nginx and Redis.
 *
 * Reading the time is the most expensive part of an in-process call (half of it on an idle machine, most of it on a
 * busy one). A single call always reads. After four reads of the same millisecond the next calls of the same turn, 32
 * at most, are given that reading; when the turn's synchronous code ends, the next call reads again. So the price is
 * paid only by code that blocks its own thread in the middle of a burst: its next calls see the time before. Where that
 * matters, pass `clock: steadyClock`. A clock that was replaced, by fake timers for instance, is read every time.
 */
export class TurnClock implements Clock {
  readonly #read: () => number
  readonly #isReplaced: () => boolean
  #now = 0
  #streak = 0
  #left = 0
  #isArmed = false

  constructor(read: () => number = readSteady, isReplaced: () => boolean = () => performance.now !== systemNow) {
    this.#read = read
    this.#isReplaced = isReplaced
  }

  now(): number {
    if (this.#left > 0) {
      this.#left--
      return this.#now
    }
    return this.#readAgain()
  }

  #readAgain(): number {
    const now = Math.floor(this.#read())
    if (this.#isReplaced()) return now
    this.#streak = now === this.#now ? this.#streak + 1 : 0
    this.#now = now
    if (this.#streak >= sameReads) {
      this.#left = callsPerRead
      if (!this.#isArmed) {
        this.#isArmed = true
        // Runs when the synchronous code of this turn has ended.
        void settled.then(this.#forget)
      }
    }
    return now
  }

  readonly #forget = (): void => {
    this.#left = 0
    this.#isArmed = false
  }
}

const systemNow = performance.now
const readSteady = () => steadyClock.now()
const settled = Promise.resolve()

/** The process' turn clock; shared, so that one reading serves all limiters. */
export const turnClock: Clock = new TurnClock()

/**
 * The clock of a limit: the steady one, so that setting the machine's time does not affect it; calendar windows use the
 * wall clock.
 */
export function clockFor(runtime: Runtime, kind: LimitSpec['kind']): Clock {
  if (kind === 'calendarWindow') return runtime.wallClock
  return runtime.clock === systemRuntime.clock ? turnClock : runtime.clock
}
