import { InvalidOptionError } from '../errors/firebreak-error.ts'
import type { Clock } from '../time/clock.ts'

/**
 * A hierarchical timing wheel: any number of timers, set, cancelled and fired in constant time each.
 *
 * Time is cut into ticks. Wheel 0 has a slot for each of the next 64 ticks, wheel 1 one for each 64 ticks of the next
 * 4,096, and so on; six wheels of 64 slots reach 2^36 ticks, two years of milliseconds. A timer goes into the lowest
 * wheel that reaches its tick. When the hand of a wheel comes to a slot of the wheel above, that slot's timers are
 * *cascaded*: put again, now one wheel lower. A timer is thus moved at most five times in its life.
 *
 *     tick  | wheel 5 | wheel 4 | wheel 3 | wheel 2 | wheel 1 | wheel 0 |      six bits each
 *
 * Timers live in a pool of typed arrays, as doubly linked lists through indices, so a million of them are no objects
 * for the garbage collector; only the values are. An id carries the use of its place, so that a late `cancel` of a
 * fired timer never hits another. A timer never fires early: its tick is rounded up. `advance` skips empty stretches
 * slot by slot of the lowest wheel that is not empty, so a clock that jumps an hour does not cost an hour of ticks.
 */
export interface TimingWheelOptions<Value> {
  readonly clock: Clock
  /** The length of a tick: timers are late by up to this. @default 10 */
  readonly tickMs?: number
  /** Timers at one time. @default 4194304 */
  readonly maxTimers?: number
  /** Gets the value of each timer that comes due, in the order of their ticks. */
  readonly onDue: (value: Value) => void
}

const slotBits = 6
const slotsPerWheel = 1 << slotBits
const slotMask = slotsPerWheel - 1
const wheelCount = 6
/** Timers beyond this many ticks wait in the last slot and are put again from there. */
const maxTicksAhead = 2 ** (slotBits * wheelCount) - 1
/** Places before the timers' own are the heads of the slots' lists. */
const headCount = wheelCount * slotsPerWheel
const placeBits = 24

/** Timers by a clock that is passed in; call `advance` as often as ticks should be noticed. */
export class TimingWheel<Value> {
  readonly tickMs: number
  readonly maxTimers: number
  readonly #clock: Clock
  readonly #onDue: (value: Value) => void
  readonly #originMs: number
  #tick = 0
  #size = 0
  /** Timers in each wheel. */
  readonly #sizes = new Uint32Array(wheelCount)
  #next = new Int32Array(headCount + 64)
  #previous = new Int32Array(headCount + 64)
  #due = new Float64Array(headCount + 64)
  #wheelOf = new Uint8Array(headCount + 64)
  /** How often a place was used: the high part of an id; odd while it holds a timer. */
  #uses = new Uint32Array(headCount + 64)
  readonly #values: (Value | undefined)[] = []
  #freePlace = -1
  #placesUsed = headCount

  constructor(options: TimingWheelOptions<Value>) {
    const { clock, onDue, tickMs = 10, maxTimers = 2 ** 22 } = options
    if (!(tickMs > 0)) throw new InvalidOptionError('tickMs', tickMs, 'above 0')
    if (!(maxTimers >= 1 && maxTimers <= 2 ** placeBits - headCount)) {
      throw new InvalidOptionError('maxTimers', maxTimers, 'from 1 to some 16 million')
    }
    this.tickMs = tickMs
    this.maxTimers = maxTimers
    this.#clock = clock
    this.#onDue = onDue
    this.#originMs = clock.now()
    for (let head = 0; head < headCount; head++) this.#next[head] = this.#previous[head] = head
  }

  /** Timers that are set. */
  get size(): number {
    return this.#size
  }

  /** Sets a timer; gives its id, or -1 where `maxTimers` are set. */
  set(delayMs: number, value: Value): number {
    if (this.#size >= this.maxTimers) return -1
    const place = this.#takePlace()
    // By the clock, not by the hand: the hand may lag behind while nobody calls `advance`.
    const dueTick = Math.ceil((this.#clock.now() + Math.max(0, delayMs) - this.#originMs) / this.tickMs)
    this.#due[place] = Math.max(this.#tick + 1, dueTick)
    this.#values[place - headCount] = value
    this.#size++
    this.#put(place)
    return this.#uses[place]! * 2 ** placeBits + place
  }

  /** Takes a timer back; false where it has fired or was cancelled. */
  cancel(id: number): boolean {
    const place = id % 2 ** placeBits
    if (id < 0 || this.#uses[place] !== Math.floor(id / 2 ** placeBits)) return false
    this.#unlink(place)
    this.#freeAt(place)
    return true
  }

  /** Fires all that has come due by the clock; gives how many. */
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
      fired += this.#fireSlot(this.#tick & slotMask)
    }
    return fired
  }

  /** In how many milliseconds `advance` may next have something to do; undefined while no timer is set. Never too late. */
  nextDueMs(): number | undefined {
    if (this.#size === 0) return undefined
    const tick = this.#nextTick(this.#tick + maxTicksAhead)
    return Math.max(0, this.#originMs + tick * this.tickMs - this.#clock.now())
  }

  /** The next tick at which a slot of the lowest wheel in use is reached, at most `limit`. */
  #nextTick(limit: number): number {
    let wheel = 0
    while (wheel < wheelCount - 1 && this.#sizes[wheel] === 0) wheel++
    const span = 2 ** (slotBits * wheel)
    let tick = (Math.floor(this.#tick / span) + 1) * span
    // Within the wheel's own turn, empty slots are passed over; its end must be visited, to cascade.
    for (let slot = this.#slotOf(tick, wheel); slot !== 0 && tick < limit; slot = this.#slotOf(tick, wheel)) {
      const head = wheel * slotsPerWheel + slot
      if (this.#next[head] !== head) break
      tick += span
    }
    return Math.min(tick, limit)
  }

  #slotOf(tick: number, wheel: number): number {
    return Math.floor(tick / 2 ** (slotBits * wheel)) & slotMask
  }

  /** Where the hand begins a slot of a higher wheel, puts that slot's timers into lower ones. */
  #cascade(): void {
    for (let wheel = 1; wheel < wheelCount && this.#tick % 2 ** (slotBits * wheel) === 0; wheel++) {
      const head = wheel * slotsPerWheel + this.#slotOf(this.#tick, wheel)
      let place = this.#next[head]!
      this.#next[head] = this.#previous[head] = head
      while (place !== head) {
        const next = this.#next[place]!
        this.#sizes[wheel]!--
        this.#put(place)
        place = next
      }
    }
  }

  #fireSlot(slot: number): number {
    let fired = 0
    // Read anew each time: what is due may cancel what is due after it.
    for (let place = this.#next[slot]!; place !== slot; place = this.#next[slot]!) {
      this.#unlink(place)
      const value = this.#values[place - headCount]!
      this.#freeAt(place)
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
    const head = wheel * slotsPerWheel + this.#slotOf(due, wheel)
    const last = this.#previous[head]!
    this.#next[last] = place
    this.#previous[place] = last
    this.#next[place] = head
    this.#previous[head] = place
    this.#wheelOf[place] = wheel
    this.#sizes[wheel]!++
  }

  #unlink(place: number): void {
    const next = this.#next[place]!
    const previous = this.#previous[place]!
    this.#next[previous] = next
    this.#previous[next] = previous
    this.#sizes[this.#wheelOf[place]!]!--
  }

  #freeAt(place: number): void {
    this.#values[place - headCount] = undefined
    this.#uses[place]!++
    this.#next[place] = this.#freePlace
    this.#freePlace = place
    this.#size--
  }

  #takePlace(): number {
    let place = this.#freePlace
    if (place >= 0) this.#freePlace = this.#next[place]!
    else {
      place = this.#placesUsed++
      if (place >= this.#next.length) this.#growPool()
    }
    this.#uses[place]!++
    return place
  }

  #growPool(): void {
    const length = this.#next.length * 2
    this.#next = grown(this.#next, new Int32Array(length))
    this.#previous = grown(this.#previous, new Int32Array(length))
    this.#due = grown(this.#due, new Float64Array(length))
    this.#wheelOf = grown(this.#wheelOf, new Uint8Array(length))
    this.#uses = grown(this.#uses, new Uint32Array(length))
  }
}

function grown<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from)
  return to
}
