import type { EpisodesView, HotEpisode } from '@firebreak/core'
import type { HubCore } from '../hub-core.ts'
import { episodesOf } from './episodes.ts'
import { checkPeriod, dayMs, maxPeriodMs, maxRowsOfPage } from './past.ts'

/** Events that one question looks through. */
const maxEvents = 100_000

/** Which episodes are wanted. */
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
}

/** What was hot in a period, when each step happened, and what users did meanwhile. */
export async function episodesView(core: HubCore, asked: EpisodesQuestion): Promise<EpisodesView> {
  const now = core.now()
  const to = asked.to ?? now + 1
  const from = asked.from ?? to - dayMs
  checkPeriod(from, to, maxPeriodMs)
  const { cluster, key, rule, service, who, limit: most, page: pageNumber } = asked
  const [all, audit] = await Promise.all([
    readEpisodes(core, from, to, { redisClusterId: cluster, key }),
    core.store.audit(10_000),
  ])
  const changes = audit.filter((entry) => entry.at >= from && entry.at < to && (who === undefined || entry.who === who))
  const changed = new Set(changes.map(({ what }) => / rule (.+)$/.exec(what)?.[1]))
  const found = all.filter(
    (episode) =>
      (rule === undefined || episode.ruleId === rule) &&
      (service === undefined || episode.services.includes(service)) &&
      (who === undefined || changed.has(episode.ruleId)),
  )
  const rowLimit = Math.min(most, maxRowsOfPage)
  const after = (of: (episode: HotEpisode) => number | null) =>
    median(found.flatMap((episode) => of(episode) ?? []).map((ms) => Math.max(0, ms)))
  return {
    from,
    to,
    episodes: found.slice((pageNumber - 1) * rowLimit, pageNumber * rowLimit),
    total: found.length,
    page: pageNumber,
    pages: Math.max(1, Math.ceil(found.length / rowLimit)),
    changes: changes.slice(0, most),
    deliveredMs: after(({ deliveredAt, detectedAt }) => deliveredAt && deliveredAt - detectedAt),
    handledMs: after(({ handledAt, detectedAt }) => handledAt && handledAt - detectedAt),
  }
}

/** Episodes of a period, newest first; those that began within a day before it and were not over then too. */
export async function readEpisodes(
  { store }: HubCore,
  from: number,
  to: number,
  of: { readonly redisClusterId?: string | undefined; readonly key?: string | undefined } = {},
): Promise<HotEpisode[]> {
  const { redisClusterId, key } = of
  const events = await store.history({
    since: from - dayMs,
    until: to,
    ...(redisClusterId !== undefined && { redisClusterId }),
    ...(key !== undefined && { key }),
    limit: maxEvents,
  })
  return episodesOf(events.toReversed()).filter(({ cooledAt }) => cooledAt === null || cooledAt >= from)
}

function median(values: number[]): number | null {
  const sorted = values.sort((a, b) => a - b)
  return sorted.length === 0 ? null : sorted[Math.floor((sorted.length - 1) / 2)]!
}
