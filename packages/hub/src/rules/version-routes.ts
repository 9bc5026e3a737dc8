import { z } from 'zod'
import { ApiProblem } from '../errors.ts'
import type { ApiRoute } from '../http/api-route.ts'
import type { HubCore } from '../hub-core.ts'
import { maxVersions, rulesAt, ruleVersions, stepsTo } from './rule-versions.ts'

const versionsQuery = z.strictObject({ limit: z.coerce.number().int().min(1).max(maxVersions).default(100) })
const rollbackBody = z.strictObject({ version: z.number().int().min(0) })
/** Audit entries searched for changes of rules. */
const maxAudit = 10_000

/** Versions of the rules: what they were, what has changed since, and how to restore them. */
export function versionRoutes(core: HubCore): ApiRoute[] {
  const versions = async () => ruleVersions(await core.store.audit(maxAudit), core.rules().version)
  const at = async (version: number) => {
    const found = rulesAt(await versions(), core.rules().rules, version)
    if (found !== undefined) return found
    throw new ApiProblem(404, 'FB_NOT_FOUND', `version ${version} of the rules is no longer known`, 'version')
  }
  return [
    {
      method: 'GET',
      path: '/v1/rules/versions',
      summary: 'Changes of the rules, newest first, and how many sensors are up to date',
      role: 'viewer',
      query: versionsQuery,
      answer: '{ versions: RulesVersionView[], version: number, sensors: { total: number, current: number } }',
      async handle({ query }) {
        const { limit } = query as z.infer<typeof versionsQuery>
        const { version } = core.rules()
        return { versions: (await versions()).slice(0, limit), version, sensors: sensorsOf(core) }
      },
    },
    {
      method: 'GET',
      path: '/v1/rules/versions/:version',
      summary: 'The rules as they were after a change, and what has changed since',
      role: 'viewer',
      answer: '{ version: number, rules: Rule[], changes: RulesVersionView[] }',
      async handle({ params }) {
        const version = Number(params['version'])
        if (!Number.isSafeInteger(version) || version < 0)
          throw new ApiProblem(400, 'FB_INPUT_INVALID', 'version must be a number', 'version')
        return { version, ...(await at(version)) }
      },
    },
    {
      method: 'POST',
      path: '/v1/rules/rollback',
      summary: 'Restores the rules as they were after a change; each step is a change of its own',
      role: 'operator',
      body: rollbackBody,
      answer: '{ version: number, changes: number }',
      async handle({ body, caller }) {
        const { version } = body as z.infer<typeof rollbackBody>
        const { put, remove } = stepsTo(
          core.rules().rules,
          (await at(version)).rules,
          core.options.runtime.wallClock.now(),
        )
        for (const rule of put) await core.putRule(rule, caller.who)
        for (const id of remove) await core.deleteRule(id, caller.who)
        return { version: core.rules().version, changes: put.length + remove.length }
      },
    },
  ]
}

/** Connected sensors, and those that have the newest table of their service. */
function sensorsOf({ fleet, delivery }: HubCore): { readonly total: number; readonly current: number } {
  const connected = [...fleet.hosts.all()].filter(({ connections }) => connections > 0)
  const current = connected.filter(({ serviceId, tableVersion }) => tableVersion >= delivery.view(serviceId).version)
  return { total: connected.length, current: current.length }
}
