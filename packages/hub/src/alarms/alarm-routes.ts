import { describeValue } from '@firebreak/core'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubCore } from '../hub-core.ts'
import type { AlarmNotice } from './alarm-webhooks.ts'
import { type AlertRoute, maxRoutes, viewOf } from './alert-routes.ts'
import { pagerDutyUrl } from './alert-shapes.ts'

const alarmsQuery = z.strictObject({ all: z.enum(['true', 'false']).default('false') })
const silenceBody = z.strictObject({
  forMs: z
    .number()
    .int()
    .min(1000)
    .max(31 * 86_400_000)
    .default(3_600_000),
  why: z.string().max(500).default(''),
})
const routeBody = z.strictObject({
  shape: z.enum(['slack', 'dingtalk', 'feishu', 'teams', 'pagerduty', 'plain']),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional(),
  secret: z.string().min(1).max(500).optional(),
  severity: z.enum(['warning', 'critical']).default('warning'),
  alarms: z.array(z.string().min(1).max(200)).max(100).default([]),
  isEnabled: z.boolean().default(true),
})
const deliveriesQuery = z.strictObject({ limit: z.coerce.number().int().min(1).max(1000).default(200) })

/** Alarms, their acknowledgements and silences, and where they are sent. */
export function alarmRoutes(core: HubCore): ApiRoute[] {
  const { desk, alertRoutes, journal } = core
  const known = (id: string) => {
    const alarm = desk.get(id)
    if (alarm === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `unknown alarm ${describeValue(id)}`, 'id')
    return alarm
  }
  const knownRoute = (name: string) => {
    const route = alertRoutes.get(name)
    if (route === undefined) throw new ApiProblem(404, 'FB_NOT_FOUND', `unknown route ${describeValue(name)}`, 'name')
    return route
  }
  const nothing = { answer: 'nothing', status: 204 } as const
  return [
    {
      method: 'GET',
      path: '/v1/alarms',
      summary: 'What is broken right now; with all=true also what ended within the last day',
      role: 'viewer',
      query: alarmsQuery,
      answer: '{ alarms: AlarmView[] }',
      handle: ({ query }) => ({ alarms: desk.list((query as z.infer<typeof alarmsQuery>).all === 'true') }),
    },
    core.processAlarms.route(),
    {
      method: 'PUT',
      path: '/v1/alarms/:id/acknowledgement',
      summary: 'Acknowledges an alarm until it ends',
      role: 'operator',
      answer: 'AlarmView',
      async handle({ params, caller }) {
        const { id, state } = known(params['id']!)
        if (state === 'inactive')
          throw new ApiProblem(409, 'FB_ALARM_ENDED', `the alarm ${describeValue(id)} has ended`, 'id')
        await desk.acknowledge(id, { who: caller.who, at: core.now() })
        await journal.audit(caller.who, `acknowledge alarm ${id}`, null, null)
        return known(id)
      },
    },
    {
      ...nothing,
      method: 'DELETE',
      path: '/v1/alarms/:id/acknowledgement',
      summary: 'Withdraws the acknowledgement',
      role: 'operator',
      async handle({ params, caller }) {
        const { id, acknowledged } = known(params['id']!)
        await desk.acknowledge(id, undefined)
        await journal.audit(caller.who, `withdraw the acknowledgement of alarm ${id}`, acknowledged, null)
      },
    },
    {
      method: 'PUT',
      path: '/v1/alarms/:id/silence',
      summary: 'Silences the alarm until then: no route is notified',
      role: 'operator',
      body: silenceBody,
      answer: 'AlarmView',
      async handle({ params, body, caller }) {
        const { id, silence: before } = known(params['id']!)
        const { forMs, why } = body as z.infer<typeof silenceBody>
        const at = core.now()
        const silence = { who: caller.who, at, until: at + forMs, why }
        await desk.silence(id, silence)
        await journal.audit(caller.who, `silence alarm ${id}`, before ?? null, silence)
        return known(id)
      },
    },
    {
      ...nothing,
      method: 'DELETE',
      path: '/v1/alarms/:id/silence',
      summary: 'Ends the silence: routes are notified again',
      role: 'operator',
      async handle({ params, caller }) {
        const { id, silence: before } = known(params['id']!)
        await desk.silence(id, undefined)
        await journal.audit(caller.who, `end the silence of alarm ${id}`, before ?? null, null)
      },
    },
    {
      method: 'GET',
      path: '/v1/alert-routes',
      summary: 'Where alarms are sent',
      role: 'viewer',
      answer: '{ routes: AlertRouteView[] }',
      handle: () => ({ routes: alertRoutes.views() }),
    },
    {
      method: 'PUT',
      path: '/v1/alert-routes/:name',
      summary: 'Adds or replaces a route; its address is never shown again',
      // An address here makes the hub send requests to it.
      role: 'admin',
      body: routeBody,
      answer: 'AlertRouteView',
      async handle({ params, body, caller }) {
        const route = routeOf(params['name']!, body as z.infer<typeof routeBody>, alertRoutes.get(params['name']!))
        const before = alertRoutes.get(route.name)
        if (before === undefined && alertRoutes.size >= maxRoutes)
          throw new ApiProblem(409, 'FB_INPUT_INVALID', `there are ${maxRoutes} routes, the maximum`, 'name')
        await alertRoutes.save(route)
        const what = `${before === undefined ? 'add' : 'change'} alert route ${route.name}`
        await journal.audit(caller.who, what, before === undefined ? null : viewOf(before), viewOf(route))
        return viewOf(route)
      },
    },
    {
      ...nothing,
      method: 'DELETE',
      path: '/v1/alert-routes/:name',
      summary: 'Deletes a route',
      role: 'admin',
      async handle({ params, caller }) {
        const route = knownRoute(params['name']!)
        await alertRoutes.delete(route.name)
        await journal.audit(caller.who, `delete alert route ${route.name}`, viewOf(route), null)
      },
    },
    {
      method: 'POST',
      path: '/v1/alert-routes/:name/test',
      summary: 'Sends a test notice now and returns the result',
      role: 'operator',
      answer: 'AlertDelivery',
      async handle({ params, caller }) {
        const { name } = knownRoute(params['name']!)
        const delivery = await alertRoutes.test(name, testNotice(core, caller.who))
        await journal.audit(caller.who, `test alert route ${name}`, null, null)
        return delivery
      },
    },
    {
      method: 'GET',
      path: '/v1/alert-deliveries',
      summary: 'Results of notices, newest first',
      role: 'viewer',
      query: deliveriesQuery,
      answer: '{ deliveries: AlertDelivery[] }',
      handle: ({ query }) => ({
        deliveries: alertRoutes.deliveries((query as z.infer<typeof deliveriesQuery>).limit),
      }),
    },
  ]
}

/** If the address or secret is omitted, the route keeps its previous one. */
function routeOf(name: string, body: z.infer<typeof routeBody>, before: AlertRoute | undefined): AlertRoute {
  if (!/^[\w .-]{1,64}$/.test(name))
    throw new ApiProblem(400, 'FB_INPUT_INVALID', 'name: at most 64 letters, digits, spaces, dots and dashes', 'name')
  const same = before?.shape === body.shape ? before : undefined
  const url = body.url ?? same?.url ?? (body.shape === 'pagerduty' ? pagerDutyUrl : undefined)
  if (url === undefined)
    throw new ApiProblem(400, 'FB_INPUT_INVALID', 'url: the address of the webhook is missing', 'url')
  const secret = body.secret ?? same?.secret
  if (body.shape === 'pagerduty' && secret === undefined)
    throw new ApiProblem(400, 'FB_INPUT_INVALID', 'secret: PagerDuty needs the routing key of its service', 'secret')
  const { shape, severity, alarms, isEnabled } = body
  return { name, shape, url, ...(secret !== undefined && { secret }), severity, alarms, isEnabled }
}

function testNotice(core: HubCore, who: string): AlarmNotice {
  const at = core.now()
  const cause = `${who} tests this route; nothing is wrong`
  const alarm = { id: 'test', severity: 'warning', since: at, cause, count: 1, retry: '' } as const
  return { event: 'test', hubId: core.options.hubId, at, alarm }
}
