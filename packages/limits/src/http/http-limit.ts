import { asListener, InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import { all } from '../all.ts'
import type { Answer } from '../answer.ts'
import { LocalLimiter } from '../local/local-limiter.ts'
import type { RedisLimiter } from '../redis/redis-limiter.ts'
import { legacyHeaders, limitHeader, policyHeader, retryAfterSeconds } from './rate-limit-headers.ts'

/** How requests are limited, in every framework. */
export interface HttpLimitOptions<Request> {
  /** One limiter, or several of one kind that must all admit a request, in one atomic call. */
  readonly limiter: LocalLimiter | RedisLimiter | readonly LocalLimiter[] | readonly RedisLimiter[]
  /** What a request counts for; undefined lets it pass uncounted. @default the client's address */
  readonly key?: (request: Request) => string | undefined
  /** @default 1 */
  readonly cost?: (request: Request) => number
  /** How many bits of an IPv6 address are one client. @default 64 */
  readonly ipv6Prefix?: number
  /** Count and report, but refuse nobody. @default false */
  readonly shadow?: boolean
  /** Also send `X-RateLimit-Limit`, `-Remaining` and `-Reset`. @default false */
  readonly legacyHeaders?: boolean
  /** The timers for pacing limits. @default the system's */
  readonly runtime?: Runtime
  /** Called for each request that is refused, or would be in shadow mode. */
  readonly onDenied?: (request: Request, key: string, violated: readonly string[]) => void
}

/** What to do with a request. */
export interface HttpDecision {
  readonly isRefused: boolean
  readonly headers: Readonly<Record<string, string>>
  /** The body of the refusal, `application/problem+json`. */
  readonly problem: Problem | undefined
  /** How long to hold the request back, for limits that pace. */
  readonly delayMs: number
}

/** A refusal in the form of RFC 9457 and the rate-limit headers draft. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: 429
  readonly detail: string
  readonly 'violated-policies': readonly string[]
}

/** Requests, refusals and would-be refusals of one middleware. */
export interface HttpLimitCounts {
  admitted: number
  refused: number
  /** In shadow mode: those that would have been refused. */
  shadowed: number
}

/** The logic shared by every framework's middleware. */
export class HttpLimit<Request> {
  readonly counts: HttpLimitCounts = { admitted: 0, refused: 0, shadowed: 0 }
  readonly #options: HttpLimitOptions<Request>
  readonly #onDenied: (request: Request, key: string, violated: readonly string[]) => void
  readonly #ask: (key: string, cost: number) => Promise<Readonly<Record<string, Answer>>>
  readonly #limiters: readonly (LocalLimiter | RedisLimiter)[]

  constructor(options: HttpLimitOptions<Request>) {
    const { ipv6Prefix = 64 } = options
    if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
      throw new InvalidOptionError('ipv6Prefix', ipv6Prefix, 'a whole number from 1 to 128')
    }
    this.#options = options
    this.#onDenied = asListener(options.onDenied ?? (() => {}))
    const limiters = [options.limiter].flat() as readonly LocalLimiter[] | readonly RedisLimiter[]
    this.#limiters = limiters
    this.#ask = asker(limiters)
  }

  /** Decides on a request; `keyOf` gets the client's address from the framework. */
  async decide(request: Request, keyOf: () => string): Promise<HttpDecision> {
    const key = this.#options.key === undefined ? keyOf() : this.#options.key(request)
    if (key === undefined) return { isRefused: false, headers: {}, problem: undefined, delayMs: 0 }
    const answers = await this.#ask(key, this.#options.cost?.(request) ?? 1)
    const headers = this.#headersOf(answers)
    const violated = Object.keys(answers).filter((name) => !answers[name]!.allowed)
    if (violated.length === 0) {
      this.counts.admitted++
      const delayMs = Math.max(...Object.values(answers).map((answer) => answer.delayMs))
      return { isRefused: false, headers, problem: undefined, delayMs }
    }
    this.#onDenied(request, key, violated)
    if (this.#options.shadow) {
      this.counts.shadowed++
      return { isRefused: false, headers, problem: undefined, delayMs: 0 }
    }
    this.counts.refused++
    const retries = violated.map((name) => answers[name]!.retryAfterMs)
    const never = retries.includes(null)
    const seconds = retryAfterSeconds(Math.max(...retries.map((retryMs) => retryMs ?? 0)))
    // A request that is never admitted has no time to retry.
    if (!never) headers['Retry-After'] = String(seconds)
    return {
      isRefused: true,
      headers,
      delayMs: 0,
      problem: {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Too many requests',
        status: 429,
        detail: never ? 'The request costs more than its limit can ever allow.' : `Try again in ${seconds} s.`,
        'violated-policies': violated,
      },
    }
  }

  /** The headers for the answers. Limits that could not be reached are marked `unavailable` and have no numbers. */
  #headersOf(answers: Readonly<Record<string, Answer>>): Record<string, string> {
    const limit = limitHeader(answers)
    return {
      'RateLimit-Policy': policyHeader(this.#limiters, answers),
      ...(limit !== '' && { RateLimit: limit }),
      ...(this.#options.legacyHeaders && legacyHeaders(this.#limiters, answers)),
    }
  }
}

/** Sleeps for a pacing limit's delay. */
export function holdBack(delayMs: number, { timers }: Runtime = systemRuntime): Promise<void> {
  return new Promise((resolve) => timers.setTimeout(resolve, delayMs))
}

function asker(
  limiters: readonly LocalLimiter[] | readonly RedisLimiter[],
): (key: string, cost: number) => Promise<Readonly<Record<string, Answer>>> {
  const only = limiters.length === 1 ? limiters[0] : undefined
  if (only !== undefined) return async (key, cost) => ({ [only.name]: await only.take(key, cost) })
  const together =
    limiters[0] instanceof LocalLimiter
      ? all(limiters as readonly LocalLimiter[])
      : all(limiters as readonly RedisLimiter[])
  return async (key, cost) => (await together.take(key, cost)).answers
}
