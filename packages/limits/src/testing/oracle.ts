import { Calendar } from '../calendar/calendar.ts'
import type { LimitSpec } from '../spec/spec.ts'

/** An exact fraction. */
export interface Fraction {
  readonly top: bigint
  readonly bottom: bigint
}

const whole = (value: number | bigint): Fraction => ({ top: BigInt(value), bottom: 1n })
const plus = (a: Fraction, b: Fraction): Fraction => ({
  top: a.top * b.bottom + b.top * a.bottom,
  bottom: a.bottom * b.bottom,
})
const times = (a: Fraction, b: Fraction): Fraction => ({ top: a.top * b.top, bottom: a.bottom * b.bottom })
const minus = (a: Fraction, b: Fraction): Fraction => plus(a, times(whole(-1), b))
const over = (a: Fraction, b: Fraction): Fraction => ({ top: a.top * b.bottom, bottom: a.bottom * b.top })
const atLeastZero = (a: Fraction): Fraction => (a.top < 0n ? whole(0) : a)
const atMost = (a: Fraction, b: Fraction): boolean => a.top * b.bottom <= b.top * a.bottom
const floorOf = (a: Fraction): number => {
  const quotient = a.top / a.bottom
  return Number(a.top < 0n && quotient * a.bottom !== a.top ? quotient - 1n : quotient)
}

/** The exact decimal that a number is written as. */
function decimal(value: number): Fraction {
  const [integer, places = ''] = String(value).split('.')
  return { top: BigInt(integer! + places), bottom: 10n ** BigInt(places.length) }
}

/**
 * An exact, slow and obvious limiter for one key: usage at an instant is a fraction, recomputed from what was charged;
 * a call is admitted exactly if used + cost ≤ limit.
 */
export interface Oracle {
  readonly limit: number
  /** Usage at an instant, if nothing happens until then. */
  used(nowMs: number): Fraction
  charge(nowMs: number, cost: number): void
  refund(nowMs: number, units: number): void
  /** The clock was read; it may be behind what was charged. */
  look(nowMs: number): void
  /** For a draining debt: until when it stays constant after a clock stepped back. */
  standsUntil?(): number
}

/** Whether the oracle admits a cost at an instant. */
export function admits(oracle: Oracle, nowMs: number, cost: number): boolean {
  return atMost(plus(oracle.used(nowMs), whole(cost)), whole(oracle.limit))
}

/** The whole units that are free at an instant. */
export function free(oracle: Oracle, nowMs: number): number {
  return Math.max(0, floorOf(minus(whole(oracle.limit), oracle.used(nowMs))))
}

/** True if nothing is used. */
export function isUnused(oracle: Oracle, nowMs: number): boolean {
  return oracle.used(nowMs).top <= 0n
}

/** The oracle of a spec. */
export function oracleOf(spec: LimitSpec): Oracle {
  switch (spec.kind) {
    case 'tokenBucket':
      return drain(spec.capacity, over(decimal(spec.refill), decimal(spec.perMs)))
    case 'leakyBucket':
      return drain(spec.capacity, over(decimal(spec.leak), decimal(spec.perMs)))
    case 'gcra':
      return drain(spec.capacity, over(decimal(spec.rate), decimal(spec.perMs)))
    case 'leakyQueue':
      return drain(spec.queue + 1, over(whole(1), decimal(spec.intervalMs)))
    case 'fixedWindow': {
      const { windowMs, anchor } = spec
      const endOf = (nowMs: number) => (anchor === 'firstHit' ? nowMs : nowMs - (nowMs % windowMs)) + windowMs
      return windowed(spec.limit, endOf, () => windowMs)
    }
    case 'calendarWindow': {
      const calendar = new Calendar(spec.unit, spec.timeZone)
      const lengthAt = (nowMs: number) => calendar.windowOf(nowMs).end - calendar.windowOf(nowMs).start
      return windowed(spec.limit, (nowMs) => calendar.windowOf(nowMs).end, lengthAt)
    }
    case 'slidingWindow': {
      const indexOf = (nowMs: number) => Number((BigInt(nowMs) * BigInt(spec.buckets)) / BigInt(spec.windowMs))
      return bucketed(spec.limit, indexOf, spec.buckets, spec.mode === 'strict' ? spec.buckets + 1 : spec.buckets)
    }
    case 'slidingLog':
      return log(spec.limit, spec.windowMs, 'newest')
    case 'concurrency':
      return log(spec.limit, spec.leaseMs, 'oldest')
    case 'slidingCounter':
      return counter(spec.limit, spec.windowMs)
  }
}

/**
 * How far ahead of a clock that stepped back a state may stay: where it is by at most a span, so far that the next unit
 * comes within a span and a millisecond; else not at all. `waitMs` is how long the next unit takes from then on.
 */
function aheadMs(ahead: number, spanMs: Fraction, waitMs: Fraction): number {
  if (ahead <= 0) return ahead
  if (!atMost(whole(ahead), spanMs)) return 0
  return Math.min(ahead, 1 + floorOf(minus(spanMs, waitMs)))
}

function drain(capacity: number, rate: Fraction): Oracle {
  let at = 0
  let debt = whole(0)
  const used = (nowMs: number) => (nowMs < at ? debt : atLeastZero(minus(debt, times(rate, whole(nowMs - at)))))
  const set = (nowMs: number, value: Fraction) => {
    debt = atLeastZero(value)
    at = debt.top === 0n ? nowMs : Math.max(at, nowMs)
  }
  return {
    limit: capacity,
    used,
    standsUntil: () => at,
    charge: (nowMs, cost) => set(nowMs, plus(used(nowMs), whole(cost))),
    refund: (nowMs, units) => set(nowMs, minus(used(nowMs), whole(units))),
    look: (nowMs) => {
      if (nowMs >= at) return
      if (debt.top === 0n) {
        at = nowMs
        return
      }
      // Negative if units are free: then the state may be a whole span ahead.
      const waitMs = over(minus(plus(debt, whole(1)), whole(capacity)), rate)
      at = nowMs + aheadMs(at - nowMs, over(whole(capacity), rate), waitMs)
    },
  }
}

/** A count until an end, which is at most a window's length ahead. */
function windowed(limit: number, endOf: (nowMs: number) => number, lengthAt: (nowMs: number) => number): Oracle {
  let end = 0
  let count = 0
  const used = (nowMs: number) => (nowMs < end ? count : 0)
  return {
    limit,
    used: (nowMs) => whole(used(nowMs)),
    charge: (nowMs, cost) => {
      const counted = used(nowMs)
      if (counted === 0) end = endOf(nowMs)
      count = counted + cost
    },
    refund: (nowMs, units) => {
      count = Math.max(0, used(nowMs) - units)
    },
    look: (nowMs) => {
      const length = lengthAt(nowMs)
      end = nowMs + length + aheadMs(end - nowMs - length, whole(length), whole(length))
    },
  }
}

/** Units with the index of their bucket; one counts while it is among the last `span`. */
function bucketed(limit: number, indexOf: (nowMs: number) => number, buckets: number, span: number): Oracle {
  let units: number[] = []
  let newest = 0
  const indexAt = (nowMs: number) => Math.max(newest, indexOf(nowMs))
  const live = (nowMs: number) => units.filter((unit) => unit > indexAt(nowMs) - span)
  return {
    limit,
    used: (nowMs) => whole(live(nowMs).length),
    charge: (nowMs, cost) => {
      units = live(nowMs)
      newest = indexAt(nowMs)
      for (let unit = 0; unit < cost; unit++) units.push(newest)
    },
    refund: (nowMs, count) => {
      units = live(nowMs)
      newest = indexAt(nowMs)
      units.sort((a, b) => a - b)
      units.length = Math.max(0, units.length - count)
    },
    look: (nowMs) => {
      const index = indexOf(nowMs)
      const ahead = newest - index
      if (ahead <= 0) return
      newest = units.length === 0 || ahead > buckets ? index : Math.min(newest, index + buckets + 1 - span)
      units = units.map((unit) => Math.min(unit, newest))
    },
  }
}

function log(limit: number, windowMs: number, refunds: 'newest' | 'oldest'): Oracle {
  let times: number[] = []
  const live = (nowMs: number) => times.filter((time) => time > nowMs - windowMs)
  return {
    limit,
    used: (nowMs) => whole(live(nowMs).length),
    charge: (nowMs, cost) => {
      const at = Math.max(nowMs, times.at(-1) ?? 0)
      for (let unit = 0; unit < cost; unit++) times.push(at)
    },
    refund: (nowMs, units) => {
      times = live(nowMs)
      if (refunds === 'newest') times.length = Math.max(0, times.length - units)
      else times.splice(0, units)
    },
    look: (nowMs) => {
      const latest = nowMs + aheadMs((times.at(-1) ?? 0) - nowMs, whole(windowMs), whole(windowMs))
      times = live(nowMs).map((time) => Math.min(time, latest))
    },
  }
}

function counter(limit: number, windowMs: number): Oracle {
  let start = 0
  let before = 0
  let current = 0
  const at = (nowMs: number): [number, number, number] => {
    const windows = Math.max(0, Math.floor((nowMs - start) / windowMs))
    const [old, young] = windows === 0 ? [before, current] : windows === 1 ? [current, 0] : [0, 0]
    return old + young > 0 ? [start + windows * windowMs, old, young] : [nowMs - (nowMs % windowMs), 0, 0]
  }
  const settle = (nowMs: number) => {
    ;[start, before, current] = at(nowMs)
  }
  return {
    limit,
    used: (nowMs) => {
      const [from, old, young] = at(nowMs)
      const covered: Fraction = { top: BigInt(windowMs - Math.max(0, nowMs - from)), bottom: BigInt(windowMs) }
      return plus(times(whole(old), covered), whole(young))
    },
    charge: (nowMs, cost) => {
      settle(nowMs)
      current += cost
    },
    refund: (nowMs, units) => {
      settle(nowMs)
      before = Math.max(0, before - Math.max(0, units - current))
      current = Math.max(0, current - units)
    },
    look: (nowMs) => {
      if (nowMs < start) start = nowMs + aheadMs(start - nowMs, whole(windowMs), whole(windowMs))
    },
  }
}
