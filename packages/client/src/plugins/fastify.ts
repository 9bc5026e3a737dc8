import { type FirebreakHandle, openFirebreak, type PluginOptions } from './firebreak-handle.ts'

/** What is used of a Fastify instance. */
interface FastifyLike {
  decorate(name: string, value: unknown): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/**
 * Fastify plug-in: `app.register(firebreak, { client: redis, hubs: […] })`, then `app.firebreak.client`,
 * `app.firebreak.getOrLoad(…)`. The protection ends when the app closes.
 */
export async function firebreak(app: FastifyLike, options: PluginOptions): Promise<void> {
  const handle: FirebreakHandle = openFirebreak(options)
  app.decorate('firebreak', handle)
  app.addHook('onClose', async () => handle.close())
}

// Fastify's own way to say that a decoration is for the whole application and not for the plug-in alone.
Object.defineProperty(firebreak, Symbol.for('skip-override'), { value: true })
Object.defineProperty(firebreak, Symbol.for('fastify.display-name'), { value: 'firebreak' })
