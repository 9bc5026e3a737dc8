import { isAutoRule, type Rule, type RuleScope, RuleSet } from '@firebreak/core/rules'

/**
 * From this part of its threshold on a key is near: it has an object, with its heat by service, its state and its hosts.
 * It must be below 1 (what is only counted covers 90 to 100 % of its rule's window, `HeatRings`); the less, the more keys
 * have an object.
 * Where many hubs share the sensors, it is divided: a key is told to the others from T/(2·hubs) on.
 */
const nearPart = 1 / 2
/** A key of fewer accesses a second is not worth handling however full its node is; see `NodeLoads`. */
const autoNearPerSecond = 20
/** Where no rule matches, a key's rate is shown all the same, over this window. */
export const plainWindowMs = 1000

/** What decides when the keys of one rule are near. */
export interface NearLine {
  readonly windowMs: number
  readonly heat: number
}

/** Where no rule matches, only the hottest are of interest. */
const noRule: NearLine = { windowMs: plainWindowMs, heat: Number.POSITIVE_INFINITY }

/** From what heat on a key is near, by its rule; the first line is for the keys of no rule. */
export class NearLines {
  readonly lines: readonly NearLine[]
  readonly #anyService: RuleSet

  /** `hubCount`: hubs that share the sensors. */
  constructor(rules: readonly Rule[], hubCount: number) {
    const part = nearPart / hubCount
    // Whatever service reports the key: one whose winning rule is of a single service is near from the start.
    this.#anyService = new RuleSet(rules.map((rule) => ({ ...rule, serviceId: '*' })))
    // In the order of the indexes that the scopes of `#anyService` give.
    this.lines = [noRule, ...new RuleSet(rules).rules.map((rule) => nearLineOf(rule, part))]
  }

  /** Finds a line's number for keys of a cluster: the scope's match, plus one. */
  scope(redisClusterId: string): RuleScope {
    return this.#anyService.scope(redisClusterId, '')
  }

  lineOf(redisClusterId: string, key: string): NearLine {
    return this.lines[this.scope(redisClusterId).match(key) + 1]!
  }
}

/** A count of accesses bounds no writes, bytes or shares, nor one service's part: such keys are near at once. */
function nearLineOf(rule: Rule, part: number): NearLine {
  const { windowMs, levels, serviceId } = rule
  if (isAutoRule(rule) && serviceId === '*') return { windowMs, heat: (autoNearPerSecond * part * windowMs) / 1000 }
  const isByAccesses = levels.every(({ measure, enterShare }) => measure === 'accesses' && enterShare === undefined)
  // From where it is held on, a key is warming.
  const near = levels.map(({ enter, exit }) => Math.min(enter * part, exit))
  const heat = isByAccesses && serviceId === '*' ? Math.min(...near) : 0
  return { windowMs, heat }
}
