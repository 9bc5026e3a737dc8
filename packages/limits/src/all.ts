import type { Answer } from './answer.ts'
import { LimitAtomicError } from './errors.ts'
import { LocalLimiter, requireCost } from './local/local-limiter.ts'
import type { RedisLimiter } from './redis/redis-limiter.ts'
import { admittedAnswer, deniedAnswer } from './redis/redis-plan.ts'
import { scriptOf } from './redis/scripts.ts'

/** The combined answer of several limits to one call. */
export interface AllAnswer {
  /** True if every limit admits the call; only then is it charged, on all of them. */
  readonly allowed: boolean
  /** The names of those that do not admit it. */
  readonly violated: readonly string[]
  /** The longest of theirs: when all of them would admit the call if nothing else arrives. */
  readonly retryAfterMs: number | null
  /** Every limit's own answer, by name. */
  readonly answers: Readonly<Record<string, Answer>>
}

/** A key for all limits, or one for each by the limit's name. */
export type AllKeys = string | Readonly<Record<string, string>>

/** Several limits as one: each call is admitted and charged by all of them or by none. */
export interface AllLimiter<Result> {
  take(keys: AllKeys, cost?: number): Result
}

/**
 * Several limits in one atomic, all-or-nothing call: `all([perSecond, perDay]).take('user:1')`. Those on Redis are one
 * script call; on a cluster their keys must share a slot, as those of one key do.
 */
export function all(limiters: readonly LocalLimiter[]): AllLimiter<AllAnswer>
export function all(limiters: readonly RedisLimiter[]): AllLimiter<Promise<AllAnswer>>
export function all(
  limiters: readonly LocalLimiter[] | readonly RedisLimiter[],
): AllLimiter<AllAnswer | Promise<AllAnswer>> {
  const names = new Set(limiters.map(({ name }) => name))
  if (limiters.length === 0) throw new LimitAtomicError('all needs at least one limiter')
  if (names.size < limiters.length) {
    throw new LimitAtomicError(`the limiters of one all need different names, not ${[...names].join(', ')}`)
  }
  const areLocal = limiters.map((limiter) => limiter instanceof LocalLimiter)
  if (areLocal.every(Boolean)) return allLocal(limiters as readonly LocalLimiter[])
  if (areLocal.some(Boolean)) throw new LimitAtomicError('the limiters of one all must be all local or all on Redis')
  return allRedis(limiters as readonly RedisLimiter[])
}

function allLocal(limiters: readonly LocalLimiter[]): AllLimiter<AllAnswer> {
  return {
    take(keys, cost = 1) {
      const looked = limiters.map((limiter) => limiter.peek(keyFor(keys, limiter), cost))
      if (looked.every(({ allowed }) => allowed)) {
        return combined(
          limiters,
          limiters.map((limiter) => limiter.take(keyFor(keys, limiter), cost)),
        )
      }
      // Nothing is charged: those that would have admitted it report their current state.
      const answers = looked.map((answer, index) =>
        answer.allowed ? limiters[index]!.peek(keyFor(keys, limiters[index]!)) : answer,
      )
      for (const [index, { allowed }] of answers.entries()) if (!allowed) limiters[index]!.counts.denied++
      return combined(limiters, answers)
    },
  }
}

function allRedis(limiters: readonly RedisLimiter[]): AllLimiter<Promise<AllAnswer>> {
  const first = limiters[0]!
  if (limiters.some(({ client }) => client !== first.client)) {
    throw new LimitAtomicError('the limiters of one all must share a Redis client: one script decides for all of them')
  }
  const script = scriptOf(
    'all',
    limiters.map(({ plan }) => plan.algorithm),
  )
  return {
    async take(keys, cost = 1) {
      requireCost(cost)
      const names = limiters.map((limiter) => keyFor(keys, limiter))
      if (first.redis.topology === 'cluster') {
        const slots = new Set(limiters.map((limiter, index) => limiter.keys.slot(names[index]!)))
        if (slots.size > 1) {
          throw new LimitAtomicError('on a cluster the limits of one all must share a slot: use the same key for each')
        }
      }
      const redisKeys = limiters.flatMap((limiter, index) => limiter.redisKeys(names[index]!))
      const reply = await first.guarded(() =>
        first.scripts.run(script, redisKeys, (serverNowMs) =>
          limiters.flatMap(({ plan }) => [plan.algorithm, ...plan.parameters(serverNowMs), cost, first.newId()]),
        ),
      )
      const answers = limiters.map((limiter, index) => {
        if (reply === undefined) return limiter.unavailable(names[index]!, cost)
        const [fits, level, retryMs, resetMs] = reply.slice(index * 4, index * 4 + 4) as [
          number,
          number,
          number,
          number,
        ]
        return fits === 1
          ? admittedAnswer(limiter.plan, cost, 0, level, resetMs)
          : deniedAnswer(limiter.plan, cost, level, retryMs, resetMs)
      })
      const isAdmitted = answers.every(({ allowed }) => allowed)
      for (const [index, { counts }] of limiters.entries()) {
        if (isAdmitted) counts.allowed++
        else if (!answers[index]!.allowed) counts.denied++
      }
      return combined(limiters, answers)
    },
  }
}

function keyFor(keys: AllKeys, limiter: { readonly name: string }): string {
  if (typeof keys === 'string') return keys
  const key = Object.hasOwn(keys, limiter.name) ? keys[limiter.name] : undefined
  if (key === undefined) throw new LimitAtomicError(`no key was given for the limit ${limiter.name}`)
  return key
}

function combined(limiters: readonly { readonly name: string }[], answers: readonly Answer[]): AllAnswer {
  const violated = limiters.filter((_, index) => !answers[index]!.allowed).map(({ name }) => name)
  let retryAfterMs: number | null = 0
  for (const answer of answers) {
    if (answer.retryAfterMs === null || retryAfterMs === null) retryAfterMs = null
    else retryAfterMs = Math.max(retryAfterMs, answer.retryAfterMs)
  }
  return {
    allowed: violated.length === 0,
    violated,
    retryAfterMs,
    answers: Object.fromEntries(limiters.map(({ name }, index) => [name, answers[index]!])),
  }
}
