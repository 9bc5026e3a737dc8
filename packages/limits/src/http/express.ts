import { HttpLimit, type HttpLimitCounts, type HttpLimitOptions, holdBack } from './http-limit.ts'
import { ipKey } from './ip-key.ts'

/** What the middleware uses of an Express request; `ip` follows the app's `trust proxy`. */
export interface ExpressRequest {
  readonly ip?: string | undefined
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** What it uses of an Express response. */
export interface ExpressResponse {
  setHeader(name: string, value: string): unknown
  statusCode: number
  end(body: string): unknown
}

/** A middleware, with its counts. */
export interface ExpressLimit<Request> {
  (request: Request, response: ExpressResponse, next: (error?: unknown) => void): void
  readonly counts: HttpLimitCounts
}

/** Limits requests in Express (and anything with its middleware): `app.use(limitRequests({ limiter }))`. */
export function limitRequests<Request extends ExpressRequest>(
  options: HttpLimitOptions<Request>,
): ExpressLimit<Request> {
  const limit = new HttpLimit<Request>(options)
  const handle = async (request: Request, response: ExpressResponse): Promise<boolean> => {
    const decision = await limit.decide(request, () =>
      ipKey(request.ip ?? request.socket.remoteAddress ?? 'unknown', options.ipv6Prefix),
    )
    for (const [name, value] of Object.entries(decision.headers)) response.setHeader(name, value)
    if (decision.isRefused) {
      response.statusCode = 429
      response.setHeader('Content-Type', 'application/problem+json')
      response.end(JSON.stringify(decision.problem))
      return false
    }
    if (decision.delayMs > 0) await holdBack(decision.delayMs, options.runtime)
    return true
  }
  return Object.assign(
    (request: Request, response: ExpressResponse, next: (error?: unknown) => void) => {
      handle(request, response).then((goesOn) => {
        if (goesOn) next()
      }, next)
    },
    { counts: limit.counts },
  )
}
