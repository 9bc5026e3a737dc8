import type { HeatMeasure, Rule, RuleLevel } from '@firebreak/core/rules'
import { isMeasured } from '../auto/auto-levels.ts'

/** A key's measurements against one level. */
export interface LevelReading {
  readonly heat: number
  /** Undefined if the level has no share, or it was not measured. */
  readonly share: number | undefined
}

/** "hot because rule `product`: 4,120/s over 1 s ≥ 1,000" */
export function hotReason(rule: Rule, level: RuleLevel, reading: LevelReading): string {
  if (isMeasured(level)) return `hot because rule \`${rule.id}\`: ${level.grounds}`
  const isByCount = reading.heat >= level.enter
  const comparison = isByCount
    ? `${heatText(rule, level.measure, reading.heat)} ≥ ${amountText(level.measure, level.enter)}`
    : `${percent(reading.share ?? 0)} of the ${level.shareOf ?? 'service'}'s accesses over ${spanText(rule.windowMs)} ≥ ${percent(level.enterShare ?? 0)}`
  return `hot because rule \`${rule.id}\`: ${comparison}`
}

/** "warming under rule `product`: 800/s over 1 s, hot from 1,000" */
export function warmingReason(rule: Rule, level: RuleLevel, reading: LevelReading): string {
  if (isMeasured(level)) return `warming under rule \`${rule.id}\`: ${level.grounds}`
  return `warming under rule \`${rule.id}\`: ${heatText(rule, level.measure, reading.heat)}, hot from ${enterText(level)}`
}

/** "cooling under rule `product`: 500/s over 1 s < 700" */
export function coolingReason(rule: Rule, level: RuleLevel, reading: LevelReading): string {
  if (isMeasured(level)) return `cooling under rule \`${rule.id}\`: ${level.grounds}`
  return `cooling under rule \`${rule.id}\`: ${heatText(rule, level.measure, reading.heat)} < ${exitText(level)}`
}

/** "cold: rule `product` makes it hot from 1,000 over 1 s" */
export function coldReason(rule: Rule | undefined, level = rule?.levels[0]): string {
  if (rule === undefined || level === undefined) return 'cold: no rule matches this key'
  if (isMeasured(level)) return `cold under rule \`${rule.id}\`: ${level.grounds}`
  return `cold: rule \`${rule.id}\` makes it hot from ${enterText(level)} over ${spanText(rule.windowMs)}`
}

function enterText(level: RuleLevel): string {
  if (level.enter < Number.MAX_SAFE_INTEGER) return amountText(level.measure, level.enter)
  return `${percent(level.enterShare ?? 0)} of the ${level.shareOf ?? 'service'}'s accesses`
}

function exitText(level: RuleLevel): string {
  return level.enter < Number.MAX_SAFE_INTEGER ? amountText(level.measure, level.exit) : percent(level.exitShare ?? 0)
}

/** Over one second a count is a rate; for any other window both are shown, because thresholds refer to the window. */
function heatText(rule: Rule, measure: HeatMeasure, heat: number): string {
  const span = spanText(rule.windowMs)
  if (rule.windowMs === 1000) return `${amountText(measure, heat, '/s')} over ${span}`
  return `${amountText(measure, heat)} over ${span} (${amountText(measure, (heat * 1000) / rule.windowMs, '/s')})`
}

function amountText(measure: HeatMeasure, value: number, per = ''): string {
  if (measure === 'bytes') return `${bytesText(value)}${per}`
  const number = `${Math.round(value).toLocaleString('en-US')}`
  // Heat means accesses unless stated otherwise.
  return measure === 'accesses' || per === '' ? `${number}${per}` : `${number} ${measure}${per}`
}

export function bytesText(value: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let unit = 0
  let rest = value
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${rest >= 100 || unit === 0 ? Math.round(rest) : Number(rest.toFixed(1))} ${units[unit]}`
}

function spanText(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`
  if (ms % 60_000 === 0) return `${ms / 60_000} min`
  return `${ms / 1000} s`
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))} %`
}
