import { compilePattern, type KeyMatcher } from './key-matcher.ts'
import { knownRules } from './known-rules.ts'
import type { Rule } from './rule.ts'

/** A rule with its patterns compiled. */
interface CompiledRule {
  readonly rule: Rule
  readonly matches: KeyMatcher
  readonly excepts: readonly KeyMatcher[]
}

/** The rules that apply to one service on one cluster; services with the same rules share one scope. */
export interface RuleScope {
  /** The index of the rule that applies to a key, −1 if there is none. */
  match(key: string): number
  /** The rules of the scope, in order of precedence. */
  readonly rules: readonly Rule[]
}

/**
 * Rules, compiled and sorted: the matching rule with the highest priority applies, with ties going to the smaller id.
 * Rules that are off are ignored. A key in a rule's `except` is not matched by that rule; the next may still match it.
 * Rules of a later version that are unknown here are left alone (see `knownRules`).
 */
export class RuleSet {
  /** In the order of `match`'s indexes. */
  readonly rules: readonly Rule[]
  /** The ids of rules that this version does not know. */
  readonly unknownIds: readonly string[]
  readonly #compiled: readonly CompiledRule[]
  readonly #scopes = new Map<string, RuleScope>()
  readonly #scopesByContent = new Map<string, RuleScope>()

  constructor(rules: Iterable<Rule>) {
    const known = knownRules(rules)
    this.unknownIds = known.unknownIds
    this.rules = known.rules
      .filter(({ mode }) => mode !== 'off')
      .sort((a, b) => b.priority - a.priority || (a.id < b.id ? -1 : 1))
    this.#compiled = this.rules.map((rule) => ({
      rule,
      matches: compilePattern(rule.pattern),
      excepts: rule.except.map(compilePattern),
    }))
  }

  /** The rules for a service on a cluster; the same object for the same rules. */
  scope(redisClusterId: string, serviceId: string): RuleScope {
    const name = `${redisClusterId}\u0000${serviceId}`
    let scope = this.#scopes.get(name)
    if (scope === undefined) {
      scope = this.#makeScope(redisClusterId, serviceId)
      // Clusters and services come from reports; a sensor that invents names must not grow the map without limit.
      if (this.#scopes.size >= 10_000) this.#scopes.clear()
      this.#scopes.set(name, scope)
    }
    return scope
  }

  /** The index in `rules` of the rule that applies to a key, −1 if there is none. */
  match(redisClusterId: string, serviceId: string, key: string): number {
    return this.scope(redisClusterId, serviceId).match(key)
  }

  #makeScope(redisClusterId: string, serviceId: string): RuleScope {
    const indexes: number[] = []
    this.#compiled.forEach(({ rule }, index) => {
      const isOfCluster = rule.redisClusterId === '*' || rule.redisClusterId === redisClusterId
      const isOfService = rule.serviceId === '*' || rule.serviceId === serviceId
      if (isOfCluster && isOfService) indexes.push(index)
    })
    const content = indexes.join()
    let scope = this.#scopesByContent.get(content)
    if (scope === undefined) {
      const compiled = this.#compiled
      scope = {
        rules: indexes.map((index) => this.rules[index]!),
        match(key) {
          for (const index of indexes) {
            const { matches, excepts } = compiled[index]!
            if (matches(key) && !excepts.some((except) => except(key))) return index
          }
          return -1
        },
      }
      this.#scopesByContent.set(content, scope)
    }
    return scope
  }
}
