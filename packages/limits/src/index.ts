export { type AllAnswer, type AllKeys, type AllLimiter, all } from './all.ts'
export type { Answer, AnswerSource, LimiterCounts } from './answer.ts'
export { Calendar, type TimeWindow } from './calendar/calendar.ts'
export {
  LimitAtomicError,
  LimitCostError,
  LimitUnavailableError,
  LimitWaitError,
  PolicyError,
  TooManyRequestsError,
} from './errors.ts'
export { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, type Problem } from './http/http-limit.ts'
export { ipKey } from './http/ip-key.ts'
export { LocalLimiter, type LocalLimiterOptions, localLimiter } from './local/local-limiter.ts'
export { TurnClock, turnClock } from './local/turn-clock.ts'
export { type CountedLimiter, limiterFamilies, limiterMetrics } from './metrics.ts'
export type { LeaseOptions } from './redis/leases.ts'
export { plainScript, plainScriptNames } from './redis/plain-scripts.ts'
export { RedisLimiter, type RedisLimiterOptions, redisLimiter } from './redis/redis-limiter.ts'
export type {
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
} from './spec/spec.ts'
export {
  calendarWindow,
  capacityOf,
  concurrency,
  fixedWindow,
  gcra,
  leakyBucket,
  leakyQueue,
  slidingCounter,
  slidingLog,
  slidingWindow,
  specId,
  tokenBucket,
} from './spec/specs.ts'
export type { WaitOptions } from './wait/waiting-line.ts'
