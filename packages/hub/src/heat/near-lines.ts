import { isAutoRule, type Rule, type RuleScope, RuleSet } from '@firebreak/core/rules'

/**
 * A key is near from this fraction of its threshold: it has an object, with its heat by service, its state and its
 * hosts. It must be below 1 (counted-only keys cover 90 to 100 % of their rule's window, `HeatRings`); the lower, the
 * more keys have an object. If many hubs share the sensors, it is divided: a key is reported to the others from
 * T/(2·hubs).
 */
const nearPart = 1 / 2
/** A key with fewer accesses per second is not worth handling however full its node is; see `NodeLoads`. */
const autoNearPerSecond = 20
/** The window over which a key's rate is shown if no rule matches it. */
export const plainWindowMs = 1000

/** What decides when the keys of one rule are near. */
export interface NearLine {
  readonly windowMs: number
  readonly heat: number
}

/** If no rule matches, only the hottest keys matter. */
const noRule: NearLine = { windowMs: plainWindowMs, heat: Number.POSITIVE_INFINITY }

/** The heat from which a key is near, by its rule; the first line is for keys without a rule. */
export class NearLines {
  readonly lines: readonly NearLine[]
  readonly #anyService: RuleSet

  /** `hubCount`: number of hubs that share the sensors. */
  constructor(rules: readonly Rule[], hubCount: number) {
    const part = nearPart / hubCount
    // Whichever service reports the key: one whose winning rule is for a single service is near from the start.
    this.#anyService = new RuleSet(rules.map((rule) => ({ ...rule, serviceId: '*' })))
    // In the order of the indexes that `#anyService`'s scopes return.
    this.lines = [noRule, ...new RuleSet(rules).rules.map((rule) => nearLineOf(rule, part))]
  }

  /** Finds the line's number for keys of a cluster: the scope's match plus one. */
  scope(redisClusterId: string): RuleScope {
    return this.#anyService.scope(redisClusterId, '')
  }

  lineOf(redisClusterId: string, key: string): NearLine {
    return this.lines[this.scope(redisClusterId).match(key) + 1]!
  }
}

/** A count of accesses says nothing about writes, bytes, shares, or one service's part: such keys are near at once. */
function nearLineOf(rule: Rule, part: number): NearLine {
  const { windowMs, levels, serviceId } = rule
  if (isAutoRule(rule) && serviceId === '*') return { windowMs, heat: (autoNearPerSecond * part * windowMs) / 1000 }
  const isByAccesses = levels.every(({ measure, enterShare }) => measure === 'accesses' && enterShare === undefined)
  // A key is warming from its exit level.
  const near = levels.map(({ enter, exit }) => Math.min(enter * part, exit))
  const heat = isByAccesses && serviceId === '*' ? Math.min(...near) : 0
  return { windowMs, heat }
}
