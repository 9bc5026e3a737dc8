import type { Runtime } from '@firebreak/core'
import { type CanActivate, type ExecutionContext, HttpException } from '@nestjs/common'
import type { ExpressRequest, ExpressResponse } from './express.ts'
import { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, holdBack } from './http-limit.ts'
import { ipKey } from './ip-key.ts'

/** Limits requests in Nest: `app.useGlobalGuards(new LimitGuard({ limiter }))`, or `@UseGuards(new LimitGuard(…))`. */
export class LimitGuard<Request extends ExpressRequest = ExpressRequest> implements CanActivate {
  readonly #limit: HttpLimit<Request>
  readonly #ipv6Prefix: number | undefined
  readonly #runtime: Runtime | undefined

  constructor(options: HttpLimitOptions<Request>) {
    this.#limit = new HttpLimit(options)
    this.#ipv6Prefix = options.ipv6Prefix
    this.#runtime = options.runtime
  }

  get counts(): HttpLimitCounts {
    return this.#limit.counts
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp()
    const request = http.getRequest<Request>()
    const response = http.getResponse<ExpressResponse & { header?(name: string, value: string): unknown }>()
    // Express has both, Fastify's reply has only `header`.
    const set = (name: string, value: string) =>
      typeof response.setHeader === 'function' ? response.setHeader(name, value) : response.header?.(name, value)
    const decision = await this.#limit.decide(request, () =>
      ipKey(request.ip ?? request.socket.remoteAddress ?? 'unknown', this.#ipv6Prefix),
    )
    for (const [name, value] of Object.entries(decision.headers)) set(name, value)
    if (decision.isRefused) {
      set('Content-Type', 'application/problem+json')
      throw new HttpException({ ...decision.problem }, 429)
    }
    if (decision.delayMs > 0) await holdBack(decision.delayMs, this.#runtime)
    return true
  }
}
