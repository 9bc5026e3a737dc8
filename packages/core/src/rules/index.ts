// `@firebreak/core/rules`: Rules: their fields, patterns and matching.
export { actingLevel } from './acting-level.ts'
export { isAutoRule, runsBeside } from './auto-rule.ts'
export { type FieldFailure, FieldReader, type NumberRange } from './field-reader.ts'
export { compilePattern, type KeyMatcher } from './key-matcher.ts'
export { type KnownRules, knownRules } from './known-rules.ts'
export { compileLinearRegex } from './linear-regex.ts'
export { parsePattern } from './parse-pattern.ts'
export { parseRule } from './parse-rule.ts'
export { parseStrategy } from './parse-strategy.ts'
export { patternText } from './pattern-text.ts'
export { RegexError } from './regex-error.ts'
export { defaultStepMs, isInRollout, type RuleRollout } from './rollout.ts'
export {
  type HeatMeasure,
  type KeyPattern,
  type Rule,
  type RuleLevel,
  ruleDefaults,
  type StrategyTemplate,
} from './rule.ts'
export { RuleInvalidError } from './rule-error.ts'
export { type RuleScope, RuleSet } from './rule-set.ts'
