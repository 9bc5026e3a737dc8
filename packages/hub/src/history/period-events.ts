import type { HistoryEvent } from '@firebreak/core'
import type { HubStore } from '../store/hub-store.ts'
import type { Period } from './past.ts'

/** What a chart marks, most important first: if many coincide, the first stands for all. */
const markKinds = ['alarm', 'rollback', 'hot', 'cooled'] as const
/** Events read by one query. */
const maxEvents = 50_000

export interface EventsQuestion {
  readonly from?: number | undefined
  readonly since?: number | undefined
  readonly to?: number | undefined
  readonly cluster?: string | undefined
  readonly key?: string | undefined
  readonly prefix?: string | undefined
  readonly service?: string | undefined
  readonly rule?: string | undefined
  readonly limit: number
  readonly marks?: number | undefined
}

/** The newest events of a period, or those that its chart marks. The filter applies before the limit. */
export async function readEvents(
  store: Pick<HubStore, 'history'>,
  period: Period,
  asked: EventsQuestion,
): Promise<readonly HistoryEvent[]> {
  const { cluster, key, prefix, service, rule, limit, marks } = asked
  const isNarrow = prefix !== undefined || service !== undefined
  const events = await store.history({
    since: asked.from ?? asked.since ?? period.from,
    ...(asked.to !== undefined && { until: asked.to }),
    ...(cluster !== undefined && { redisClusterId: cluster }),
    ...(key !== undefined && { key }),
    ...(rule !== undefined && { ruleId: rule }),
    ...(marks !== undefined && { kinds: markKinds }),
    limit: marks !== undefined || isNarrow ? maxEvents : limit,
  })
  const keys = service === undefined ? undefined : await keysOfService(store, period, service)
  const wanted = events.filter(
    (event) =>
      (prefix === undefined || (event.key !== '' && event.key.startsWith(prefix))) &&
      (keys === undefined || keys.has(keyOf(event))),
  )
  return marks === undefined ? wanted.slice(0, limit) : spread(wanted, period, marks)
}

/** Keys whose table was sent to the service: events mention services only there. */
async function keysOfService(
  store: Pick<HubStore, 'history'>,
  { from }: Period,
  service: string,
): Promise<Set<string>> {
  const delivered = await store.history({ since: from - 86_400_000, kinds: ['delivered'], limit: maxEvents })
  return new Set(delivered.filter(({ text }) => ` ${text}`.split(/[ ,]+/).includes(service)).map(keyOf))
}

function keyOf({ redisClusterId, key }: HistoryEvent): string {
  return `${redisClusterId}\u0000${key}`
}

/** One event for each part of the period, newest first. */
function spread(events: readonly HistoryEvent[], { from, to }: Period, parts: number): HistoryEvent[] {
  const best = new Map<number, HistoryEvent>()
  const weight = ({ kind }: HistoryEvent) => markKinds.indexOf(kind as (typeof markKinds)[number])
  for (const event of events) {
    const part = Math.floor(((event.at - from) * parts) / (to - from))
    const known = best.get(part)
    if (known === undefined || weight(event) < weight(known)) best.set(part, event)
  }
  return [...best.values()]
}
