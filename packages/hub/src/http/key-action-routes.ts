import { createHash } from 'node:crypto'
import { describeValue, parseKeyText } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { HubCore } from '../hub-core.ts'
import type { ApiRoute } from './api-route.ts'

const forMs = z.number().int().min(1000).max(604_800_000).default(600_000)
const actionBody = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('cache'), forMs }),
  z.strictObject({
    action: z.literal('limit'),
    limit: z.number().min(1).max(1e12),
    onLimit: z.enum(['reject', 'stale', 'wait']).default('reject'),
    forMs,
  }),
  z.strictObject({ action: z.literal('copy'), copies: z.number().int().min(1).max(64).default(4), forMs }),
  z.strictObject({ action: z.literal('ignore'), forMs }),
])
type KeyAction = z.infer<typeof actionBody>

const actionPrefix = 'key:'
const maxNamed = 20

/** Higher than any priority that a person would choose. */
const priority = 1_000_000

/**
 * A user's temporary action on one key. It is a rule for that key alone with an expiry, so it is audited, stored,
 * shared between hubs and shown like any other, and undone by deleting it.
 */
export function keyActionRoutes(core: HubCore): ApiRoute[] {
  const path = '/v1/keys/:cluster/:key/action'
  return [
    {
      method: 'PUT',
      path,
      summary: 'Acts on one key for a while: cache it, copy it, limit it, or ignore it',
      role: 'operator',
      body: actionBody,
      answer: '{ rule: Rule }',
      async handle({ params, body, caller }) {
        const action = body as KeyAction
        const [redisClusterId, key] = keyOf(core, params)
        refuseUnknownCluster(core, redisClusterId)
        const rule = parseRule({
          id: actionId(redisClusterId, key),
          priority,
          redisClusterId,
          keys: [key],
          until: core.options.runtime.wallClock.now() + action.forMs,
          ...effectOf(action),
        })
        await core.putRule(rule, caller.who)
        return { rule }
      },
    },
    {
      method: 'DELETE',
      path,
      summary: 'Undoes the action on one key',
      role: 'operator',
      answer: 'nothing',
      status: 204,
      async handle({ params, caller }) {
        if (await core.deleteRule(actionId(...keyOf(core, params)), caller.who)) return
        const message = `nothing is in force for the key ${describeValue(params['key'])}: it has ended or been undone`
        throw new ApiProblem(404, 'FB_NOT_FOUND', message, 'key')
      },
    },
  ]
}

/** Hot from the first access on; an ignored key is never hot. */
function effectOf(action: KeyAction): object {
  switch (action.action) {
    case 'cache':
      return { threshold: 1, strategy: 'LocalCache' }
    case 'limit':
      return { threshold: 1, strategy: { strategy: 'RateLimit', limit: action.limit, onLimit: action.onLimit } }
    case 'copy':
      return { threshold: 1, strategy: { strategy: 'RedundantKeys', copyCount: action.copies } }
    case 'ignore':
      return { threshold: Number.MAX_SAFE_INTEGER, strategy: 'Observe' }
  }
}

/** One action per key: a new one replaces the last. */
function actionId(redisClusterId: string, key: string): string {
  return `${actionPrefix}${createHash('sha256').update(`${redisClusterId}\0${key}`).digest('hex').slice(0, 16)}`
}

/** On an unknown cluster an action would do nothing; a hub to which no sensor has named any cannot tell. */
function refuseUnknownCluster(core: HubCore, redisClusterId: string): void {
  const inRules = core.rules().rules.filter(({ id }) => !id.startsWith(actionPrefix))
  const named = inRules.map((rule) => rule.redisClusterId).filter((id) => id !== '*')
  const known = [...new Set([...core.fleet.hosts.clusters(), ...named])].sort()
  if (known.length === 0 || known.includes(redisClusterId)) return
  const rest = known.length > maxNamed ? ` and ${known.length - maxNamed} more` : ''
  const there = `${known.slice(0, maxNamed).join(', ')}${rest}`
  const message = `unknown cluster ${describeValue(redisClusterId)}: no sensor and no rule has named it; there are ${there}`
  throw new ApiProblem(400, 'FB_INPUT_INVALID', message, 'cluster')
}

function keyOf(core: HubCore, params: Readonly<Record<string, string>>): [redisClusterId: string, key: string] {
  const key = parseKeyText(params['key']!)
  if (key === undefined) throw new ApiProblem(400, 'FB_INPUT_INVALID', 'the key is not percent-encoded text', 'key')
  return [params['cluster']!, core.outside(key)]
}
