import type { RulesView } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { call } from '../data/api.ts'
import { t } from '../text/text.ts'

/**
 * Puts `next` in the place of a rule that is still as a person saw it, or takes the rule away; undefined is no rule. What
 * somebody else did meanwhile is told and left alone. Gives the rule as it is then, for the way back.
 */
export async function replaceRule(
  id: string,
  seen: Rule | undefined,
  next: object | undefined,
): Promise<Rule | undefined> {
  const before = await ruleNow(id)
  if (JSON.stringify(before) !== JSON.stringify(seen)) throw new Error(changedText(before))
  if (next !== undefined) await call('PUT', pathOf(id), next)
  else if (before !== undefined) await call('DELETE', pathOf(id))
  return next === undefined ? undefined : ruleNow(id)
}

/** The same with the way back, which is refused as well where somebody has changed the rule after this. */
export async function replaceWithUndo(id: string, seen: Rule | undefined, next: object | undefined) {
  const done = await replaceRule(id, seen, next)
  return () => replaceRule(id, done, seen)
}

export async function ruleNow(id: string): Promise<Rule | undefined> {
  const { rules } = await call<RulesView>('GET', '/v1/rules')
  return rules.find((rule) => rule.id === id)
}

function changedText(rule: Rule | undefined): string {
  return rule === undefined
    ? t('Somebody has removed it meanwhile: nothing was changed.')
    : t('Somebody has changed it meanwhile: nothing was changed. Look at it again.')
}

const pathOf = (id: string): string => `/v1/rules/${encodeURIComponent(id)}`
