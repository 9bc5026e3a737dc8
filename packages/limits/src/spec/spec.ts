/** At most `limit` in each window: windows of the epoch, or one that starts with a key's first hit. */
export interface FixedWindowSpec {
  readonly kind: 'fixedWindow'
  readonly limit: number
  readonly windowMs: number
  readonly anchor: 'epoch' | 'firstHit'
}

/** At most `limit` in the last `windowMs`, counted in buckets of windowMs / buckets. */
export interface SlidingWindowSpec {
  readonly kind: 'slidingWindow'
  readonly limit: number
  readonly windowMs: number
  readonly buckets: number
  readonly mode: 'strict' | 'classic'
}

/** The running window's count plus the one before it, weighted by how much of it the last `windowMs` still covers. */
export interface SlidingCounterSpec {
  readonly kind: 'slidingCounter'
  readonly limit: number
  readonly windowMs: number
}

/** Exactly at most `limit` in the last `windowMs`; remembers every admitted call. */
export interface SlidingLogSpec {
  readonly kind: 'slidingLog'
  readonly limit: number
  readonly windowMs: number
}

/** Tokens up to `capacity`, `refill` of them every `perMs`, full at first. */
export interface TokenBucketSpec {
  readonly kind: 'tokenBucket'
  readonly capacity: number
  readonly refill: number
  readonly perMs: number
}

/** A bucket that holds `capacity` and loses `leak` every `perMs`, empty at first; a call that would overflow it is denied. */
export interface LeakyBucketSpec {
  readonly kind: 'leakyBucket'
  readonly capacity: number
  readonly leak: number
  readonly perMs: number
}

/** One unit leaves every `intervalMs`, at most `queue` wait: an answer says how long to hold the call back. */
export interface LeakyQueueSpec {
  readonly kind: 'leakyQueue'
  readonly intervalMs: number
  readonly queue: number
}

/** Generic cell rate: `rate` every `perMs`, evenly spaced, with bursts of up to `capacity`. */
export interface GcraSpec {
  readonly kind: 'gcra'
  readonly capacity: number
  readonly rate: number
  readonly perMs: number
}

/** At most `limit` in each hour, day, week (from Monday) or month of a time zone, daylight saving included. */
export interface CalendarWindowSpec {
  readonly kind: 'calendarWindow'
  readonly limit: number
  readonly unit: CalendarUnit
  readonly timeZone: string
}

/** At most `limit` units held at once; a hold that is not returned ends after `leaseMs`. */
export interface ConcurrencySpec {
  readonly kind: 'concurrency'
  readonly limit: number
  readonly leaseMs: number
}

/** A part of the calendar. */
export type CalendarUnit = 'hour' | 'day' | 'week' | 'month'

/** What is limited and how; created and validated by the functions of the same names. */
export type LimitSpec =
  | FixedWindowSpec
  | SlidingWindowSpec
  | SlidingCounterSpec
  | SlidingLogSpec
  | TokenBucketSpec
  | LeakyBucketSpec
  | LeakyQueueSpec
  | GcraSpec
  | CalendarWindowSpec
  | ConcurrencySpec

/** The specs that are a draining debt under different names. */
export type DrainSpec = TokenBucketSpec | LeakyBucketSpec | LeakyQueueSpec | GcraSpec
