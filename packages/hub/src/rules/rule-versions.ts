import type { AuditEntry, RulesVersionView } from '@firebreak/core'
import { parseRule, type Rule } from '@firebreak/core/rules'

/** Maximum number of rule changes considered. */
export const maxVersions = 1000

const changePattern = /^(?:add|change|delete) rule (.+)$/s

/**
 * The changes of the rules, newest first, from the audit: each raised the version by one, so the newest is in force.
 * Changes lost when a store was rolled back are not among them.
 */
export function ruleVersions(audit: readonly AuditEntry[], version: number): RulesVersionView[] {
  const found: RulesVersionView[] = []
  for (const { at, who, what, before, after } of audit) {
    const ruleId = changePattern.exec(what)?.[1]
    if (ruleId === undefined || version - found.length < 1) continue
    found.push({ version: version - found.length, at, who, what, ruleId, before, after })
    if (found.length >= maxVersions) break
  }
  return found
}

/** The rules as of a version, with the changes since; undefined if unknown. */
export function rulesAt(
  versions: readonly RulesVersionView[],
  rules: readonly Rule[],
  version: number,
): { readonly rules: readonly unknown[]; readonly changes: readonly RulesVersionView[] } | undefined {
  const newest = versions[0]?.version ?? 0
  const oldest = (versions.at(-1)?.version ?? 1) - 1
  if (version > newest || version < oldest) return undefined
  const changes = versions.filter((change) => change.version > version)
  const then = new Map<string, unknown>(rules.map((rule) => [rule.id, rule]))
  for (const { ruleId, before } of changes) {
    if (before === null || before === undefined) then.delete(ruleId)
    else then.set(ruleId, before)
  }
  return { rules: [...then.keys()].sort().map((id) => then.get(id)), changes }
}

/** The changes that turn one set of rules into another. */
export function stepsTo(
  now: readonly Rule[],
  then: readonly unknown[],
  at: number,
): { readonly put: Rule[]; readonly remove: string[] } {
  // A rule whose expiry has passed would be in force only for a moment, so it is not restored.
  const wanted = then.map((rule) => parseRule(rule)).filter(({ until = Number.POSITIVE_INFINITY }) => until > at)
  const current = new Map(now.map((rule) => [rule.id, JSON.stringify(rule)]))
  const ids = new Set(wanted.map(({ id }) => id))
  return {
    put: wanted.filter((rule) => current.get(rule.id) !== JSON.stringify(rule)),
    remove: now.filter(({ id }) => !ids.has(id)).map(({ id }) => id),
  }
}
