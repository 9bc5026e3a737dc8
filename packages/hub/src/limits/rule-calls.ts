import type { RuleService } from '@firebreak/limits/policy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { formOf, parametersOf, textsOf, writesThrough } from './call-parameters.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A GET of this route may change something, so it needs an operator. */
    changesByGet?: boolean
  }
}

/** The paths of the deciding calls. */
interface RuleCallPaths {
  readonly browse: string
  readonly update: string
  readonly browseComplete: string
  readonly multiBrowse: string
  readonly feedback: string
  readonly value: string
  readonly alive?: string
}

/** Firebreak's own paths. */
export const ownPaths: RuleCallPaths = {
  browse: '/v1/limits/browse',
  update: '/v1/limits/update',
  browseComplete: '/v1/limits/browse_complete',
  multiBrowse: '/v1/limits/multi_browse',
  feedback: '/v1/limits/feedback',
  value: '/v1/limits/value',
}

/** Koala's, for its clients. */
export const koalaPaths: RuleCallPaths = {
  browse: '/rule/browse',
  update: '/rule/update',
  browseComplete: '/rule/browse_complete',
  multiBrowse: '/multi/browse',
  feedback: '/rule/feedback',
  value: '/rule/value',
  alive: '/monitor/alive',
}

/** What the calls need. */
interface RuleCallsOptions {
  readonly service: RuleService
  readonly paths: RuleCallPaths
  /** Whether a GET may count: Koala's clients expect it; elsewhere a link or crawler could trigger it. */
  readonly getMayChange: boolean
}

/** A GET would have changed something. */
class MethodError extends Error {
  readonly statusCode = 405
}

const ruleNumber = z.coerce.number().int().min(0)

/** Jobs of `multi_browse`; Koala accepts field names in any case. */
const jobsSchema = z
  .array(z.record(z.string(), z.unknown()))
  .transform((jobs) =>
    jobs.map((job) => new Map(Object.entries(job).map(([name, value]) => [name.toLowerCase(), value]))),
  )
  .pipe(
    z.array(
      z.map(z.string(), z.unknown()).transform((job, context) => {
        const id = z.union([z.string(), z.number()]).safeParse(job.get('id'))
        const given = job.has('arg') ? z.string().safeParse(job.get('arg')) : undefined
        const parameters = given?.success ? formOf(new URLSearchParams(given.data)) : job.get('parameters')
        if (id.success && given?.success !== false && typeof parameters === 'object' && parameters !== null) {
          return { id: id.data, parameters: parameters as object }
        }
        context.addIssue('a job must have an id, and Arg (a query string) or parameters (an object)')
        return z.NEVER
      }),
    ),
  )

/** The calls that decide and count. */
export async function ruleCalls(app: FastifyInstance, options: RuleCallsOptions): Promise<void> {
  const { service, paths, getMayChange } = options
  // In a hub, viewers must not count by a GET either.
  const config = { changesByGet: getMayChange }

  /** Admits or refuses a call that may change counters; returns whether it does. */
  const mayChange = (request: FastifyRequest, changes: boolean): boolean => {
    if (changes && !getMayChange && request.method !== 'POST') {
      throw new MethodError('a GET changes nothing here; send this call with POST')
    }
    return changes
  }

  app.route({
    method: ['GET', 'POST'],
    url: paths.browse,
    config,
    handler: (request, reply) => {
      const parameters = parametersOf(request)
      const answer = service.browse(parameters, mayChange(request, writesThrough(parameters)))
      if (!(answer instanceof Promise)) return sendJson(reply, answer.json)
      return answer.then(({ json }) => sendJson(reply, json))
    },
  })

  app.route({
    method: ['GET', 'POST'],
    url: paths.update,
    config,
    handler: async (request) => {
      mayChange(request, true)
      return { err_no: 0, err_msg: 'OK', Version: await service.update(parametersOf(request)) }
    },
  })

  app.route({
    method: ['GET', 'POST'],
    url: paths.browseComplete,
    config,
    handler: async (request, reply) => {
      const parameters = parametersOf(request)
      const answers = await service.browseComplete(parameters, mayChange(request, writesThrough(parameters)))
      return sendJson(reply, `[${answers.map(({ json }) => json).join(',')}]`)
    },
  })

  app.route({
    method: ['GET', 'POST'],
    url: paths.multiBrowse,
    config,
    handler: async (request, reply) => {
      const source = Array.isArray(request.body) ? request.body : JSON.parse(parametersOf(request)['argsJson'] ?? '')
      // All are parsed before the first one counts: an answer of 400 or 405 means that nothing changed.
      const jobs = jobsSchema.parse(source).map((job) => {
        const parameters = textsOf(job.parameters)
        return { id: job.id, parameters, counts: mayChange(request, writesThrough(parameters)) }
      })
      const results = jobs.map(async ({ id, parameters, counts }) => {
        const { json } = await service.browse(parameters, counts)
        return `{"ID":${JSON.stringify(id)},"Result":${json}}`
      })
      return sendJson(reply, `[${(await Promise.all(results)).join(',')}]`)
    },
  })

  app.route({
    method: ['GET', 'POST'],
    url: paths.feedback,
    config,
    handler: async (request) => {
      mayChange(request, true)
      const parameters = parametersOf(request)
      const kind = z.enum(['erase1', 'erase2']).default('erase1').parse(parameters['_feedbackType'])
      const changed = await service.feedback(parameters, kind, parameters['_requestId'])
      return { err_no: 0, err_msg: 'OK', changed, Version: service.version }
    },
  })

  app.route({
    method: ['GET', 'POST'],
    url: paths.value,
    config,
    handler: async (request) => {
      const parameters = parametersOf(request)
      const { used, usedToday } = await service.value(ruleNumber.parse(parameters['rule_no']), parameters)
      return { err_no: 0, err_msg: '', cache_val: used, day_val: usedToday, Version: service.version }
    },
  })

  if (paths.alive !== undefined) {
    app.get(paths.alive, async (_, reply) => {
      try {
        await service.checkAlive()
        return { errno: 0, errmsg: 'OK!' }
      } catch {
        return reply.code(500).send({ errno: -1, errmsg: 'the store of counters cannot be reached' })
      }
    })
  }
}

function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}
