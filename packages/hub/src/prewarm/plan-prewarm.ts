import { actingLevel, type RuleSet } from '@firebreak/core/rules'
import { ApiProblem } from '../errors.ts'

/** What the hub knows when a job is requested. */
export interface PrewarmGround {
  readonly rules: RuleSet
  /** Clusters that sensors at any hub have named. */
  readonly clusters: readonly string[]
  /** Services with a process at any hub. */
  readonly services: readonly string[]
}

/** What should be warmed, as requested. */
export interface PrewarmWish {
  /** Undefined: the only known cluster. */
  readonly redisClusterId?: string | undefined
  readonly keys: readonly string[]
  /** Empty: all connected services. */
  readonly services: readonly string[]
  /** False: the services of that time are not known yet. */
  readonly isNow: boolean
}

/** Keys that one rule handles in the same way. */
export interface PrewarmStep {
  readonly ruleId: string
  /** Counted from 1: the first level that does something. */
  readonly level: number
  /** The strategies that the level allows. */
  readonly strategies: readonly string[]
  readonly services: readonly string[]
  readonly keys: readonly string[]
}

export interface PrewarmPlan {
  readonly redisClusterId: string
  readonly steps: readonly PrewarmStep[]
}

const maxNamed = 5

/**
 * Says what a job would do, or refuses it: an unknown cluster or service, or a key for which no rule does anything, is
 * a mistake that would otherwise only be noticed when the crowd is there.
 */
export function planPrewarm(ground: PrewarmGround, wish: PrewarmWish): PrewarmPlan {
  const redisClusterId = clusterOf(ground, wish.redisClusterId)
  const services = servicesOf(ground, wish)
  const steps = new Map<string, PrewarmStep & { readonly services: string[]; readonly keys: string[] }>()
  const unmatched: string[] = []
  for (const key of wish.keys) {
    let matched = 0
    for (const service of services) {
      const rule = ground.rules.rules[ground.rules.match(redisClusterId, service, key)]
      const acting = rule?.mode === 'on' ? actingLevel(rule) : undefined
      if (rule === undefined || acting === undefined) continue
      matched++
      const step = steps.get(rule.id) ?? {
        ruleId: rule.id,
        level: acting.index + 1,
        strategies: acting.level.strategies.map(({ strategy }) => strategy),
        services: [],
        keys: [],
      }
      steps.set(rule.id, step)
      if (service !== '' && !step.services.includes(service)) step.services.push(service)
      if (step.keys.at(-1) !== key) step.keys.push(key)
    }
    // Every named service must have a matching rule; of those that merely happen to be connected, some may not use the
    // key.
    if (matched === 0 || (wish.services.length > 0 && matched < services.length)) unmatched.push(key)
  }
  if (unmatched.length === 0) return { redisClusterId, steps: [...steps.values()] }
  const whom = wish.services.length > 0 ? ` for ${named(wish.services)}` : ''
  throw refusal(
    'keys',
    `no rule that is on and does more than Observe matches ${named(unmatched)}${whom} on the cluster ${redisClusterId}; nothing was warmed. Add one with "firebreak rules apply"`,
  )
}

function clusterOf({ rules, clusters }: PrewarmGround, asked: string | undefined): string {
  const inRules = rules.rules.map((rule) => rule.redisClusterId).filter((id) => id !== '*')
  const known = [...new Set([...clusters, ...inRules])].sort()
  if (asked === undefined && known.length === 1) return known[0]!
  if (asked !== undefined && known.includes(asked)) return asked
  const there = known.length === 0 ? 'no sensor has reported any yet' : `there are ${named(known, 20)}`
  const what = asked === undefined ? 'say which cluster' : `unknown cluster "${asked}"`
  throw refusal('redisClusterId', `${what}; ${there}`)
}

function servicesOf({ rules, services }: PrewarmGround, wish: PrewarmWish): readonly string[] {
  const known = new Set([...services, ...rules.rules.map((rule) => rule.serviceId).filter((id) => id !== '*')])
  const unknown = wish.services.filter((service) => !known.has(service))
  if (unknown.length > 0) {
    const there = known.size === 0 ? 'none is connected' : `there are ${named([...known].sort(), 20)}`
    throw refusal('services', `unknown service ${named(unknown)}; ${there}`)
  }
  if (wish.services.length > 0) return wish.services
  if (services.length > 0) return services
  if (wish.isNow)
    throw refusal('services', 'no service is connected, so nobody would get the keys; schedule it for a time (at)')
  return ['']
}

function named(names: readonly string[], most = maxNamed): string {
  const rest = names.length > most ? ` and ${names.length - most} more` : ''
  return `${names.slice(0, most).join(', ')}${rest}`
}

function refusal(field: string, sentence: string): ApiProblem {
  return new ApiProblem(400, 'FB_PREWARM_INVALID', `${field}: ${sentence}`, field)
}
