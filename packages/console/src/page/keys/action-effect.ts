import type { KeyView } from '@firebreak/core'
import { rate } from '../format/format.ts'
import { t } from '../text/text.ts'

export type ActionKind = 'limit' | 'cache' | 'copy' | 'prewarm' | 'ignore'

/** What a limit does with what is beyond it. */
export const beyondLimit = ['reject', 'stale', 'wait'] as const
export type BeyondLimit = (typeof beyondLimit)[number]

export interface PlannedAction {
  readonly kind: ActionKind
  readonly limit: number
  readonly onLimit: BeyondLimit
  readonly copies: number
}

export type KeyNow = Pick<KeyView, 'ratePerSecond' | 'strategy' | 'ruleId' | 'effect' | 'handling'>

/** What is in force for a key, and what Redis sees of it: whoever acts on the key takes this away. */
export function inForceText(now: KeyNow): string {
  const { strategy, ruleId, ratePerSecond } = now
  const values = { rate: rate(ratePerSecond), sees: rate(redisSees(now)), rule: ruleId ?? '' }
  if (strategy === null || now.handling !== 'handled')
    return t('Now nothing is done: Redis sees {sees}.', { sees: values.sees })
  return t('Now {strategy} of rule {rule}: of {rate}, Redis sees {sees}.', { ...values, strategy: strategy.strategy })
}

/** What Redis sees of a key at this moment. */
export function redisSees({ handling, effect, ratePerSecond }: KeyNow): number {
  return handling === 'handled' && effect !== null ? effect.redisPerSecondNow : ratePerSecond
}

/** What it would see at most with the action in place of what is in force. */
export function wouldSee({ kind, limit }: PlannedAction, now: KeyNow): number | undefined {
  const { ratePerSecond } = now
  switch (kind) {
    case 'limit':
      return Math.min(ratePerSecond, limit)
    case 'copy':
    case 'ignore':
      return ratePerSecond
    // A load for each process and change; a pre-warm leaves the strategy to the key's rule.
    case 'cache':
    case 'prewarm':
      return undefined
  }
}

/** What the action does, in the place of what is in force. */
export function actionEffectText(action: PlannedAction, now: KeyNow, until: string): string {
  const { kind, limit, onLimit, copies } = action
  const { ratePerSecond } = now
  const beyond = Math.max(0, ratePerSecond - limit)
  const values = { rate: rate(ratePerSecond), limit: rate(Math.min(ratePerSecond, limit)), beyond: rate(beyond), until }
  switch (kind) {
    case 'limit':
      if (beyond === 0)
        return t('Then RateLimit: at the current {rate} nothing would be held back, until {until}.', values)
      return onLimit === 'reject'
        ? t('Then RateLimit: Redis sees up to {limit}, {beyond} would be refused, until {until}.', values)
        : onLimit === 'stale'
          ? t('Then RateLimit: Redis sees up to {limit}, {beyond} get the last known value, until {until}.', values)
          : t('Then RateLimit: Redis sees up to {limit}, {beyond} would wait, until {until}.', values)
    case 'cache':
      return t(
        'Then LocalCache: every process answers reads from its own memory, until {until}. Values are dropped when the key changes.',
        values,
      )
    case 'copy':
      return t(
        'Then RedundantKeys: {rate} are spread over {n} copies on different nodes, until {until}. Redis as a whole sees them all; the copies are removed afterwards.',
        { ...values, n: copies },
      )
    case 'prewarm':
      return t('The key counts as hot from now until {until}, even without reads.', values)
    case 'ignore':
      return t('Then nothing, until {until}: the key is never hot, whatever its rules say. Redis sees {rate}.', values)
  }
}

/** What is lost by the action, if Redis would see more than it does now. */
export function lossText(action: PlannedAction, now: KeyNow): string | undefined {
  const after = wouldSee(action, now)
  const before = redisSees(now)
  if (after === undefined || after <= before * 1.1 + 1) return undefined
  return t('This replaces {strategy}: Redis would see {more} more than now.', {
    strategy: now.strategy?.strategy ?? '–',
    more: rate(after - before),
  })
}
