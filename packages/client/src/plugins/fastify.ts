import type {} from 'fastify'
import { type FirebreakHandle, openFirebreak, type PluginOptions } from './firebreak-handle.ts'

// Fastify's own way for a plug-in to declare its decorations.
declare module 'fastify' {
  interface FastifyInstance {
    firebreak: FirebreakHandle
  }
  interface FastifyRequest {
    firebreak: FirebreakHandle
  }
}

/** What is used of a Fastify instance. */
interface FastifyLike {
  decorate(name: string, value: unknown): unknown
  decorateRequest(name: string, value: { getter(): unknown }): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/**
 * Fastify plug-in: `app.register(firebreak, { client: redis, hubs: […] })`, then `app.firebreak.client`,
 * `app.firebreak.getOrLoad(…)`, and the same as `request.firebreak`. The protection ends when the app closes.
 */
export async function firebreak(app: FastifyLike, options: PluginOptions): Promise<void> {
  // `register` hands Fastify's own options to the plug-in too.
  const { prefix: _, logLevel: __, logSerializers: ___, ...own } = options as PluginOptions & Record<string, unknown>
  const handle: FirebreakHandle = openFirebreak(own as PluginOptions)
  app.decorate('firebreak', handle)
  app.decorateRequest('firebreak', { getter: () => handle })
  app.addHook('onClose', async () => handle.close())
}

// Fastify's own way to apply a decoration to the whole application and not just to the plug-in.
Object.defineProperty(firebreak, Symbol.for('skip-override'), { value: true })
Object.defineProperty(firebreak, Symbol.for('fastify.display-name'), { value: 'firebreak' })
