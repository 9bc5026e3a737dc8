import { createHash } from 'node:crypto'
import { describeValue, type HubView, parseKeyText, ReportRefusedError, type TextReportVersion } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { alarmRoutes } from '../alarms/alarm-routes.ts'
import { ApiProblem } from '../errors.ts'
import { forecastRoutes } from '../forecast/forecast-routes.ts'
import { historyRoutes } from '../history/history-routes.ts'
import type { HubCore } from '../hub-core.ts'
import { versionRoutes } from '../rules/version-routes.ts'
import type { HubViews } from '../views/hub-views.ts'
import { keyOrders } from '../views/key-query.ts'
import type { Caller } from './access-guard.ts'
import type { ApiRoute } from './api-route.ts'
import { keyActionRoutes } from './key-action-routes.ts'
import { tableRoute } from './table-route.ts'

const limit = (fallback: number, max: number) => z.coerce.number().int().min(1).max(max).default(fallback)
const name = z.string().min(1).max(1024).optional()
const keyFilter = {
  state: z.enum(['cold', 'warming', 'hot', 'cooling']).optional(),
  match: name,
  cluster: name,
  group: name,
  service: name,
  rule: name,
  strategy: z.enum(['LocalCache', 'RedundantKeys', 'RateLimit', 'Combine', 'Observe']).optional(),
  handling: z.enum(['handled', 'observed', 'unhandled']).optional(),
}
const keysQuery = z.strictObject({
  ...keyFilter,
  limit: limit(100, 1000),
  offset: z.coerce.number().int().min(0).max(1_000_000).default(0),
  sort: z.enum(keyOrders).default('heat'),
})
const keyGroupsQuery = z.strictObject({ ...keyFilter, limit: limit(100, 1000) })
const limitQuery = z.strictObject({ limit: limit(200, 10_000) })
const auditQuery = z.strictObject({ limit: limit(200, 10_000), skip: z.coerce.number().int().min(0).default(0) })
const switchBody = z.strictObject({ isOff: z.boolean() })
/** Core parses the rule and reports invalid fields; only the outer form is described here. */
const rolloutBody = z.strictObject({
  percent: z.number().int().min(0).max(100),
  steps: z.array(z.number().int().min(1).max(100)).max(100).optional(),
  stepMs: z.number().int().min(1000).max(86_400_000).optional(),
})
const ruleBody = z.looseObject({}).describe('a rule as users write it; see docs/reference/rules.md')
const reportBody = z.string().describe('a text report; see docs/reference/api.md')

/** The hub's own API. */
export function hubRoutes(core: HubCore, views: HubViews): ApiRoute[] {
  const { fleet, keys, store, watchers } = core
  return [
    shows('/v1/overview', 'What is hot now, and whether it is under control', 'Overview', () => views.overview()),
    shows('/v1/keys', 'The hottest keys', '{ keys: KeyView[], total: number }', keysQuery, (query) =>
      views.page(query),
    ),
    shows('/v1/key-groups', 'Keys summed by prefix', '{ groups: KeyGroupView[] }', keyGroupsQuery, (query) => ({
      groups: views.keyGroups(query).slice(0, query.limit),
    })),
    {
      method: 'GET',
      path: '/v1/keys/:cluster/:key',
      summary: 'One key with its hosts and events; the key is written as key text',
      role: 'viewer',
      answer: 'KeyDetail',
      async handle({ params }) {
        // Fastify has decoded the URL's percent-encoding; the key's own is decoded here.
        const key = parseKeyText(params['key']!)
        if (key === undefined)
          throw new ApiProblem(400, 'FB_INPUT_INVALID', 'the key is not percent-encoded text', 'key')
        const detail = await views.key(params['cluster']!, core.outside(key))
        if (detail !== undefined) return detail
        throw new ApiProblem(
          404,
          'FB_NOT_FOUND',
          `the key ${describeValue(params['key'])} is not currently tracked`,
          'key',
        )
      },
    },
    shows('/v1/hosts', 'The processes that report', '{ hosts: HostView[] }', () => {
      return { hosts: fleet.hosts.views(core.now(), core.delivery.isPublished) }
    }),
    shows(
      '/v1/hubs',
      'The hubs that share the store, this one first',
      '{ hubs: HubView[] }',
      (): { hubs: HubView[] } => {
        const { hubId } = core.options
        const own = { hubId, isThis: true, processes: fleet.hosts.size, isAlone: keys.isAlone, ...core.ownFigures() }
        return { hubs: [own, ...keys.otherHubs.map((hub) => ({ ...hub, isThis: false, isAlone: false }))] }
      },
    ),
    tableRoute(core),
    shows(
      '/v1/audit',
      'Who changed what, newest first, and the head of the chain of entries; skip leaves out the newest',
      '{ entries: AuditEntry[], head: AuditHead | null, kept: number }',
      auditQuery,
      async (query) => {
        // The head first: anything added in between is newer, so a page-by-page reader can tell.
        const { head = null, kept } = await store.auditEnd()
        return { head, kept, entries: await store.audit(query.limit, query.skip) }
      },
    ),
    shows('/v1/slots', 'The busiest slots', '{ slots: SlotView[] }', limitQuery, (query) => ({
      slots: keys.slots.busiest(core.now(), query.limit),
    })),
    shows('/v1/watchers', 'The sources of changes that this hub runs', '{ watchers: WatcherView[] }', () => ({
      watchers: watchers.views(),
    })),
    shows(
      '/v1/autopilot',
      'The load of Redis nodes as seen by `auto` rules, and what those in shadow mode would do',
      'AutopilotView',
      () => keys.autopilot.view(core.now()),
    ),
    shows('/v1/staleness', 'Measured staleness of cached values, by rule', '{ rules: RuleStalenessView[] }', () => ({
      rules: fleet.staleness.views((id) => core.rule(id)),
    })),
    {
      method: 'POST',
      path: '/v1/switch',
      summary: 'The kill switch: turns every shield into a plain pass-through, or back on',
      role: 'operator',
      body: switchBody,
      answer: '{ isOff: boolean, isStored: boolean }',
      async handle({ body, caller, request }) {
        const { isOff } = body as z.infer<typeof switchBody>
        return { isOff, isStored: await core.setOff(isOff, caller.who, changeName(request, caller)) }
      },
    },
    ...keyActionRoutes(core),
    ...historyRoutes(core),
    ...forecastRoutes(core),
    ...alarmRoutes(core),
    ...versionRoutes(core),
    ...ruleRoutes(core),
    reportRoute(core),
  ]
}

function ruleRoutes(core: HubCore): ApiRoute[] {
  const known = (id: string) => {
    const rule = core.rule(id)
    if (rule === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `unknown rule ${describeValue(id)}`, 'id')
    return rule
  }
  const rulePath = { path: '/v1/rules/:id', answer: '{ rule: Rule }' }
  return [
    shows('/v1/rules', 'All rules, in order of precedence', 'RulesView', () => core.rules()),
    {
      ...rulePath,
      method: 'GET',
      summary: 'One rule',
      role: 'viewer',
      handle: ({ params }) => ({ rule: known(params['id']!) }),
    },
    {
      ...rulePath,
      method: 'PUT',
      summary: 'Adds or replaces a rule; it is in force when the answer arrives',
      role: 'operator',
      body: ruleBody,
      async handle({ params, body, caller, request }) {
        const rule = parseRule({ id: params['id'], ...(body as object) })
        if (rule.id !== params['id']) {
          const message = `id is "${rule.id}", but the address says "${params['id']}"`
          throw new ApiProblem(400, 'FB_RULE_INVALID', message, 'id')
        }
        await core.putRule(rule, caller.who, changeName(request, caller))
        return { rule }
      },
    },
    {
      method: 'POST',
      path: '/v1/rules/:id/rollout',
      summary: 'Gives a rule to a percentage of the processes; omitted fields stay unchanged',
      role: 'operator',
      body: rolloutBody,
      answer: '{ rule: Rule }',
      async handle({ params, body, caller, request }) {
        const { stopped: _, ...before } = known(params['id']!).rollout ?? {}
        const rollout = { ...before, ...(body as z.infer<typeof rolloutBody>) }
        const rule = parseRule({ ...known(params['id']!), rollout })
        await core.putRule(rule, caller.who, changeName(request, caller))
        return { rule }
      },
    },
    {
      ...rulePath,
      method: 'DELETE',
      summary: 'Deletes a rule; keys that it made hot are released at once',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller, request }) {
        const id = params['id']!
        // The same call again finds no rule, and has not failed.
        if (!(await core.deleteRule(id, caller.who, changeName(request, caller)))) known(id)
      },
    },
  ]
}

function reportRoute(core: HubCore): ApiRoute {
  return {
    method: 'POST',
    path: '/v1/reports',
    summary: 'Accepts a text report (Content-Type: text/plain, or text/plain; v=2)',
    role: 'app',
    body: reportBody,
    bodyType: 'text/plain',
    // Larger than accepted, so that we can refuse, count and explain a report that is too large.
    bodyLimit: Math.max(16 * 1024 * 1024, core.options.maxReportBytes * 2),
    answer: 'nothing',
    status: 204,
    handle({ body, request, caller }) {
      const version = request.headers['content-type']?.match(/;\s*v=(\w+)/)?.[1] ?? '1'
      if (version !== '1' && version !== '2') {
        core.collector.countRefusal('version')
        throw new ReportRefusedError('version', `report refused: text version ${version} is not supported; 1 and 2 are`)
      }
      const sequence = Number(request.headers['firebreak-sequence'] ?? Number.NaN)
      core.collector.collectText(
        body as string,
        Number(version) as TextReportVersion,
        Number.isSafeInteger(sequence) ? sequence : undefined,
        caller.app,
      )
    },
  }
}

/**
 * The caller's id for a change, so that one sent twice is made once. It is made of the change too: another change under
 * the same id would otherwise be taken for the first, and be neither made nor audited.
 */
function changeName({ headers, method, url, body }: FastifyRequest, { who }: Caller): string | undefined {
  const given = headers['idempotency-key']
  if (given === undefined) return undefined
  // A refused id must not look accepted: the change would be made twice.
  if (typeof given !== 'string' || !/^[\w.:-]{1,64}$/.test(given)) {
    const allowed = '1 to 64 letters, digits, "_", ".", ":" and "-"'
    throw new ApiProblem(400, 'FB_INPUT_INVALID', `idempotency-key must be ${allowed}`, 'idempotency-key')
  }
  return createHash('sha256')
    .update(JSON.stringify([given, who, method, url, body ?? null]))
    .digest('hex')
}

type Show<Query> = (query: Query) => unknown

/** A read-only route for viewers, with a query if it has a schema. */
function shows(path: string, summary: string, answer: string, handle: Show<void>): ApiRoute
function shows<Schema extends z.ZodType>(
  path: string,
  summary: string,
  answer: string,
  query: Schema,
  handle: Show<z.infer<Schema>>,
): ApiRoute
function shows(path: string, summary: string, answer: string, first: z.ZodType | Show<void>, second?: Show<never>) {
  const base = { method: 'GET', path, summary, role: 'viewer', answer } as const
  if (typeof first === 'function') return { ...base, handle: () => first() }
  return { ...base, query: first, handle: ({ query }: { query: unknown }) => second!(query as never) }
}
