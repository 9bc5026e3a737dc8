import { FirebreakError } from '@firebreak/core'
import { prometheusText } from '@firebreak/core/metrics'
import { PolicyError } from '@firebreak/limits'
import { parsePolicy, type RuleService, writePolicyDocument, writePolicyText } from '@firebreak/limits/policy'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { formOf, parametersOf, textOf } from './call-parameters.ts'
import { type ChangePolicy, changeInProcess } from './policy-keeper.ts'
import { koalaPaths, ownPaths, ruleCalls } from './rule-calls.ts'

/** What the routes need. */
export interface LimitsRoutesOptions {
  readonly service: RuleService
  /** Reloads the policy's source, for `reload`; if omitted, `reload` is refused. */
  readonly readPolicy?: () => { text: string; file: string } | Promise<{ text: string; file: string }>
  /** Also answer under Koala's own paths (`/rule/browse` and so on), where a GET may change counters. @default false */
  readonly koalaPaths?: boolean
  /** Where changes of the policy go. @default only into this process */
  readonly change?: ChangePolicy
  /** Who sent a request, for the audit. @default 'local' */
  readonly whoOf?: (request: FastifyRequest) => string
}

const formatSchema = z.enum(['text', 'yaml', 'json']).default('text')
const versionSchema = z.coerce.number().int().min(0)
/**
 * The rule service under `/v1/limits/`: the calls that decide (`browse`, `update`, `browse_complete`, `multi_browse`,
 * `feedback`, `value`), and those about the policy (`rules`, `alive`, `dump`, `policy`, `reload`, `convert`, `history`,
 * `diff`, `rollback`, `metrics`). Parameters come in the query, or as a JSON or form body. A GET changes nothing. A
 * change of the policy may name the version that the caller has seen (`expected`): if another is in force, the answer
 * is 409.
 */
export async function limitsRoutes(app: FastifyInstance, options: LimitsRoutesOptions): Promise<void> {
  const { service, change = changeInProcess(options.service), whoOf = () => 'local' } = options

  // In a hub the surrounding server reads plain text already.
  for (const type of ['text/plain', 'application/yaml', 'text/yaml']) {
    if (app.hasContentTypeParser(type)) continue
    app.addContentTypeParser(type, { parseAs: 'string' }, (_, body, done) => done(null, body))
  }
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_, body, done) =>
    done(null, formOf(new URLSearchParams(body as string))),
  )
  app.setErrorHandler(sendProblem)

  await app.register(ruleCalls, { service, paths: ownPaths, getMayChange: false })
  if (options.koalaPaths) await app.register(ruleCalls, { service, paths: koalaPaths, getMayChange: true })

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

  app.get('/v1/limits/policy/:version', (request, reply) => {
    const { version } = request.params as { version: string }
    const format = formatSchema.parse((request.query as { format?: string }).format)
    return reply.type(typeOf[format]).send(writeAs[format](service.versionOf(versionSchema.parse(version)).policy))
  })

  app.post('/v1/limits/policy', async (request) => {
    const policy = parsePolicy(textOf(request), 'body', refuseFiles)
    return {
      Version: await change({ policy, origin: 'api', who: whoOf(request), expected: expectedOf(request.query) }),
    }
  })

  app.put('/v1/limits/policy', async (request) => {
    const expected = versionSchema.parse((request.query as { expected?: string }).expected)
    const policy = parsePolicy(textOf(request), 'body', refuseFiles)
    return { Version: await change({ policy, origin: 'api', who: whoOf(request), expected }) }
  })

  app.post('/v1/limits/reload', async (request, reply) => {
    if (options.readPolicy === undefined) {
      return reply
        .code(409)
        .send({ code: 'FB_POLICY_INVALID', detail: 'this service was started without a policy file' })
    }
    const { text, file } = await options.readPolicy()
    const policy = parsePolicy(text, file)
    return { Version: await change({ policy, origin: file, who: whoOf(request), expected: expectedOf(request.query) }) }
  })

  app.post('/v1/limits/convert', (request, reply) => {
    const format = formatSchema.parse((request.query as { to?: string }).to)
    return reply.type(typeOf[format]).send(writeAs[format](parsePolicy(textOf(request), 'body', refuseFiles)))
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

  app.post('/v1/limits/rollback', async (request) => {
    const parameters = parametersOf(request)
    const to = versionSchema.parse(parameters['version'])
    const { policy } = service.versionOf(to)
    const expected = expectedOf(parameters)
    return { Version: await change({ policy, origin: `rollback to ${to}`, who: whoOf(request), expected }) }
  })

  app.get('/v1/limits/metrics', (_, reply) => reply.type('text/plain; version=0.0.4').send(metricsOf(service)))
}

/** The version that the caller has seen, if given. */
function expectedOf(parameters: unknown): number | undefined {
  const { expected } = parameters as { expected?: string }
  return expected === undefined ? undefined : versionSchema.parse(expected)
}

/** A policy from the network must not read files of this machine. */
function refuseFiles(): never {
  throw new Error('a policy sent to the service must contain the values of its dicts, not files')
}

const writeAs = {
  text: writePolicyText,
  yaml: (policy: Parameters<typeof writePolicyText>[0]) => writePolicyDocument(policy, 'yaml'),
  json: (policy: Parameters<typeof writePolicyText>[0]) => writePolicyDocument(policy, 'json'),
}
const typeOf = { text: 'text/plain; charset=utf-8', yaml: 'application/yaml', json: 'application/json; charset=utf-8' }

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
      help: 'Calls that a rule applied to, and those over its limit.',
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

/** Problem details as in RFC 9457. */
export function sendProblem(error: FastifyError | Error, _: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code = error instanceof FirebreakError ? error.code : undefined
  const status =
    error instanceof PolicyError
      ? 422
      : code === 'FB_POLICY_CONFLICT'
        ? 409
        : code === 'FB_POLICY_VERSION' || code === 'FB_RULE_UNKNOWN'
          ? 404
          : error instanceof z.ZodError || error instanceof SyntaxError
            ? 400
            : ((error as FastifyError).statusCode ?? (code === undefined || isStoreTrouble(code) ? 503 : 400))
  const detail = error instanceof z.ZodError ? z.prettifyError(error) : error.message
  const place = error instanceof PolicyError ? { file: error.file, line: error.line } : {}
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ status, title: titles[status] ?? 'Error', detail, ...(code && { code }), ...place })
}

/** Codes about the store, not about the call. */
function isStoreTrouble(code: string): boolean {
  return !['FB_OPTION_INVALID', 'FB_LIMIT_COST', 'FB_POLICY_INVALID'].includes(code)
}

const titles: Record<number, string> = {
  400: 'Bad request',
  405: 'Method not allowed',
  404: 'Not found',
  409: 'Another version of the policy is in force',
  422: 'The policy is not valid; the one in force stays',
  503: 'The store of counters cannot be reached',
}
