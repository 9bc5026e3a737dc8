import { describeValue, parseKeyText, ReportRefusedError, type TextReportVersion } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { z } from 'zod'
import { dryRun } from '../decide/dry-run.ts'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import type { HubViews } from '../views/hub-views.ts'
import type { ApiRoute } from './api-route.ts'
import { keyActionRoutes } from './key-action-routes.ts'
import { tableRoute } from './table-route.ts'

const limit = (fallback: number, max: number) => z.coerce.number().int().min(1).max(max).default(fallback)
const keysQuery = z.strictObject({
  limit: limit(100, 1000),
  state: z.enum(['cold', 'warming', 'hot', 'cooling']).optional(),
})
const historyQuery = z.strictObject({ since: z.coerce.number().min(0).default(0), limit: limit(200, 10_000) })
const limitQuery = z.strictObject({ limit: limit(200, 10_000) })
const switchBody = z.strictObject({ isOff: z.boolean() })
/** A rule is parsed by core, which names fields and suggests better ones; here only its outer shape is told. */
const ruleBody = z.looseObject({}).describe('a rule as users write it; see docs/reference/rules.md')
const reportBody = z.string().describe('a text report; see docs/reference/api.md')

/** The hub's own API. */
export function hubRoutes(core: HubCore, views: HubViews): ApiRoute[] {
  const { fleet, keys, store, alarms, watchers } = core
  return [
    shows('/v1/overview', 'What is hot now, and are we safe', 'Overview', () => views.overview()),
    shows('/v1/keys', 'The hottest keys', '{ keys: KeyView[] }', keysQuery, ({ limit: count, state }) => ({
      keys: views.keys({ limit: count, ...(state !== undefined && { state }) }),
    })),
    {
      method: 'GET',
      path: '/v1/keys/:cluster/:key',
      summary: 'One key with its hosts and events; the key is written as key text',
      role: 'viewer',
      answer: 'KeyDetail',
      async handle({ params }) {
        // Fastify has undone one percent-encoding, the URL's; the key's own is undone here.
        const key = parseKeyText(params['key']!)
        if (key === undefined)
          throw new ApiProblem(400, 'FB_INPUT_INVALID', 'the key is not percent-encoded text', 'key')
        const detail = await views.key(params['cluster']!, key)
        if (detail !== undefined) return detail
        throw new ApiProblem(404, 'FB_NOT_FOUND', `the key ${describeValue(params['key'])} is not tracked now`, 'key')
      },
    },
    shows('/v1/hosts', 'The processes that report', '{ hosts: HostView[] }', () => {
      const now = core.now()
      return { hosts: [...fleet.hosts.all()].map((instance) => instance.view(now)) }
    }),
    tableRoute(core),
    shows(
      '/v1/history',
      'What was decided, newest first',
      '{ events: HistoryEvent[] }',
      historyQuery,
      async (query) => ({ events: await store.history(query) }),
    ),
    shows('/v1/audit', 'Who changed what, newest first', '{ entries: AuditEntry[] }', limitQuery, async (query) => ({
      entries: await store.audit(query.limit),
    })),
    shows('/v1/slots', 'The busiest slots', '{ slots: SlotView[] }', limitQuery, (query) => ({
      slots: keys.slots.busiest(core.now(), query.limit),
    })),
    shows('/v1/alarms', 'What is broken right now', '{ alarms: AlarmView[] }', () => ({ alarms: alarms.list() })),
    shows('/v1/watchers', 'The sources of changes that this hub runs', '{ watchers: WatcherView[] }', () => ({
      watchers: watchers.views(),
    })),
    shows(
      '/v1/staleness',
      'How stale cached values were seen to be, by rule',
      '{ rules: RuleStalenessView[] }',
      () => ({
        rules: fleet.staleness.views((id) => core.rule(id)),
      }),
    ),
    {
      method: 'POST',
      path: '/v1/switch',
      summary: 'The kill switch: every shield becomes a plain pass-through, or comes back',
      role: 'operator',
      body: switchBody,
      answer: '{ isOff, isStored }',
      async handle({ body, caller, request }) {
        const { isOff } = body as z.infer<typeof switchBody>
        return { isOff, isStored: await core.setOff(isOff, caller.who, changeName(request)) }
      },
    },
    ...keyActionRoutes(core),
    ...ruleRoutes(core),
    reportRoute(core),
  ]
}

function ruleRoutes(core: HubCore): ApiRoute[] {
  const known = (id: string) => {
    const rule = core.rule(id)
    if (rule === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `there is no rule ${describeValue(id)}`, 'id')
    return rule
  }
  const rulePath = { path: '/v1/rules/:id', answer: '{ rule: Rule }' }
  return [
    shows('/v1/rules', 'All rules, in the order in which they are tried', '{ rules: Rule[], version }', () =>
      core.rules(),
    ),
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
      summary: 'Adds or replaces a rule; it is in force when the answer comes',
      role: 'operator',
      body: ruleBody,
      async handle({ params, body, caller, request }) {
        const rule = parseRule({ id: params['id'], ...(body as object) })
        if (rule.id !== params['id']) {
          const message = `id is "${rule.id}", but the address says "${params['id']}"`
          throw new ApiProblem(400, 'FB_RULE_INVALID', message, 'id')
        }
        await core.putRule(rule, caller.who, changeName(request))
        return { rule }
      },
    },
    {
      method: 'POST',
      path: '/v1/rules/:id/dry-run',
      summary: 'What a rule would have done in the last hour; nothing is changed',
      // It costs the hub as much as an hour of that rule.
      role: 'operator',
      body: ruleBody,
      answer: 'DryRunView',
      handle({ params, body }) {
        const rule = parseRule({ id: params['id'], ...(body as object) })
        return dryRun(rule, core.keys.recorder.seconds, core.options.nodeOfSlot)
      },
    },
    {
      ...rulePath,
      method: 'DELETE',
      summary: 'Deletes a rule; keys that are hot by it are let go at once',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller, request }) {
        await core.deleteRule(known(params['id']!).id, caller.who, changeName(request))
      },
    },
  ]
}

function reportRoute(core: HubCore): ApiRoute {
  return {
    method: 'POST',
    path: '/v1/reports',
    summary: 'Takes a text report (Content-Type: text/plain, or text/plain; v=2)',
    role: 'app',
    body: reportBody,
    bodyType: 'text/plain',
    // Larger than what is taken, so that a report that is too large is refused by us, counted and explained.
    bodyLimit: Math.max(16 * 1024 * 1024, core.options.maxReportBytes * 2),
    answer: 'nothing',
    status: 204,
    handle({ body, request, caller }) {
      const version = request.headers['content-type']?.match(/;\s*v=(\w+)/)?.[1] ?? '1'
      if (version !== '1' && version !== '2') {
        core.collector.countRefusal('version')
        throw new ReportRefusedError(
          'version',
          `report refused: text version ${version} is not known here; 1 and 2 are`,
        )
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

/** The caller's own name for a change, by which one that is sent twice is made once. */
function changeName({ headers }: { readonly headers: Record<string, unknown> }): string | undefined {
  const given = headers['idempotency-key']
  return typeof given === 'string' && /^[\w.:-]{1,64}$/.test(given) ? given : undefined
}

type Show<Query> = (query: Query) => unknown

/** A route that shows a viewer something, with a query where there is a schema for it. */
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
