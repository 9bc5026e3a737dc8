import type { EpisodesView, HistoryEvent, HotEpisode } from '@firebreak/core'
import type { HubCore } from '../hub-core.ts'
import { episodesOf } from './episodes.ts'
import { leftOutEpisodes } from './event-quota.ts'
import { checkPeriod, dayMs, maxPeriodMs, maxRowsOfPage } from './past.ts'

/** Events read by one query. */
const maxEvents = 100_000

/** Which episodes are requested. */
export interface EpisodesQuestion {
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly cluster?: string | undefined
  readonly key?: string | undefined
  readonly rule?: string | undefined
  readonly service?: string | undefined
  readonly who?: string | undefined
  readonly limit: number
  readonly page: number
  /** Single events of a page. @default none */
  readonly events?: number | undefined
  readonly eventsPage?: number | undefined
  /** Points for which to return the number of hot keys. @default none */
  readonly points?: number | undefined
}

/** What was hot in a period, when each step happened, and what users did meanwhile. */
export async function episodesView(core: HubCore, asked: EpisodesQuestion): Promise<EpisodesView> {
  const now = core.now()
  const to = asked.to ?? now + 1
  const from = asked.from ?? to - dayMs
  checkPeriod(from, to, maxPeriodMs)
  const { cluster, key, rule, service, who, limit: most, page: pageNumber } = asked
  const [past, audit] = await Promise.all([
    readEpisodes(core, from, to, { redisClusterId: cluster, key }),
    core.store.audit(10_000),
  ])
  const changes = audit.filter((entry) => entry.at >= from && entry.at < to && (who === undefined || entry.who === who))
  const changed = new Set(changes.map(({ what }) => / rule (.+)$/.exec(what)?.[1]))
  const found = past.episodes.filter(
    (episode) =>
      (rule === undefined || episode.ruleId === rule) &&
      (service === undefined || episode.services.includes(service)) &&
      (who === undefined || changed.has(episode.ruleId)),
  )
  const rowLimit = Math.min(most, maxRowsOfPage)
  const after = (of: (episode: HotEpisode) => number | null) =>
    median(found.flatMap((episode) => of(episode) ?? []).map((ms) => Math.max(0, ms)))
  // An event matches the filter if its episode does; alarms belong to no episode.
  const isNarrow = rule !== undefined || service !== undefined || who !== undefined
  const names = new Set(found.map(nameOf))
  const events = past.events.filter(
    (event) => event.at >= from && event.at < to && (!isNarrow || names.has(nameOf(event))),
  )
  const eventLimit = asked.events ?? 0
  const firstEvent = ((asked.eventsPage ?? 1) - 1) * eventLimit
  return {
    from,
    to,
    episodes: found.slice((pageNumber - 1) * rowLimit, pageNumber * rowLimit),
    total: found.length,
    page: pageNumber,
    pages: Math.max(1, Math.ceil(found.length / rowLimit)),
    changes: changes.slice(0, most),
    events: events.slice(firstEvent, firstEvent + eventLimit),
    eventTotal: events.length,
    eventPages: eventLimit === 0 ? 1 : Math.max(1, Math.ceil(events.length / eventLimit)),
    ...hotKeys(found, from, to, Math.min(now, to), asked.points ?? 0),
    leftOut: past.leftOut,
    eventsFrom: past.eventsFrom,
    deliveredMs: after(({ deliveredAt, detectedAt }) => deliveredAt && deliveredAt - detectedAt),
    handledMs: after(({ handledAt, detectedAt }) => handledAt && handledAt - detectedAt),
  }
}

/** How many keys were hot at each point: differences at both ends, then sums. */
function hotKeys(episodes: readonly HotEpisode[], from: number, to: number, now: number, points: number) {
  if (points === 0) return {}
  const resolutionMs = (to - from) / points
  const changes = new Array<number>(points + 1).fill(0)
  for (const { detectedAt, cooledAt } of episodes) {
    const first = Math.max(0, Math.floor((detectedAt - from) / resolutionMs))
    const last = Math.min(points - 1, Math.floor(((cooledAt ?? now) - from) / resolutionMs))
    if (first > last) continue
    changes[first]!++
    changes[last + 1]!--
  }
  let hot = 0
  return { resolutionMs, hotKeys: changes.slice(0, points).map((change) => (hot += change)) }
}

function nameOf({ redisClusterId, key, ruleId }: HotEpisode | HistoryEvent): string {
  return `${redisClusterId}\u0000${key}\u0000${ruleId}`
}

/** What is known and not known about a period's decisions. */
export interface PastDecisions {
  /** Newest first, including those that began within a day before the period and had not ended. */
  readonly episodes: readonly HotEpisode[]
  /** Newest first, from a day before the period on. */
  readonly events: readonly HistoryEvent[]
  /** Episodes of the period that were not kept. */
  readonly leftOut: number
  /** When the kept events begin; null if none is kept. */
  readonly eventsFrom: number | null
}

/** Reads the episodes of a period. */
export async function readEpisodes(
  { store }: HubCore,
  from: number,
  to: number,
  of: { readonly redisClusterId?: string | undefined; readonly key?: string | undefined } = {},
): Promise<PastDecisions> {
  const { redisClusterId, key } = of
  const [events, leftOut, kept] = await Promise.all([
    store.history({
      since: from - dayMs,
      until: to,
      ...(redisClusterId !== undefined && { redisClusterId }),
      ...(key !== undefined && { key }),
      limit: maxEvents,
    }),
    store.history({ since: from, until: to, kinds: ['leftOut'], limit: 10_000 }),
    store.keptHistory(),
  ])
  const isCut = events.length >= maxEvents
  return {
    episodes: episodesOf(events.toReversed()).filter(({ cooledAt }) => cooledAt === null || cooledAt >= from),
    events,
    leftOut: leftOut.reduce((sum, event) => sum + leftOutEpisodes(event), 0),
    eventsFrom: isCut ? events.at(-1)!.at : kept.from,
  }
}

function median(values: number[]): number | null {
  const sorted = values.sort((a, b) => a - b)
  return sorted.length === 0 ? null : sorted[Math.floor((sorted.length - 1) / 2)]!
}
