import { type FirebreakHandle, openFirebreak, type PluginOptions } from './firebreak-handle.ts'

declare global {
  // Express' own way for a middleware to declare what it adds to a request.
  namespace Express {
    interface Request {
      firebreak: FirebreakHandle
    }
  }
}

/** A middleware with the handle attached, to close it at the end. */
export interface FirebreakMiddleware {
  (request: object, response: object, next: () => void): void
  readonly firebreak: FirebreakHandle
}

/** Express middleware: `app.use(firebreak({ client: redis, hubs: […] }))`, then `request.firebreak.getOrLoad(…)`. */
export function firebreak(options: PluginOptions): FirebreakMiddleware {
  const handle = openFirebreak(options)
  const middleware = (request: object, _response: object, next: () => void) => {
    ;(request as { firebreak?: FirebreakHandle }).firebreak = handle
    next()
  }
  return Object.assign(middleware, { firebreak: handle })
}
