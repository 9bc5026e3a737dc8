import { FirebreakError, type Runtime, systemRuntime } from '@firebreak/core'
import { decodeSnowflake, type IdService, timePath } from '@firebreak/ids'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'

/** What the id routes serve. */
export interface IdsRoutesOptions {
  readonly service: IdService
  /** @default the process's own */
  readonly runtime?: Pick<Runtime, 'wallClock'>
  /** Adds a segment tag. @default none: tags are added in the database */
  readonly addTag?: (tag: string, step: number) => Promise<void>
  /** Records who changed something. @default nothing is recorded */
  readonly audit?: (request: FastifyRequest, what: string, after: unknown) => Promise<void>
}

const tagBody = z.strictObject({ step: z.number().int().min(1).max(10_000_000).default(1000) })

interface GetRequest {
  Params: { key: string }
  Querystring: { count?: string }
}

const text = 'text/plain; charset=utf-8'

/**
 * Ids over HTTP, after Leaf:
 *
 * - `GET /api/segment/get/{tag}` and `GET /api/snowflake/get/{key}`: one id as text, `?count=` a JSON array of texts
 * - `GET /api/snowflake/decode/{id}`: time, worker and sequence
 * - `GET /api/snowflake/time`: this node's clock, for its peers
 * - `PUT /api/ids/tags/{tag}` `{ step }`: a new segment tag, if the hub stores them itself
 * - `GET /api/ids/status`, `/api/ids/buffers`, `/api/ids/databases`: for the console
 */
export async function idsRoutes(
  app: FastifyInstance,
  { service, runtime = systemRuntime, addTag, audit }: IdsRoutesOptions,
): Promise<void> {
  app.setErrorHandler((error, _request, reply) => sendError(reply, error))

  app.get<GetRequest>('/api/segment/get/:key', (request, reply) => {
    const { count } = request.query
    const { key } = request.params
    if (count !== undefined) return service.segmentMany(key, toCount(count))
    const id = service.segment(key)
    if (typeof id === 'string') return reply.type(text).send(id)
    return id.then((late) => reply.type(text).send(late))
  })

  app.get<GetRequest>('/api/snowflake/get/:key', (request, reply) => {
    const { count } = request.query
    if (count !== undefined) return reply.send(service.snowflakeMany(toCount(count)))
    return reply.type(text).send(service.nextSnowflake())
  })

  app.get<{ Params: { id: string } }>('/api/snowflake/decode/:id', async ({ params }) =>
    service.snowflake === undefined ? decodeSnowflake(params.id) : service.snowflake.decode(params.id),
  )

  app.get(timePath, async () => ({ time: service.snowflake?.nowMs() ?? runtime.wallClock.now() }))

  if (addTag !== undefined) {
    app.put<{ Params: { tag: string } }>('/api/ids/tags/:tag', async (request, reply) => {
      const { tag } = request.params
      const parsed = tagBody.safeParse(request.body ?? {})
      if (!parsed.success) throw new ApiProblem(400, 'FB_INPUT_INVALID', `step: ${parsed.error.issues[0]!.message}`)
      const { step } = parsed.data
      await addTag(tag, step)
      await audit?.(request, `add tag ${tag}`, { tag, step })
      return reply.code(201).send({ tag, step })
    })
  }

  app.get('/api/ids/status', async () => ({
    canAddTags: addTag !== undefined,
    given: service.given,
    snowflake: service.snowflake?.status() ?? null,
    segments: service.segments === undefined ? null : { tags: service.segments.buffers().length },
  }))

  app.get('/api/ids/buffers', async () => service.segments?.buffers() ?? [])

  app.get<{ Querystring: { refresh?: string } }>('/api/ids/databases', async ({ query }) => {
    if (query.refresh !== undefined) await service.segments?.refresh()
    return service.segments?.databases() ?? []
  })
}

function toCount(count: string): number {
  return /^\d{1,9}$/.test(count) ? Number(count) : Number.NaN
}

/** The status of an error: a bad request, something not found, or a service that is currently unavailable. */
const statuses: Record<string, number> = {
  FB_OPTION_INVALID: 400,
  FB_IDS_ID_INVALID: 400,
  FB_IDS_TAG_UNKNOWN: 404,
  FB_IDS_TAG_EXISTS: 409,
}

/** Answers an error with its code and message. */
export function sendError(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof FirebreakError) {
    const status = error instanceof ApiProblem ? error.statusCode : (statuses[error.code] ?? 503)
    return reply.code(status).send({ code: error.code, message: error.message })
  }
  const status = (error as { statusCode?: number }).statusCode ?? 500
  const message = status < 500 ? (error as Error).message : 'the id service met an unexpected error'
  return reply.code(status).send({ code: 'FB_INTERNAL', message })
}
