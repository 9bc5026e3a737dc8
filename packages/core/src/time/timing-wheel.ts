import { InvalidOptionError } from '../errors/firebreak-error.ts'
import type { Clock } from './clock.ts'

/** The precision and size of a timing wheel, and the callback for timers that are due. */
export interface TimingWheelOptions<Value> {
  readonly clock: Clock
  /** The length of a tick: timers may be late by this much. @default 10 */
  readonly tickMs?: number
  /** Maximum number of timers. @default 4194304 */
  readonly maxTimers?: number
  /** Receives the value of each timer that is due, in order of ticks. */
  readonly onDue: (value: Value) => void
}

const slotBits = 6
const slotsPerWheel = 1 << slotBits
const slotMask = slotsPerWheel - 1
const wheelCount = 6
/** Timers beyond this many ticks wait in the last slot and are reinserted from there. */
const maxTicksAhead = 2 ** (slotBits * wheelCount) - 1
const none = -1

/**
 * A hierarchical timing wheel: any number of timers, each set and fired in constant time; call `advance` as often as
 * ticks should be noticed.
 *
 * Time is divided into ticks. Wheel 0 has a slot for each of the next 64 ticks, wheel 1 one for each 64 ticks of the
 * next 4,096, and so on; six wheels of 64 slots reach 2^36 ticks, two years of milliseconds. A timer goes into the
 * lowest wheel that reaches its tick. When the hand reaches a slot of a higher wheel, that slot's timers are
 * *cascaded*: reinserted one wheel lower. So a timer is moved at most five times in its life.
 *
 *     tick  | wheel 5 | wheel 4 | wheel 3 | wheel 2 | wheel 1 | wheel 0 |      six bits each
 *
 * Timers are stored in a pool of typed arrays, as linked lists through indices, so a million of them are not objects
 * for the garbage collector; only the values are. A timer never fires early: its tick is rounded up. `advance` skips
 * empty stretches slot by slot in the lowest wheel that is not empty, so a clock that jumps an hour does not cost an
 * hour of ticks. Timers cannot be cancelled: the owner lets one fire and checks whether the value still matters.
 */
export class TimingWheel<Value> {
  readonly tickMs: number
  readonly maxTimers: number
  readonly #clock: Clock
  readonly #onDue: (value: Value) => void
  readonly #originMs: number
  #tick = 0
  #size = 0
  /** Number of timers in each wheel. */
  readonly #sizes = new Uint32Array(wheelCount)
  /** The first and the last timer of each slot of each wheel. */
  readonly #first = new Int32Array(wheelCount * slotsPerWheel).fill(none)
  readonly #last = new Int32Array(wheelCount * slotsPerWheel).fill(none)
  #next = new Int32Array(64)
  #due = new Float64Array(64)
  readonly #values: (Value | undefined)[] = []
  #freePlace = none

  constructor(options: TimingWheelOptions<Value>) {
    const { clock, onDue, tickMs = 10, maxTimers = 2 ** 22 } = options
    if (!(tickMs > 0)) throw new InvalidOptionError('tickMs', tickMs, 'above 0')
    if (!(maxTimers >= 1 && maxTimers <= 2 ** 24)) {
      throw new InvalidOptionError('maxTimers', maxTimers, 'from 1 to some 16 million')
    }
    this.tickMs = tickMs
    this.maxTimers = maxTimers
    this.#clock = clock
    this.#onDue = onDue
    this.#originMs = clock.now()
  }

  /** Number of timers set. */
  get size(): number {
    return this.#size
  }

  /** Sets a timer; false if there are `maxTimers` already. */
  set(delayMs: number, value: Value): boolean {
    if (this.#size >= this.maxTimers) return false
    const place = this.#takePlace()
    // By the clock, not by the hand: the hand may lag behind while nobody calls `advance`.
    const dueTick = Math.ceil((this.#clock.now() + Math.max(0, delayMs) - this.#originMs) / this.tickMs)
    this.#due[place] = Math.max(this.#tick + 1, dueTick)
    this.#values[place] = value
    this.#size++
    this.#put(place)
    return true
  }

  /** Fires everything that is due by the clock; returns how many fired. */
  advance(): number {
    const target = Math.floor((this.#clock.now() - this.#originMs) / this.tickMs)
    let fired = 0
    while (this.#tick < target) {
      if (this.#size === 0) {
        this.#tick = target
        break
      }
      this.#tick = this.#nextTick(target)
      this.#cascade()
      fired += this.#fire()
    }
    return fired
  }

  /** The next tick, at most `limit`, at which a slot of the lowest wheel in use is reached. */
  #nextTick(limit: number): number {
    let wheel = 0
    while (wheel < wheelCount - 1 && this.#sizes[wheel] === 0) wheel++
    const span = 2 ** (slotBits * wheel)
    let tick = (Math.floor(this.#tick / span) + 1) * span
    // Within the wheel's own turn, empty slots are skipped; its end must be visited, to cascade.
    for (let slot = slotOf(tick, wheel); slot !== 0 && tick < limit; slot = slotOf(tick, wheel)) {
      if (this.#first[wheel * slotsPerWheel + slot] !== none) break
      tick += span
    }
    return Math.min(tick, limit)
  }

  /** When the hand reaches a slot of a higher wheel, moves that slot's timers to lower ones. */
  #cascade(): void {
    for (let wheel = 1; wheel < wheelCount && this.#tick % 2 ** (slotBits * wheel) === 0; wheel++) {
      const list = wheel * slotsPerWheel + slotOf(this.#tick, wheel)
      let place = this.#first[list]!
      this.#first[list] = none
      while (place !== none) {
        const next = this.#next[place]!
        this.#sizes[wheel]!--
        this.#put(place)
        place = next
      }
    }
  }

  /** Fires the hand's slot of wheel 0; timers set meanwhile are due later and go to another slot. */
  #fire(): number {
    const list = this.#tick & slotMask
    let fired = 0
    for (let place = this.#first[list]!; place !== none; place = this.#first[list]!) {
      const value = this.#values[place]!
      this.#first[list] = this.#next[place]!
      this.#values[place] = undefined
      this.#next[place] = this.#freePlace
      this.#freePlace = place
      this.#sizes[0]!--
      this.#size--
      fired++
      this.#onDue(value)
    }
    return fired
  }

  #put(place: number): void {
    const due = Math.min(this.#due[place]!, this.#tick + maxTicksAhead)
    const ahead = due - this.#tick
    let wheel = 0
    while (wheel < wheelCount - 1 && ahead >= 2 ** (slotBits * (wheel + 1))) wheel++
    const list = wheel * slotsPerWheel + slotOf(due, wheel)
    if (this.#first[list] === none) this.#first[list] = place
    else this.#next[this.#last[list]!] = place
    this.#last[list] = place
    this.#next[place] = none
    this.#sizes[wheel]!++
  }

  #takePlace(): number {
    const place = this.#freePlace
    if (place !== none) {
      this.#freePlace = this.#next[place]!
      return place
    }
    // All places are taken: those before the new one.
    if (this.#size === this.#next.length) this.#growPool()
    return this.#values.length
  }

  #growPool(): void {
    const next = new Int32Array(this.#next.length * 2)
    next.set(this.#next)
    this.#next = next
    const due = new Float64Array(next.length)
    due.set(this.#due)
    this.#due = due
  }
}

function slotOf(tick: number, wheel: number): number {
  return Math.floor(tick / 2 ** (slotBits * wheel)) & slotMask
}
