import { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, holdBack } from './http-limit.ts'
import { ipKey } from './ip-key.ts'

/** What the middleware uses of Hono's context. */
export interface HonoContextLike {
  readonly env: unknown
  readonly req: { header(name: string): string | undefined }
  header(name: string, value: string): void
  body(data: string, status: 429, headers: Record<string, string>): Response
}

/** A middleware, with its counts. */
export interface HonoLimit<Context> {
  (context: Context, next: () => Promise<void>): Promise<Response | undefined>
  readonly counts: HttpLimitCounts
}

/**
 * Limits requests in Hono: `app.use(limitRequests({ limiter }))`. Hono itself does not know the client's address: on
 * Node it is taken from the socket (`@hono/node-server`); elsewhere pass `key`.
 */
export function limitRequests<Context extends HonoContextLike>(options: HttpLimitOptions<Context>): HonoLimit<Context> {
  const limit = new HttpLimit<Context>(options)
  return Object.assign(
    async (context: Context, next: () => Promise<void>): Promise<Response | undefined> => {
      const decision = await limit.decide(context, () => ipKey(addressOf(context), options.ipv6Prefix))
      for (const [name, value] of Object.entries(decision.headers)) context.header(name, value)
      if (decision.isRefused) {
        return context.body(JSON.stringify(decision.problem), 429, { 'Content-Type': 'application/problem+json' })
      }
      if (decision.delayMs > 0) await holdBack(decision.delayMs, options.runtime)
      await next()
      return undefined
    },
    { counts: limit.counts },
  )
}

function addressOf(context: HonoContextLike): string {
  const env = context.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined
  return env?.incoming?.socket?.remoteAddress ?? 'unknown'
}
