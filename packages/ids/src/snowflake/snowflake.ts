import { type Clock, InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { IdsError } from '../errors.ts'
import { DecimalCounter } from './decimal-counter.ts'
import { checkCount, checkWorkerId, defaultEpochMs, idsPerMillisecond, maxElapsedMs } from './layout.ts'

/** The time up to which ids may be issued: a mark that was stored before the first id below it. */
export interface TimeMark {
  /** No id carries a later time. */
  readonly untilMs: number
  /** Stores a later mark, so that `untilMs` reaches `nowMs`, or throws. Called in the middle of `next`. */
  extend(nowMs: number): void
}

/** Options of a snowflake generator. */
export interface SnowflakeOptions {
  /** 0 to 1023; no two generators that run at once may share it. */
  readonly workerId: number
  /** Milliseconds since 1970 at which ids start. @default 1288834974657 */
  readonly epochMs?: number
  /** A step back of the clock up to this is waited out; a longer one is an error at once. @default 5 */
  readonly maxBackwardMs?: number
  /** The stored mark. @default none: a crash together with a step back may then repeat ids */
  readonly mark?: TimeMark
  /** Ids are of later times than this. @default none */
  readonly afterMs?: number
  /** The clock used in ids. @default the runtime's wall clock */
  readonly clock?: Clock
  /** @default the system's */
  readonly runtime?: Runtime
}

const sequenceStarts = 100
/** A clock that does not advance for this long while ids are requested is broken. */
const stallMs = 50
/** Which half of a 64-bit number comes first in memory. */
const lowWord = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 0 : 1
const sleepCell = new Int32Array(new SharedArrayBuffer(4))

/**
 * Issues ids of one worker: unique, and increasing in the order of calls.
 *
 * Each new millisecond starts its sequence at random 0–99, so that ids of a quiet service are not all even or all
 * multiples of something, which would load one shard of a table cut by `id % n`. When a millisecond's 4,096 numbers are
 * used up, `next` busy-waits for the following one: less than a millisecond, and bounded by the steady clock in case
 * the wall clock stands still.
 *
 * Time is only ever compared with the time of the last id. A clock that is behind it by up to `maxBackwardMs` is waited
 * for; behind by more, `next` throws `FB_IDS_CLOCK_BACKWARD` at once, on every call, until the clock is past that time
 * again: nothing needs to be restarted.
 */
export class Snowflake {
  readonly epochMs: number
  readonly workerId: number
  readonly #maxBackwardMs: number
  readonly #mark: TimeMark | undefined
  readonly #clock: Clock
  readonly #steady: Clock
  readonly #random: () => number
  readonly #digits = new DecimalCounter()
  readonly #words = new Uint32Array(2)
  readonly #wide = new BigUint64Array(this.#words.buffer)
  #lastMs: number
  #sequence = idsPerMillisecond
  /** The sequence number that `#digits` represents; -1 if it has to be set. */
  #digitsAt = -1

  constructor(options: SnowflakeOptions) {
    this.workerId = checkWorkerId(options.workerId)
    this.epochMs = options.epochMs ?? defaultEpochMs
    const { runtime = systemRuntime } = options
    this.#clock = options.clock ?? runtime.wallClock
    this.#steady = runtime.clock
    this.#random = runtime.random
    this.#maxBackwardMs = options.maxBackwardMs ?? 5
    this.#mark = options.mark
    if (!Number.isInteger(this.epochMs) || this.epochMs < 0 || this.epochMs > this.#clock.now()) {
      throw new InvalidOptionError('epochMs', options.epochMs, 'whole milliseconds since 1970, not in the future')
    }
    if (!(this.#maxBackwardMs >= 0 && this.#maxBackwardMs <= 1000)) {
      throw new InvalidOptionError('maxBackwardMs', options.maxBackwardMs, 'from 0 to 1000')
    }
    this.#lastMs = Math.max(options.afterMs ?? 0, this.epochMs)
  }

  /** The time of the last id, in milliseconds since 1970. */
  get lastMs(): number {
    return this.#lastMs
  }

  /** The next id as decimal text. */
  next(): string {
    const sequence = this.#take()
    if (this.#digitsAt !== sequence) this.#digits.reset(this.#compose(sequence))
    this.#digitsAt = sequence + 1
    return this.#digits.next()
  }

  /** The next id as a number that loses no digit. */
  nextBigInt(): bigint {
    return this.#compose(this.#take())
  }

  /** The next `count` ids, made synchronously: a million takes a quarter of a second. */
  nextMany(count: number): string[] {
    const ids = new Array<string>(checkCount(count))
    for (let index = 0; index < count; index++) ids[index] = this.next()
    return ids
  }

  /** Throws what `next` would throw for the clock's state, without taking an id. */
  check(): void {
    const backMs = this.#lastMs - this.#nowMs()
    if (backMs > this.#maxBackwardMs) throw this.#backward(backMs)
  }

  /** The sequence number of the next id, whose time is `#lastMs`. */
  #take(): number {
    const nowMs = this.#nowMs()
    if (nowMs === this.#lastMs) {
      if (this.#sequence < idsPerMillisecond) return this.#sequence++
      return this.#enter(this.#waitFor(nowMs + 1))
    }
    if (nowMs > this.#lastMs) return this.#enter(nowMs)
    const backMs = this.#lastMs - nowMs
    if (backMs > this.#maxBackwardMs) throw this.#backward(backMs)
    // Slightly back: this millisecond's numbers are not used up, but its time must come again first.
    const caughtUpMs = this.#waitFor(this.#lastMs)
    if (caughtUpMs === this.#lastMs && this.#sequence < idsPerMillisecond) return this.#sequence++
    return this.#enter(caughtUpMs > this.#lastMs ? caughtUpMs : this.#waitFor(this.#lastMs + 1))
  }

  /** Begins a new millisecond and takes its first number. */
  #enter(nowMs: number): number {
    if (nowMs - this.epochMs > maxElapsedMs) {
      const sentence = `the time ${nowMs} is past the 41 bits of epoch ${this.epochMs}; choose a later epochMs`
      throw new IdsError('FB_IDS_CLOCK_REFUSED', sentence, { nowMs, epochMs: this.epochMs })
    }
    if (this.#mark !== undefined && nowMs > this.#mark.untilMs) this.#mark.extend(nowMs)
    this.#lastMs = nowMs
    this.#digitsAt = -1
    const sequence = Math.floor(this.#random() * sequenceStarts)
    this.#sequence = sequence + 1
    return sequence
  }

  /** Blocks until the wall clock shows `wantedMs`, which is at most a few milliseconds away. */
  #waitFor(wantedMs: number): number {
    const startedAt = this.#steady.now()
    for (let looks = 1; ; looks++) {
      const nowMs = this.#nowMs()
      if (nowMs >= wantedMs) return nowMs
      if (Number.isNaN(nowMs)) throw this.#stalled(nowMs, this.#steady.now() - startedAt)
      const backMs = this.#lastMs - nowMs
      if (backMs > this.#maxBackwardMs) throw this.#backward(backMs)
      // Two or more milliseconds are slept, not busy-waited.
      if (wantedMs - nowMs >= 2) Atomics.wait(sleepCell, 0, 0, 1)
      if (looks % 256 === 0 || wantedMs - nowMs >= 2) {
        const waitedMs = this.#steady.now() - startedAt
        // Read again after that: a process that was not scheduled for a while must not blame the clock.
        const isStalled = waitedMs > stallMs + this.#maxBackwardMs && this.#nowMs() === nowMs
        if (isStalled) throw this.#stalled(nowMs, waitedMs)
      }
    }
  }

  #nowMs(): number {
    return Math.floor(this.#clock.now())
  }

  #compose(sequence: number): bigint {
    const elapsedMs = this.#lastMs - this.epochMs
    this.#words[lowWord] = ((elapsedMs % 1024) << 22) | (this.workerId << 12) | sequence
    this.#words[1 - lowWord] = Math.floor(elapsedMs / 1024)
    return this.#wide[0]!
  }

  #backward(backMs: number): IdsError {
    return new IdsError(
      'FB_IDS_CLOCK_BACKWARD',
      `the clock is ${backMs} ms behind the last id of worker ${this.workerId}; ids continue once it has caught up (maxBackwardMs is ${this.#maxBackwardMs})`,
      { backMs, workerId: this.workerId },
    )
  }

  #stalled(nowMs: number, waitedMs: number): IdsError {
    return new IdsError(
      'FB_IDS_CLOCK_STALLED',
      `the clock was stuck at ${nowMs} for ${Math.round(waitedMs)} ms while worker ${this.workerId} waited for the next millisecond`,
      { nowMs, workerId: this.workerId },
    )
  }
}
