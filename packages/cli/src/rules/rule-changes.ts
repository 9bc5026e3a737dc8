import { isDeepStrictEqual } from 'node:util'
import { parseRule, type Rule, RuleInvalidError } from '@firebreak/core/rules'
import { UsageError } from '../command/command.ts'

/** What must happen to a rule of the hub to match the file. */
export type RuleChange =
  | { readonly kind: 'add'; readonly after: Rule }
  | { readonly kind: 'change'; readonly before: Rule; readonly after: Rule }
  | { readonly kind: 'remove'; readonly before: Rule }
  | { readonly kind: 'keep'; readonly after: Rule }

/** The rules of a file: one, a list, or an object with `rules`. All are parsed before any is used. */
export function rulesOf(content: unknown, file: string): Rule[] {
  // An empty file is more likely a mistake than a wish for no rules.
  if (content === null || content === undefined) throw new UsageError(`${file} is empty; write [] for no rules`)
  const inside = (content as { readonly rules?: unknown }).rules ?? content
  const list: readonly unknown[] = Array.isArray(inside) ? inside : [inside]
  const rules = list.map((given) => {
    if (typeof (given as { id?: unknown } | null)?.id !== 'string')
      throw new UsageError(`${file}: every rule needs an id`)
    try {
      return parseRule(given)
    } catch (error) {
      if (!(error instanceof RuleInvalidError)) throw error
      throw new UsageError(`${file}: rule ${(given as { id: string }).id}: ${error.message}`, { cause: error })
    }
  })
  const ids = rules.map(({ id }) => id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) throw new UsageError(`${file}: the rule ${twice} appears twice`)
  return rules
}

/** The changes from the hub's rules to those of the file, in the file's order; removals come last. */
export function ruleChanges(current: readonly Rule[], wanted: readonly Rule[], isPruned: boolean): RuleChange[] {
  const byId = new Map(current.map((rule) => [rule.id, rule]))
  const changes = wanted.map((after): RuleChange => {
    const before = byId.get(after.id)
    byId.delete(after.id)
    if (before === undefined) return { kind: 'add', after }
    return isDeepStrictEqual(before, after) ? { kind: 'keep', after } : { kind: 'change', before, after }
  })
  if (!isPruned) return changes
  return [...changes, ...[...byId.values()].map((before): RuleChange => ({ kind: 'remove', before }))]
}

/** A change for display: one line, plus one for each changed field. */
export function changeText(change: RuleChange): string {
  switch (change.kind) {
    case 'keep':
      return ''
    case 'add':
      return `+ ${change.after.id} ${JSON.stringify(change.after)}\n`
    case 'remove':
      return `- ${change.before.id} ${JSON.stringify(change.before)}\n`
    case 'change': {
      const before: Record<string, unknown> = { ...change.before }
      const after: Record<string, unknown> = { ...change.after }
      const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
        (field) => !isDeepStrictEqual(before[field], after[field]),
      )
      const lines = fields.map((field) => `    ${field}: ${text(before[field])} -> ${text(after[field])}\n`)
      return `~ ${change.after.id}\n${lines.join('')}`
    }
  }
}

function text(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value)
}
