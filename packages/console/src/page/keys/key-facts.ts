import type { KeyView, Strategy } from '@firebreak/core'
import type { Rule, RuleLevel } from '@firebreak/core/rules'
import { bytes, count, percent, rate } from '../format/format.ts'

/** What a strategy does with a key, in words. */
export function strategyText(strategy: Strategy | null): string {
  switch (strategy?.strategy) {
    case undefined:
      return 'Nothing is done: the key is not hot.'
    case 'LocalCache':
      return `LocalCache: each process answers reads from its memory, for up to ${count(strategy.expireTime)} s${strategy.consistent ? ', and lets a value go when the key changes' : ' without looking for changes'}.`
    case 'RedundantKeys':
      return `RedundantKeys: reads are spread over ${strategy.copies.length} copies.`
    case 'RateLimit':
      return `RateLimit: ${count(strategy.limit)} accesses in ${strategy.windowMs / 1000} s over all processes; the others ${refusal[strategy.onLimit]}.`
    case 'Observe':
      return 'Observe: the key is counted, nothing else is done.'
  }
}

const refusal = { reject: 'are refused', wait: 'wait', stale: 'get the last known value' } as const

/** What is true of a hot key, in words. */
export function handlingText({ handling, effect }: Pick<KeyView, 'handling' | 'effect'>): string {
  if (handling === 'unhandled') return 'Not carried out: no process that uses the key has a link to this hub.'
  if (handling === 'observed') return 'Only observed: nothing reaches the services.'
  if (handling !== 'handled') return 'Not hot.'
  if (effect === null) return 'Handled; the services have not told its effect yet.'
  return `Handled: Redis answered ${rate(effect.redisPerSecondBefore)} before and ${rate(effect.redisPerSecondNow)} now; ${percent(effect.localHitRate)} of reads come from memory; ${bytes(effect.bytesSaved)} saved.`
}

/** A key's rate against the level that comes next, as a part of a bar. */
export interface HeatGauge {
  /** Per second. */
  readonly threshold: number
  readonly isOver: boolean
  /** Where rate and threshold are, 0 to 1. */
  readonly rateAt: number
  readonly thresholdAt: number
}

/** Undefined where no level of the rule counts accesses: a share, writes or bytes are no rate. */
export function heatGauge(ratePerSecond: number, rule: Rule | undefined): HeatGauge | undefined {
  if (rule === undefined) return undefined
  const thresholds = rule.levels.filter(isCounted).map(({ enter }) => (enter * 1000) / rule.windowMs)
  if (thresholds.length === 0) return undefined
  const threshold = thresholds.findLast((level) => ratePerSecond >= level) ?? thresholds[0]!
  const top = Math.max(ratePerSecond, threshold) * 1.25
  return {
    threshold,
    isOver: ratePerSecond >= threshold,
    rateAt: ratePerSecond / top,
    thresholdAt: threshold / top,
  }
}

function isCounted({ measure, enter }: RuleLevel): boolean {
  return (measure === 'accesses' || measure === 'reads') && enter < Number.MAX_SAFE_INTEGER
}

/** The rule that somebody put in force for this key alone, if one is. */
export function actionRule(rules: readonly Rule[], redisClusterId: string, name: string): Rule | undefined {
  return rules.find(
    ({ id, redisClusterId: cluster, pattern }) =>
      id.startsWith('key:') && cluster === redisClusterId && pattern.kind === 'exact' && pattern.keys[0] === name,
  )
}

/** What such a rule does, in words. */
export function actionText({ levels }: Rule): string {
  const strategy = levels[0]!.strategies[0]!
  if (strategy.strategy === 'RateLimit') return `Limited to ${rate(strategy.limit)}`
  return strategy.strategy === 'LocalCache' ? 'Cached' : 'Ignored'
}

/** The API reads `1..9` in a key as a range of keys. */
export function isRange(name: string): boolean {
  return /\d\.\.\d/.test(name)
}
