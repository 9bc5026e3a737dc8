import type { KeyView, Strategy, StrategyName } from '@firebreak/core'
import type { Rule, RuleLevel } from '@firebreak/core/rules'
import type { ChartLevel } from '../chart/time-chart.tsx'
import { bytes, count, percent, rate } from '../format/format.ts'
import { t } from '../text/text.ts'

/** What a strategy does with a key, in words. */
export function strategyText(strategy: Strategy | null): string {
  switch (strategy?.strategy) {
    case undefined:
      return t('Nothing is done: the key is not hot.')
    case 'LocalCache':
      return strategy.consistent
        ? t(
            'LocalCache: each process answers reads from its memory, for up to {n} s, and lets a value go when the key changes.',
            { n: count(strategy.expireTime) },
          )
        : t('LocalCache: each process answers reads from its memory, for up to {n} s without looking for changes.', {
            n: count(strategy.expireTime),
          })
    case 'RedundantKeys':
      return t('RedundantKeys: reads are spread over {n} copies.', { n: strategy.copies.length })
    case 'RateLimit':
      return t('RateLimit: {limit} accesses in {seconds} s over all processes; the others {fate}.', {
        limit: count(strategy.limit),
        seconds: strategy.windowMs / 1000,
        fate: t(refusal[strategy.onLimit]),
      })
    case 'Combine':
      return t('Combine: increments in flight at the same time are sent as one command.')
    case 'Observe':
      return t('Observe: the key is counted, nothing else is done.')
  }
}

const refusal = { reject: 'are refused', wait: 'wait', stale: 'get the last known value' } as const

/** What is true of a hot key, in words. */
export function handlingText({
  handling,
  effect,
  ratePerSecond,
  strategy,
  carrier,
}: Pick<KeyView, 'handling' | 'effect' | 'ratePerSecond' | 'strategy' | 'carrier'>): string {
  if (handling === 'unhandled') return t('Not carried out: no process that uses the key has a link to this hub.')
  if (handling === 'observed' && carrier === 'reports')
    return t('Only observed: the services that use the key send reports, but none reads its table (/v1/table).')
  if (handling === 'observed') return t('Only observed: nothing reaches the services.')
  if (handling !== 'handled') return t('Not hot.')
  if (effect === null && carrier === 'table')
    return t('Handled by programs that read /v1/table; they do not report its effect.')
  if (effect === null) return t('Handled; the services have not reported its effect yet.')
  // A key that was combined before, or that another rule combines, says so for a while.
  if (strategy?.strategy === 'Combine' && effect.combinedPerSecond !== undefined)
    return t('Handled: {combined} of its increments go out as part of another’s command.', {
      combined: rate(effect.combinedPerSecond),
    })
  return t('Handled: of {rate}, Redis sees {now}; {share} of reads come from memory; {bytes} saved.', {
    rate: rate(ratePerSecond),
    now: rate(effect.redisPerSecondNow),
    share: percent(effect.localHitRate),
    bytes: bytes(effect.bytesSaved),
  })
}

/** The colour behind the rates at which a strategy is carried out. */
const bands = {
  LocalCache: '--cool-soft',
  RedundantKeys: '--warm-soft',
  RateLimit: '--hot-soft',
  Combine: '--warm-soft',
  Observe: '--sunk',
} as const satisfies Record<StrategyName, string>

/** The thresholds of a rule as accesses a second, each with what is done from there on. */
export function thresholdsOf(rule: Rule | undefined): ChartLevel[] {
  if (rule === undefined) return []
  return rule.levels.filter(isCounted).map(({ enter, strategies }) => {
    const value = (enter * 1000) / rule.windowMs
    const names = strategies.map(({ strategy }) => strategy)
    return { value, text: `${rate(value)} ${names.join(' / ')}`, colour: bands[names[0] ?? 'Observe'] }
  })
}

/** A rate against the threshold it has passed last, or else the first. */
export function thresholdText(ratePerSecond: number, rule: Rule | undefined): string {
  const thresholds = thresholdsOf(rule).map(({ value }) => value)
  if (thresholds.length === 0) return rate(ratePerSecond)
  const threshold = thresholds.findLast((level) => ratePerSecond >= level) ?? thresholds[0]!
  const values = { rate: rate(ratePerSecond), threshold: rate(threshold) }
  return ratePerSecond >= threshold
    ? t('{rate}, over the threshold of {threshold}', values)
    : t('{rate}, under the threshold of {threshold}', values)
}

/** A share, writes or bytes are no rate. */
function isCounted({ measure, enter }: RuleLevel): boolean {
  return (measure === 'accesses' || measure === 'reads') && enter < Number.MAX_SAFE_INTEGER
}

/** The rule that a user set for this key alone, if any. */
export function actionRule(rules: readonly Rule[], redisClusterId: string, name: string): Rule | undefined {
  return rules.find(
    ({ id, redisClusterId: cluster, pattern }) =>
      id.startsWith('key:') && cluster === redisClusterId && pattern.kind === 'exact' && pattern.keys[0] === name,
  )
}

/** What such a rule does, in words. */
export function actionText({ levels }: Rule): string {
  const strategy = levels[0]!.strategies[0]!
  switch (strategy.strategy) {
    case 'RateLimit':
      return t('Limited to {rate}', { rate: rate(strategy.limit) })
    case 'LocalCache':
      return t('Cached')
    case 'RedundantKeys':
      return t('Spread over {n} copies', { n: strategy.copyCount })
    case 'Combine':
      return t('Combined')
    case 'Observe':
      return t('Ignored')
  }
}

/** The API reads `1..9` in a key as a range of keys. */
export function isRange(name: string): boolean {
  return /\d\.\.\d/.test(name)
}
