import {
  describeValue,
  parseKeyText,
  parseRule,
  ReportRefusedError,
  type TextReportVersion,
  toStrategyList,
} from '@firebreak/core'
import { z } from 'zod'
import { dryRun } from '../decide/dry-run.ts'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import type { HubViews } from '../views/hub-views.ts'
import type { AccessGuard } from './access-guard.ts'
import type { ApiRoute } from './api-route.ts'

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
export function hubRoutes(core: HubCore, views: HubViews, guard: AccessGuard): ApiRoute[] {
  return [
    {
      method: 'GET',
      path: '/v1/overview',
      summary: 'What is hot now, and are we safe',
      role: 'viewer',
      answer: 'Overview',
      handle: () => views.overview(),
    },
    {
      method: 'GET',
      path: '/v1/keys',
      summary: 'The hottest keys',
      role: 'viewer',
      query: keysQuery,
      answer: '{ keys: KeyView[] }',
      handle({ query }) {
        const { limit: count, state } = query as z.infer<typeof keysQuery>
        return { keys: views.keys({ limit: count, ...(state !== undefined && { state }) }) }
      },
    },
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
    {
      method: 'GET',
      path: '/v1/hosts',
      summary: 'The processes that report',
      role: 'viewer',
      answer: '{ hosts: HostView[] }',
      handle() {
        const now = core.now()
        return { hosts: [...core.fleet.hosts.all()].map((instance) => instance.view(now)) }
      },
    },
    {
      method: 'GET',
      path: '/v1/table',
      summary: 'The strategy table',
      role: 'viewer',
      answer: '{ epoch, version, isOff, strategies: StrategyList }',
      handle() {
        const { epoch, version, isOff } = core.delivery
        return { epoch, version, isOff, strategies: toStrategyList(core.delivery.entries()) }
      },
    },
    {
      method: 'GET',
      path: '/v1/history',
      summary: 'What was decided, newest first',
      role: 'viewer',
      query: historyQuery,
      answer: '{ events: HistoryEvent[] }',
      async handle({ query }) {
        return { events: await core.store.history(query as z.infer<typeof historyQuery>) }
      },
    },
    {
      method: 'GET',
      path: '/v1/audit',
      summary: 'Who changed what, newest first',
      role: 'viewer',
      query: limitQuery,
      answer: '{ entries: AuditEntry[] }',
      async handle({ query }) {
        return { entries: await core.store.audit((query as z.infer<typeof limitQuery>).limit) }
      },
    },
    {
      method: 'GET',
      path: '/v1/slots',
      summary: 'The busiest slots',
      role: 'viewer',
      query: limitQuery,
      answer: '{ slots: SlotView[] }',
      handle: ({ query }) => ({
        slots: core.keys.slots.busiest(core.now(), (query as z.infer<typeof limitQuery>).limit),
      }),
    },
    {
      method: 'GET',
      path: '/v1/alarms',
      summary: 'What is broken right now',
      role: 'viewer',
      answer: '{ alarms: AlarmView[] }',
      handle: () => ({ alarms: core.alarms.list() }),
    },
    {
      method: 'GET',
      path: '/v1/watchers',
      summary: 'The sources of changes that this hub runs',
      role: 'viewer',
      answer: '{ watchers: WatcherView[] }',
      handle: () => ({ watchers: core.watchers.views() }),
    },
    {
      method: 'GET',
      path: '/v1/staleness',
      summary: 'How stale cached values were seen to be, by rule',
      role: 'viewer',
      answer: '{ rules: RuleStalenessView[] }',
      handle: () => ({ rules: core.fleet.staleness.views((id) => core.rule(id)) }),
    },
    {
      method: 'POST',
      path: '/v1/switch',
      summary: 'The kill switch: every shield becomes a plain pass-through, or comes back',
      role: 'operator',
      body: switchBody,
      answer: '{ isOff }',
      async handle({ body, caller }) {
        const { isOff } = body as z.infer<typeof switchBody>
        await core.setOff(isOff, caller.who)
        return { isOff }
      },
    },
    {
      method: 'GET',
      path: '/v1/tokens',
      summary: 'Who has a token, without the secrets',
      role: 'admin',
      answer: '{ apps: string[], people: { name, role }[] }',
      handle: () => guard.listed(),
    },
    ...ruleRoutes(core),
    reportRoute(core),
  ]
}

function ruleRoutes(core: HubCore): ApiRoute[] {
  return [
    {
      method: 'GET',
      path: '/v1/rules',
      summary: 'All rules, in the order in which they are tried',
      role: 'viewer',
      answer: '{ rules: Rule[], version }',
      handle: () => core.rules(),
    },
    {
      method: 'GET',
      path: '/v1/rules/:id',
      summary: 'One rule',
      role: 'viewer',
      answer: '{ rule: Rule }',
      handle({ params }) {
        const rule = core.rule(params['id']!)
        if (rule === undefined) throw noRule(params['id']!)
        return { rule }
      },
    },
    {
      method: 'PUT',
      path: '/v1/rules/:id',
      summary: 'Adds or replaces a rule; it is in force when the answer comes',
      role: 'operator',
      body: ruleBody,
      answer: '{ rule: Rule }',
      async handle({ params, body, caller }) {
        const given = body as Record<string, unknown>
        const rule = parseRule({ id: params['id'], ...given })
        if (rule.id !== params['id']) {
          throw new ApiProblem(
            400,
            'FB_RULE_INVALID',
            `id is "${rule.id}", but the address says "${params['id']}"`,
            'id',
          )
        }
        await core.putRule(rule, caller.who)
        return { rule }
      },
    },
    {
      method: 'POST',
      path: '/v1/rules/:id/dry-run',
      summary: 'What a rule would have done in the last hour; nothing is changed',
      role: 'viewer',
      body: ruleBody,
      answer: 'DryRunView',
      handle({ params, body }) {
        const rule = parseRule({ id: params['id'], ...(body as Record<string, unknown>) })
        return dryRun(rule, core.keys.recorder.seconds, core.options.nodeOfSlot)
      },
    },
    {
      method: 'DELETE',
      path: '/v1/rules/:id',
      summary: 'Deletes a rule; keys that are hot by it are let go at once',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        if (!(await core.deleteRule(params['id']!, caller.who))) throw noRule(params['id']!)
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
    handle({ body, request }) {
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
      )
    },
  }
}

function noRule(id: string): ApiProblem {
  return new ApiProblem(404, 'FB_NOT_FOUND', `there is no rule ${describeValue(id)}`, 'id')
}
