import { describeValue, FirebreakError, InvalidOptionError } from '@firebreak/core'
import type {
  CalendarUnit,
  CalendarWindowSpec,
  ConcurrencySpec,
  FixedWindowSpec,
  GcraSpec,
  LeakyBucketSpec,
  LeakyQueueSpec,
  LimitSpec,
  SlidingCounterSpec,
  SlidingLogSpec,
  SlidingWindowSpec,
  TokenBucketSpec,
} from './spec.ts'
import { largestExact, requireWhole, wholeRatio } from './whole-ratio.ts'

/** `limit` in each window. Cheapest; up to twice the limit can pass around a window's edge. */
export function fixedWindow(options: {
  limit: number
  windowMs: number
  /** @default 'epoch' */
  anchor?: 'epoch' | 'firstHit'
}): FixedWindowSpec {
  const { limit, windowMs, anchor = 'epoch' } = options
  requireWhole('limit', limit, 1)
  requireWhole('windowMs', windowMs, 1)
  requireOneOf('anchor', anchor, ['epoch', 'firstHit'])
  return { kind: 'fixedWindow', limit, windowMs, anchor }
}

/** `limit` in the last `windowMs`, in buckets. */
export function slidingWindow(options: {
  limit: number
  windowMs: number
  /** More buckets forget sooner and cost more. @default 10 */
  buckets?: number
  /**
   * `strict` keeps one bucket more, so that no window of `windowMs` ever has more than `limit`; `classic` forgets up to
   * a bucket too early.
   * @default 'strict'
   */
  mode?: 'strict' | 'classic'
}): SlidingWindowSpec {
  const { limit, windowMs, buckets = 10, mode = 'strict' } = options
  requireWhole('limit', limit, 1)
  requireWhole('windowMs', windowMs, 1, 2 ** 40)
  requireWhole('buckets', buckets, 1, Math.min(1000, windowMs))
  requireOneOf('mode', mode, ['strict', 'classic'])
  return { kind: 'slidingWindow', limit, windowMs, buckets, mode }
}

/** Two weighted windows: as small as a fixed window, and nearly as smooth as a log if traffic is even. */
export function slidingCounter(options: { limit: number; windowMs: number }): SlidingCounterSpec {
  const { limit, windowMs } = options
  requireWhole('limit', limit, 1)
  requireWhole('windowMs', windowMs, 1)
  requireExact('limit × windowMs', limit * windowMs)
  return { kind: 'slidingCounter', limit, windowMs }
}

/** Exactly `limit` in any window, at the price of one remembered time per admitted call. */
export function slidingLog(options: { limit: number; windowMs: number }): SlidingLogSpec {
  const { limit, windowMs } = options
  requireWhole('limit', limit, 1)
  requireWhole('windowMs', windowMs, 1)
  return { kind: 'slidingLog', limit, windowMs }
}

/** Bursts of `capacity`, `refill` every `perMs` in the long run. */
export function tokenBucket(options: { capacity: number; refill: number; perMs: number }): TokenBucketSpec {
  const { capacity, refill, perMs } = options
  requireRate(capacity, 'refill', refill, perMs)
  return { kind: 'tokenBucket', capacity, refill, perMs }
}

/** The same as a meter: filled by calls, emptied by time. */
export function leakyBucket(options: { capacity: number; leak: number; perMs: number }): LeakyBucketSpec {
  const { capacity, leak, perMs } = options
  requireRate(capacity, 'leak', leak, perMs)
  return { kind: 'leakyBucket', capacity, leak, perMs }
}

/** One every `intervalMs`, with `queue` places to wait in. */
export function leakyQueue(options: { intervalMs: number; queue: number }): LeakyQueueSpec {
  const { intervalMs, queue } = options
  requireWhole('queue', queue, 0)
  requireRate(queue + 1, 'intervalMs', 1, intervalMs)
  return { kind: 'leakyQueue', intervalMs, queue }
}

/** `rate` every `perMs`, bursts of `capacity`. */
export function gcra(options: { capacity: number; rate: number; perMs: number }): GcraSpec {
  const { capacity, rate, perMs } = options
  requireRate(capacity, 'rate', rate, perMs)
  return { kind: 'gcra', capacity, rate, perMs }
}

/** `limit` in each hour, day, week or month of a time zone's calendar. */
export function calendarWindow(options: {
  limit: number
  unit: CalendarUnit
  /** An IANA name, such as `Asia/Shanghai`. @default 'UTC' */
  timeZone?: string
}): CalendarWindowSpec {
  const { limit, unit, timeZone = 'UTC' } = options
  requireWhole('limit', limit, 1)
  requireOneOf('unit', unit, ['hour', 'day', 'week', 'month'])
  try {
    new Intl.DateTimeFormat('en-US', { timeZone })
  } catch (cause) {
    throw new FirebreakError(
      'FB_TIME_ZONE_UNKNOWN',
      `option timeZone is ${describeValue(timeZone)}; it must be an IANA name such as "Europe/Berlin"`,
      { cause },
    )
  }
  return { kind: 'calendarWindow', limit, unit, timeZone }
}

/** `limit` at once; return units with `refund`. */
export function concurrency(options: { limit: number; leaseMs: number }): ConcurrencySpec {
  const { limit, leaseMs } = options
  requireWhole('limit', limit, 1, 1_000_000)
  requireWhole('leaseMs', leaseMs, 1)
  return { kind: 'concurrency', limit, leaseMs }
}

/** The highest cost that can ever be admitted. */
export function capacityOf(spec: LimitSpec): number {
  if (spec.kind === 'leakyQueue') return spec.queue + 1
  return 'capacity' in spec ? spec.capacity : spec.limit
}

/** A short, readable name of a spec that is equal for equal specs; part of the keys on Redis. */
export function specId(spec: LimitSpec): string {
  const { kind, ...parameters } = spec
  return `${kind}-${Object.values(parameters).join('-')}`
}

/** How long a spec remembers a call at most, in milliseconds; for the calendar, its longest unit. */
export function spanMs(spec: LimitSpec): number {
  switch (spec.kind) {
    case 'calendarWindow':
      return 32 * 86_400_000
    case 'concurrency':
      return spec.leaseMs
    case 'slidingCounter':
    case 'slidingWindow':
      return 2 * spec.windowMs
    case 'fixedWindow':
    case 'slidingLog':
      return spec.windowMs
    case 'leakyQueue':
      return Math.ceil((spec.queue + 1) * spec.intervalMs)
    case 'tokenBucket':
      return Math.ceil((spec.capacity / spec.refill) * spec.perMs)
    case 'leakyBucket':
      return Math.ceil((spec.capacity / spec.leak) * spec.perMs)
    case 'gcra':
      return Math.ceil((spec.capacity / spec.rate) * spec.perMs)
  }
}

function requireRate(capacity: number, option: string, amount: number, perMs: number): void {
  requireWhole('capacity', capacity, 1)
  const ratio = wholeRatio(option, amount, perMs)
  requireExact(`capacity × perMs (of ${ratio.amount} per ${ratio.perMs} ms)`, capacity * ratio.perMs)
}

function requireExact(what: string, value: number): void {
  if (value > largestExact) throw new InvalidOptionError(what, value, `at most 2^52, to be exact`)
}

function requireOneOf(option: string, value: string, allowed: readonly string[]): void {
  if (!allowed.includes(value)) throw new InvalidOptionError(option, value, `one of ${allowed.join(', ')}`)
}
