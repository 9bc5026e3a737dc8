import { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, holdBack } from './http-limit.ts'
import { ipKey } from './ip-key.ts'

/** What the hook uses of a Fastify request; `ip` follows the server's `trustProxy`. */
export interface FastifyRequestLike {
  readonly ip: string
}

/** What it uses of a reply. */
export interface FastifyReplyLike {
  header(name: string, value: string): unknown
  code(status: number): unknown
  type(type: string): unknown
  send(body: unknown): unknown
}

/** An `onRequest` hook, with its counts. */
export interface FastifyLimit<Request> {
  (request: Request, reply: FastifyReplyLike): Promise<unknown>
  readonly counts: HttpLimitCounts
}

/** Limits requests in Fastify: `app.addHook('onRequest', limitRequests({ limiter }))`, for all routes or for one. */
export function limitRequests<Request extends FastifyRequestLike>(
  options: HttpLimitOptions<Request>,
): FastifyLimit<Request> {
  const limit = new HttpLimit<Request>(options)
  return Object.assign(
    async (request: Request, reply: FastifyReplyLike): Promise<unknown> => {
      const decision = await limit.decide(request, () => ipKey(request.ip, options.ipv6Prefix))
      for (const [name, value] of Object.entries(decision.headers)) reply.header(name, value)
      if (decision.isRefused) {
        reply.code(429)
        reply.type('application/problem+json')
        return reply.send(decision.problem)
      }
      if (decision.delayMs > 0) await holdBack(decision.delayMs, options.runtime)
      return undefined
    },
    { counts: limit.counts },
  )
}
