import { FirebreakError, prometheusText } from '@firebreak/core'
import {
  type CallParameters,
  PolicyError,
  parsePolicy,
  type RuleService,
  writePolicyDocument,
  writePolicyText,
} from '@firebreak/limits'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'

/** What the routes need. */
export interface LimitsRoutesOptions {
  readonly service: RuleService
  /** Reads the policy's source again, for `reload`; without it `reload` is refused. */
  readonly readPolicy?: () => { text: string; file: string } | Promise<{ text: string; file: string }>
}

const formatSchema = z.enum(['text', 'yaml', 'json']).default('text')
const versionSchema = z.coerce.number().int().min(0)
const jobsSchema = z.array(
  z.union([
    z.object({ ID: z.union([z.string(), z.number()]), Arg: z.string() }),
    z.object({ id: z.union([z.string(), z.number()]), parameters: z.record(z.string(), z.coerce.string()) }),
  ]),
)

/**
 * The rule service under `/v1/limits/`: the calls that decide (`browse`, `update`, `browse_complete`, `multi_browse`,
 * `feedback`, `value`), and those about the policy (`rules`, `alive`, `dump`, `policy`, `reload`, `convert`, `history`,
 * `diff`, `rollback`, `metrics`). Parameters come in the query, or as a JSON or form body.
 */
export async function limitsRoutes(app: FastifyInstance, options: LimitsRoutesOptions): Promise<void> {
  const { service } = options

  // In a hub the surrounding server reads plain text already.
  for (const type of ['text/plain', 'application/yaml', 'text/yaml']) {
    if (app.hasContentTypeParser(type)) continue
    app.addContentTypeParser(type, { parseAs: 'string' }, (_, body, done) => done(null, body))
  }
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )
  app.setErrorHandler(sendProblem)

  const both = { method: ['GET', 'POST'] as ['GET', 'POST'] }
  // What counts is a POST: browsers, caches and crawlers GET whatever they find.
  for (const call of ['update', 'feedback']) app.get(`/v1/limits/${call}`, () => refuseGet(`${call} changes counters`))

  app.route({
    ...both,
    url: '/v1/limits/browse',
    handler: (request, reply) => {
      const parameters = parametersOf(request)
      const answer = service.browse(parameters, writesThrough(parameters, request))
      if (!(answer instanceof Promise)) return sendJson(reply, answer.json)
      return answer.then(({ json }) => sendJson(reply, json))
    },
  })

  app.route({
    method: 'POST',
    url: '/v1/limits/update',
    handler: async (request) => ({ err_no: 0, err_msg: 'OK', Version: await service.update(parametersOf(request)) }),
  })

  app.route({
    ...both,
    url: '/v1/limits/browse_complete',
    handler: async (request, reply) => {
      const parameters = parametersOf(request)
      const answers = await service.browseComplete(parameters, writesThrough(parameters, request))
      return sendJson(reply, `[${answers.map(({ json }) => json).join(',')}]`)
    },
  })

  app.route({
    ...both,
    url: '/v1/limits/multi_browse',
    handler: async (request, reply) => {
      const source = Array.isArray(request.body) ? request.body : JSON.parse(parametersOf(request)['argsJson'] ?? '[]')
      const jobs = jobsSchema.parse(source)
      const calls = jobs.map((job) => {
        const isOld = 'Arg' in job
        const parameters: CallParameters = isOld ? Object.fromEntries(new URLSearchParams(job.Arg)) : job.parameters
        return { job, parameters, isWrite: writesThrough(parameters, request) }
      })
      const results = calls.map(async ({ job, parameters, isWrite }) => {
        const { json } = await service.browse(parameters, isWrite)
        return `{"ID":${JSON.stringify('ID' in job ? job.ID : job.id)},"Result":${json}}`
      })
      return sendJson(reply, `[${(await Promise.all(results)).join(',')}]`)
    },
  })

  app.route({
    method: 'POST',
    url: '/v1/limits/feedback',
    handler: async (request) => {
      const parameters = parametersOf(request)
      const kind = z.enum(['erase1', 'erase2']).default('erase1').parse(parameters['_feedbackType'])
      const changed = await service.feedback(parameters, kind, parameters['_requestId'])
      return { err_no: 0, err_msg: 'OK', changed, Version: service.version }
    },
  })

  app.route({
    ...both,
    url: '/v1/limits/value',
    handler: async (request) => {
      const parameters = parametersOf(request)
      const { used, usedToday } = await service.value(versionSchema.parse(parameters['rule_no']), parameters)
      return { err_no: 0, err_msg: '', cache_val: used, day_val: usedToday, Version: service.version }
    },
  })

  app.get('/v1/limits/rules', () => ({ Version: service.version, rules: service.rules() }))

  app.get('/v1/limits/alive', async (_, reply) => {
    try {
      await service.checkAlive()
      return { errno: 0, errmsg: 'OK!', Version: service.version }
    } catch {
      return reply.code(503).send({ errno: -1, errmsg: 'the store of counters cannot be reached' })
    }
  })

  app.get('/v1/limits/dump', (request, reply) => {
    const format = formatSchema.parse((request.query as { format?: string }).format)
    return reply.type(typeOf[format]).send(writeAs[format](service.policy))
  })

  app.post('/v1/limits/policy', (request) => {
    const text = typeof request.body === 'string' ? request.body : JSON.stringify(request.body)
    return { Version: service.load(parsePolicy(text, 'body', refuseFiles), 'api') }
  })

  app.post('/v1/limits/reload', async (_, reply) => {
    if (options.readPolicy === undefined) {
      return reply
        .code(409)
        .send({ code: 'FB_POLICY_INVALID', detail: 'this service was started without a policy file' })
    }
    const { text, file } = await options.readPolicy()
    return { Version: service.load(parsePolicy(text, file), file) }
  })

  app.post('/v1/limits/convert', (request, reply) => {
    const format = formatSchema.parse((request.query as { to?: string }).to)
    const text = typeof request.body === 'string' ? request.body : JSON.stringify(request.body)
    return reply.type(typeOf[format]).send(writeAs[format](parsePolicy(text, 'body', refuseFiles)))
  })

  app.get('/v1/limits/history', () =>
    service.history().map(({ version, loadedAtMs, origin, policy }) => ({
      version,
      loadedAtMs,
      origin,
      rules: policy.rules.length,
      isCurrent: version === service.version,
    })),
  )

  app.get('/v1/limits/diff', (request) => {
    const { from, to } = request.query as { from?: string; to?: string }
    return service.diff(versionSchema.parse(from), versionSchema.parse(to ?? service.version))
  })

  app.post('/v1/limits/rollback', (request) => {
    const parameters = parametersOf(request)
    return { Version: service.rollback(versionSchema.parse(parameters['version'])) }
  })

  app.get('/v1/limits/metrics', (_, reply) => reply.type('text/plain; version=0.0.4').send(metricsOf(service)))
}

/** A policy that came over the network reads no file of this machine. */
function refuseFiles(): never {
  throw new Error('a policy sent to the service gives the values of its dicts, not files')
}

const writeAs = {
  text: writePolicyText,
  yaml: (policy: Parameters<typeof writePolicyText>[0]) => writePolicyDocument(policy, 'yaml'),
  json: (policy: Parameters<typeof writePolicyText>[0]) => writePolicyDocument(policy, 'json'),
}
const typeOf = { text: 'text/plain; charset=utf-8', yaml: 'application/yaml', json: 'application/json; charset=utf-8' }

function parametersOf(request: FastifyRequest): CallParameters {
  const query = request.query as CallParameters
  if (request.body === null || request.body === undefined || typeof request.body !== 'object') return query
  const body: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.body)) {
    if (value !== null && value !== undefined) body[name] = String(value)
  }
  return { ...query, ...body }
}

function writesThrough(parameters: CallParameters, { method }: FastifyRequest): boolean {
  if (parameters['_writeThrough'] !== 'yes') return false
  if (method !== 'POST') refuseGet('_writeThrough=yes changes counters')
  return true
}

function refuseGet(why: string): never {
  throw new ApiProblem(405, 'FB_METHOD_REFUSED', `${why}: send it with POST`)
}

function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json)
}

function metricsOf(service: RuleService): string {
  const calls = service.rules().flatMap(({ return: code, applied, over, shadow }) =>
    Object.entries({ applied, over }).map(([outcome, value]) => ({
      labels: { return: String(code), shadow: String(shadow), outcome },
      value,
    })),
  )
  return prometheusText([
    {
      kind: 'counter',
      name: 'firebreak_limit_rule_calls_total',
      help: 'Calls that a rule applied to, and those that found it over its limit.',
      points: calls,
    },
    {
      kind: 'gauge',
      name: 'firebreak_limit_policy_version',
      help: 'Version of the policy in force.',
      points: [{ labels: {}, value: service.version }],
    },
  ])
}

/** Problems as RFC 9457 has them. */
export function sendProblem(error: FastifyError | Error, _: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code = error instanceof FirebreakError ? error.code : undefined
  const status =
    error instanceof PolicyError
      ? 422
      : code === 'FB_POLICY_VERSION' || code === 'FB_RULE_UNKNOWN'
        ? 404
        : error instanceof z.ZodError || error instanceof SyntaxError
          ? 400
          : ((error as FastifyError).statusCode ?? 503)
  const detail = error instanceof z.ZodError ? z.prettifyError(error) : error.message
  const place = error instanceof PolicyError ? { file: error.file, line: error.line } : {}
  if (status === 405) reply.header('allow', 'POST')
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ status, title: titles[status] ?? 'Error', detail, ...(code && { code }), ...place })
}

const titles: Record<number, string> = {
  400: 'Bad request',
  403: 'Refused',
  404: 'Not found',
  405: 'Only POST',
  422: 'The policy is not valid; the one in force stays',
  503: 'The store of counters cannot be reached',
}
