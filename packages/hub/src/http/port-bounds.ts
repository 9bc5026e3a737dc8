import { type HttpBounds, httpServerOptions, leavesLargeBody } from '@firebreak/core/node'
import type { FastifyInstance } from 'fastify'
import { ApiProblem } from '../errors.ts'
import type { AccessGuard } from './access-guard.ts'

/** The bounds of a port as Fastify options. */
export function portOptions(bounds: HttpBounds | undefined) {
  const { requestTimeout = 0, keepAliveTimeout = 0, ...http } = httpServerOptions(bounds)
  return { requestTimeout, keepAliveTimeout, http: { requestTimeout, ...http } }
}

/**
 * Refuses requests that a browser sends on behalf of another site, and requests without a route, before their body is
 * read. If no token is given, the host is checked too: a page whose name was pointed at this machine has no token.
 */
export function refuseStrangers(app: FastifyInstance, guard: AccessGuard, hasToken: boolean): void {
  app.addHook('onRequest', async ({ headers, is404, method, url }) => {
    if (hasToken) guard.checkSite(headers)
    else guard.checkOrigin(headers)
    if (is404) throw notFound(app, method, url)
  })
}

const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const

/** Nothing is served there; if another method is, says which. */
export function notFound(app: FastifyInstance, method: string, url: string): ApiProblem {
  const path = url.split('?')[0]!
  const others = methods.filter((other) => app.hasRoute({ method: other, url: path }))
  const hint = others.length === 0 ? '' : `; it takes ${others.join(' and ')}`
  return new ApiProblem(404, 'FB_NOT_FOUND', `there is no ${method} ${path}${hint}`)
}

/** A caller that is answered before its large body has been read is not read any further. */
export function closeUnreadBodies(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply) => {
    if (leavesLargeBody(request.raw)) reply.header('connection', 'close')
  })
}
