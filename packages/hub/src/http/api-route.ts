import { describeValue } from '@firebreak/core'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Role } from '../access/credential.ts'
import { ApiProblem } from '../errors.ts'
import type { AccessGuard, Caller } from './access-guard.ts'
import { answerSchemas } from './answer-schemas.ts'
import { bodyExamples } from './api-examples.ts'

/** Who may use a route. `app`: sensors, with an app token; `app or viewer`: either. */
export type RouteRole = Role | 'app' | 'app or viewer'

/** One route of the API: registered with Fastify and written into the OpenAPI document from the same lines. */
export interface ApiRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** With Fastify's `:name` for parameters. */
  readonly path: string
  readonly summary: string
  readonly role: RouteRole
  readonly query?: z.ZodType
  readonly body?: z.ZodType
  /** The body's type, if it is not JSON. @default 'application/json' */
  readonly bodyType?: string
  /** Maximum bytes of the body. @default Fastify's, 1 MiB */
  readonly bodyLimit?: number
  /** The answer's type; `npm run references` makes its schema of it. Or `nothing`. */
  readonly answer: string
  /** @default 200 */
  readonly status?: number
  handle(call: ApiCall): unknown
}

/** A request that passed all checks. */
export interface ApiCall {
  readonly params: Readonly<Record<string, string>>
  readonly query: unknown
  readonly body: unknown
  readonly caller: Caller
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** Registers routes; input is validated before a handler sees it. */
export function registerRoutes(app: FastifyInstance, routes: readonly ApiRoute[], guard: AccessGuard): void {
  const callers = new WeakMap<FastifyRequest, Caller>()
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path,
      ...(route.bodyLimit !== undefined && { bodyLimit: route.bodyLimit }),
      // Before the body: an unauthenticated caller's is never read.
      onRequest: async (request) => {
        callers.set(request, callerOf(guard, request, route.role))
        checkBodyType(route, request)
      },
      async handler(request, reply) {
        const caller = callers.get(request)!
        const query = route.query === undefined ? undefined : parseInput(route.query, request.query, 'query')
        const body = route.body === undefined ? request.body : parseInput(route.body, request.body, '')
        const params = request.params as Record<string, string>
        const answer = await route.handle({ params, query, body, caller, request, reply })
        reply.code(route.status ?? 200)
        return answer ?? reply.send()
      },
    })
  }
}

/** Refuses a body of another type than the route's, and says which it takes. */
function checkBodyType({ body, bodyType = 'application/json' }: ApiRoute, { headers }: FastifyRequest): void {
  const hasBody = Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined
  if (body === undefined || !hasBody) return
  const given = headers['content-type']
  if (mediaTypeOf(given) === bodyType) return
  const taken = bodyType === 'text/plain' ? 'text/plain, or text/plain; v=2' : bodyType
  const what = given === undefined ? 'the content-type is missing' : `the content-type is ${describeValue(given)}`
  throw new ApiProblem(
    415,
    'FB_INPUT_INVALID',
    `${what}; this call takes ${taken} (curl: -H 'content-type: ${bodyType}')`,
    'content-type',
  )
}

/** Without its parameters, in lower case. */
function mediaTypeOf(header = ''): string {
  return header.replace(/;.*$/s, '').trim().toLowerCase()
}

function callerOf(guard: AccessGuard, request: FastifyRequest, role: RouteRole): Caller {
  if (role === 'app or viewer') {
    // Without tokens everyone here also counts as a person.
    const app = guard.hasTokens ? guard.appOf(request.raw) : undefined
    return app === undefined ? guard.authorize(request.raw, 'viewer') : callerOf(guard, request, 'app')
  }
  if (role !== 'app') return guard.authorize(request.raw, role)
  return guard.authorizeApp(request.raw)
}

function parseInput(schema: z.ZodType, value: unknown, place: string): unknown {
  const result = schema.safeParse(value ?? {})
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const field = [place, ...issue.path.map(String), unknown]
    .filter((part) => part !== undefined && part !== '')
    .join('.')
  throw new ApiProblem(400, 'FB_INPUT_INVALID', `${field || 'the body'}: ${issue.message}`, field || 'body')
}

/** The OpenAPI 3.1 document of the routes. */
export function openApiOf(routes: readonly ApiRoute[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    const parameters = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    }))
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = {
      summary: route.summary,
      'x-role': route.role,
      parameters: [...parameters, ...queryParameters(route.query)],
      ...(route.body !== undefined && {
        requestBody: {
          required: true,
          content: {
            [route.bodyType ?? 'application/json']: {
              schema: schemaOf(route.body),
              example: bodyExamples[`${route.method} ${route.path}`],
            },
          },
        },
      }),
      responses: {
        [String(route.status ?? 200)]: answerOf(route.answer),
        default: { description: 'an error', content: { 'application/json': { schema: errorSchema } } },
      },
    }
  }
  const components = { schemas: answerSchemas.types }
  return { openapi: '3.1.0', info: { title: 'Firebreak hub', version }, paths, components }
}

function answerOf(description: string): Record<string, unknown> {
  const schema = answerSchemas.answers[description]
  return { description, ...(schema !== undefined && { content: { 'application/json': { schema } } }) }
}

const errorSchema = {
  type: 'object',
  required: ['code', 'message'],
  properties: { code: { type: 'string' }, message: { type: 'string' }, field: { type: 'string' } },
}

function schemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<
    string,
    unknown
  >
  return rest
}

function queryParameters(schema: z.ZodType | undefined): Record<string, unknown>[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemaOf(schema) as {
    properties?: Record<string, unknown>
    required?: string[]
  }
  return Object.entries(properties).map(([name, value]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema: value,
  }))
}
