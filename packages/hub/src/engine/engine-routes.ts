import type { FastifyInstance } from 'fastify'
import type { EngineSensor } from './engine-sensor.ts'

/** `GET /v1/engines`: what the servers say of themselves, and what part of it no sensor reports. */
export async function engineRoutes(app: FastifyInstance, options: { sensors: readonly EngineSensor[] }): Promise<void> {
  app.get('/v1/engines', async () => ({ engines: options.sensors.flatMap(({ view }) => view ?? []) }))
}
