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

/** The decimal that a number is written as, exactly. */
function decimal(value: number): Fraction {
  const [integer, places = ''] = String(value).split('.')
  return { top: BigInt(integer! + places), bottom: 10n ** BigInt(places.length) }
}

/**
 * An exact, slow and obvious limiter for one key: what is used at an instant is a fraction, worked out anew from what
 * was charged; a call is admitted exactly when used + cost ≤ limit.
 */
export interface Oracle {
  readonly limit: number
  /** What is used at an instant, were nothing to happen until then. */
  used(nowMs: number): Fraction
  charge(nowMs: number, cost: number): void
  refund(nowMs: number, units: number): void
  /** The clock was looked at; it may be behind what was charged. */
  look(nowMs: number): void
}

/** Whether the oracle admits a cost at an instant. */
export function admits(oracle: Oracle, nowMs: number, cost: number): boolean {
  return atMost(plus(oracle.used(nowMs), whole(cost)), whole(oracle.limit))
}

/** The whole units that are free at an instant. */
export function free(oracle: Oracle, nowMs: number): number {
  return Math.max(0, floorOf(minus(whole(oracle.limit), oracle.used(nowMs))))
}

/** True where nothing at all is used. */
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
      if (spec.anchor === 'firstHit') return firstHit(spec.limit, spec.windowMs)
      const indexOf = (nowMs: number) => Math.floor(nowMs / spec.windowMs)
      return aged(spec.limit, indexOf, 1)
    }
    case 'calendarWindow': {
      const calendar = new Calendar(spec.unit, spec.timeZone)
      // A window's start stands for its index: any other start is another window.
      const indexOf = (nowMs: number) => calendar.windowOf(nowMs).start
      return aged(spec.limit, indexOf, 1)
    }
    case 'slidingWindow': {
      const indexOf = (nowMs: number) => Number((BigInt(nowMs) * BigInt(spec.buckets)) / BigInt(spec.windowMs))
      return aged(spec.limit, indexOf, spec.mode === 'strict' ? spec.buckets + 1 : spec.buckets)
    }
    case 'slidingLog':
      return log(spec.limit, spec.windowMs, 'newest')
    case 'concurrency':
      return log(spec.limit, spec.leaseMs, 'oldest')
    case 'slidingCounter':
      return counter(spec.limit, spec.windowMs)
  }
}

function drain(capacity: number, rate: Fraction): Oracle {
  let at = 0
  let debt = whole(0)
  const used = (nowMs: number) => (nowMs < at ? debt : atLeastZero(minus(debt, times(rate, whole(nowMs - at)))))
  const set = (nowMs: number, value: Fraction) => {
    debt = atLeastZero(value)
    at = nowMs
  }
  return {
    limit: capacity,
    used,
    charge: (nowMs, cost) => set(nowMs, plus(used(nowMs), whole(cost))),
    refund: (nowMs, units) => set(nowMs, minus(used(nowMs), whole(units))),
    look: (nowMs) => {
      if (nowMs < at) at = nowMs
    },
  }
}

/** Units with the index of the period in which they were charged; one counts while it is among the last `span`. */
function aged(limit: number, indexOf: (nowMs: number) => number, span: number): Oracle {
  let units: number[] = []
  let newest = 0
  const isCalendar = (index: number) => span === 1 && index > 1e9
  const live = (nowMs: number) => {
    const index = indexOf(nowMs)
    return units.filter((unit) => (isCalendar(index) ? unit === index : unit > index - span))
  }
  return {
    limit,
    used: (nowMs) => whole(live(nowMs).length),
    charge: (nowMs, cost) => {
      newest = indexOf(nowMs)
      units = live(nowMs)
      for (let unit = 0; unit < cost; unit++) units.push(newest)
    },
    refund: (nowMs, count) => {
      newest = indexOf(nowMs)
      units = live(nowMs)
      units.sort((a, b) => a - b)
      units.length = Math.max(0, units.length - count)
    },
    look: (nowMs) => {
      const index = indexOf(nowMs)
      if (index >= newest) return
      units = units.map((unit) => unit - newest + index)
      newest = index
    },
  }
}

function firstHit(limit: number, windowMs: number): Oracle {
  let start = 0
  let count = 0
  const used = (nowMs: number) => (nowMs < start + windowMs ? count : 0)
  return {
    limit,
    used: (nowMs) => whole(used(nowMs)),
    charge: (nowMs, cost) => {
      count = used(nowMs) + cost
      if (count === cost) start = nowMs
    },
    refund: (nowMs, units) => {
      count = Math.max(0, used(nowMs) - units)
    },
    look: (nowMs) => {
      if (nowMs < start) start = nowMs
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
      for (let unit = 0; unit < cost; unit++) times.push(nowMs)
    },
    refund: (nowMs, units) => {
      times = live(nowMs)
      if (refunds === 'newest') times.length = Math.max(0, times.length - units)
      else times.splice(0, units)
    },
    look: (nowMs) => {
      times = live(nowMs).map((time) => Math.min(time, nowMs))
    },
  }
}

function counter(limit: number, windowMs: number): Oracle {
  let index = 0
  let before = 0
  let current = 0
  const at = (nowMs: number): [number, number] => {
    const passed = Math.floor(nowMs / windowMs) - index
    if (passed <= 0) return [before, current]
    return passed === 1 ? [current, 0] : [0, 0]
  }
  const settle = (nowMs: number) => {
    ;[before, current] = at(nowMs)
    index = Math.floor(nowMs / windowMs)
  }
  return {
    limit,
    used: (nowMs) => {
      const [old, young] = at(nowMs)
      const covered: Fraction = { top: BigInt(windowMs - (nowMs % windowMs)), bottom: BigInt(windowMs) }
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
      if (Math.floor(nowMs / windowMs) < index) index = Math.floor(nowMs / windowMs)
    },
  }
}
