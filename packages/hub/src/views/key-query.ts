import {
  type HeatStateName,
  type KeyGroupView,
  type KeyHandling,
  type KeyView,
  keyGroup,
  parseKeyText,
  readableKey,
  type StrategyName,
} from '@firebreak/core'

/** The orders for keys; names ascending, everything else descending. */
export const keyOrders = [
  'heat',
  'rate',
  'rate10',
  'rate60',
  'share',
  'reads',
  'writes',
  'bytes',
  'hosts',
  'since',
  'name',
] as const
export type KeyOrder = (typeof keyOrders)[number]

/** Which keys are requested, and in which order. */
export interface KeyQuery {
  readonly limit: number
  readonly offset?: number | undefined
  readonly state?: HeatStateName | undefined
  /** Part of the key as displayed, ignoring case. */
  readonly match?: string | undefined
  readonly cluster?: string | undefined
  /** The part of the key before its first separator. */
  readonly group?: string | undefined
  readonly service?: string | undefined
  readonly rule?: string | undefined
  /** By the strategy that is in place. */
  readonly strategy?: StrategyName | undefined
  readonly handling?: KeyHandling | undefined
  /** @default 'heat': hot ones first, then by rate */
  readonly sort?: KeyOrder | undefined
}

/** Whether a key matches. Cold keys that nobody touches are only shown if requested by state. */
export function isWanted(view: KeyView, query: Omit<KeyQuery, 'limit'>): boolean {
  const { state, match, cluster, group, service, rule, strategy, handling } = query
  if (state === undefined ? view.state === 'cold' && view.ratePerSecond === 0 : view.state !== state) return false
  if (cluster !== undefined && view.redisClusterId !== cluster) return false
  if (group !== undefined && groupOf(view) !== group) return false
  if (service !== undefined && !view.services?.includes(service)) return false
  if (rule !== undefined && view.ruleId !== rule) return false
  if (strategy !== undefined && view.strategy?.strategy !== strategy) return false
  if (handling !== undefined && view.handling !== handling) return false
  return match === undefined || readableKey(view.key).toLowerCase().includes(match.toLowerCase())
}

/** The order of two keys; ties go to the smaller name, so that equal keys never change places. */
export function compareKeys(order: KeyOrder): (a: KeyView, b: KeyView) => number {
  const byName = (a: KeyView, b: KeyView) =>
    compareTexts(a.key, b.key) || compareTexts(a.redisClusterId, b.redisClusterId)
  if (order === 'name') return byName
  if (order === 'heat') {
    return (a, b) => Number(isHot(b)) - Number(isHot(a)) || b.ratePerSecond - a.ratePerSecond || byName(a, b)
  }
  const value = values[order]
  return (a, b) => value(b) - value(a) || byName(a, b)
}

const values: Readonly<Record<Exclude<KeyOrder, 'heat' | 'name'>, (view: KeyView) => number>> = {
  rate: (view) => view.ratePerSecond,
  rate10: ({ sparkline }) => meanOfLast(sparkline, 10),
  rate60: ({ sparkline }) => meanOfLast(sparkline, 60),
  share: (view) => view.share,
  reads: (view) => view.ratePerSecond - view.writesPerSecond,
  writes: (view) => view.writesPerSecond,
  bytes: (view) => view.bytesPerSecond,
  hosts: (view) => view.hosts,
  since: (view) => view.since ?? 0,
}

/** Keys summed by the part before their first separator, busiest first. */
export function groupKeys(views: Iterable<KeyView>): KeyGroupView[] {
  const groups = new Map<string, { -readonly [Field in keyof KeyGroupView]: KeyGroupView[Field] }>()
  for (const view of views) {
    const group = groupOf(view)
    const sum = groups.get(group) ?? { group, keys: 0, hot: 0, ratePerSecond: 0, writesPerSecond: 0, share: 0 }
    groups.set(group, sum)
    sum.keys++
    if (isHot(view)) sum.hot++
    sum.ratePerSecond += view.ratePerSecond
    sum.writesPerSecond += view.writesPerSecond
    sum.share += view.share
  }
  return [...groups.values()].sort((a, b) => b.ratePerSecond - a.ratePerSecond || compareTexts(a.group, b.group))
}

function groupOf({ key }: KeyView): string {
  return keyGroup(parseKeyText(key) ?? key)
}

function meanOfLast(values: readonly number[], count: number): number {
  const last = values.slice(-count)
  return last.length === 0 ? 0 : last.reduce((sum, value) => sum + value, 0) / last.length
}

function isHot({ state }: KeyView): boolean {
  return state === 'hot' || state === 'cooling'
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
