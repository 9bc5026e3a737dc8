import type { FastifyInstance } from 'fastify'
import type { EngineSensor } from './engine-sensor.ts'

/** `GET /v1/engines`: the servers' own statistics, and the share of their load that no sensor reports. */
export async function engineRoutes(app: FastifyInstance, options: { sensors: readonly EngineSensor[] }): Promise<void> {
  app.get('/v1/engines', async () => ({ engines: options.sensors.flatMap(({ view }) => view ?? []) }))
}
