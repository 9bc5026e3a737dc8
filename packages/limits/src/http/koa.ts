import { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, holdBack } from './http-limit.ts'
import { ipKey } from './ip-key.ts'

/** What the middleware uses of Koa's context; `ip` follows the app's `proxy`. */
export interface KoaContextLike {
  readonly ip: string
  status: number
  type: string
  body: unknown
  set(name: string, value: string): void
}

/** A middleware, with its counts. */
export interface KoaLimit<Context> {
  (context: Context, next: () => Promise<unknown>): Promise<void>
  readonly counts: HttpLimitCounts
}

/** Limits requests in Koa: `app.use(limitRequests({ limiter }))`. */
export function limitRequests<Context extends KoaContextLike>(options: HttpLimitOptions<Context>): KoaLimit<Context> {
  const limit = new HttpLimit<Context>(options)
  return Object.assign(
    async (context: Context, next: () => Promise<unknown>): Promise<void> => {
      const decision = await limit.decide(context, () => ipKey(context.ip, options.ipv6Prefix))
      for (const [name, value] of Object.entries(decision.headers)) context.set(name, value)
      if (decision.isRefused) {
        context.status = 429
        context.body = JSON.stringify(decision.problem)
        context.type = 'application/problem+json'
        return
      }
      if (decision.delayMs > 0) await holdBack(decision.delayMs, options.runtime)
      await next()
    },
    { counts: limit.counts },
  )
}
