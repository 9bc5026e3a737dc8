import type { HistoryEvent, HotEpisode } from '@firebreak/core'

/** How an episode begins. */
const beginnings: ReadonlySet<HistoryEvent['kind']> = new Set(['hot', 'shadow', 'prewarm'])
/** Maximum number of events per episode. */
const maxSteps = 200

interface OpenEpisode {
  readonly first: HistoryEvent
  readonly steps: HistoryEvent[]
  deliveredAt: number | null
  handledAt: number | null
  readonly strategies: Set<string>
}

/**
 * Combines events into episodes: from the decision that a key is hot, via the table's delivery and the first read that
 * a strategy answered, to its end. Events come oldest first. Whatever began before the first of them is not included;
 * hubs that share a store each record delivery, and the first counts.
 */
export function episodesOf(events: Iterable<HistoryEvent>): HotEpisode[] {
  const open = new Map<string, OpenEpisode>()
  const found: HotEpisode[] = []
  for (const event of events) {
    const id = `${event.redisClusterId}\u0000${event.key}\u0000${event.ruleId}`
    let episode = open.get(id)
    if (isBeginning(event)) {
      // A key that is warmed again while it is hot continues its episode.
      if (episode === undefined) {
        episode = { first: event, steps: [], deliveredAt: null, handledAt: null, strategies: new Set() }
        open.set(id, episode)
      }
    }
    if (episode === undefined) continue
    if (episode.steps.length < maxSteps) episode.steps.push(event)
    const strategy = strategyIn(event)
    if (strategy !== undefined) episode.strategies.add(strategy)
    if (event.kind === 'delivered') episode.deliveredAt ??= event.at
    if (event.kind === 'handled') episode.handledAt ??= event.at
    const end = endOf(event)
    if (end === undefined) continue
    open.delete(id)
    found.push(closed(episode, event.at, end))
  }
  for (const episode of open.values()) found.push(closed(episode, null, null))
  return found.sort((a, b) => b.detectedAt - a.detectedAt)
}

function closed(episode: OpenEpisode, cooledAt: number | null, end: HotEpisode['end']): HotEpisode {
  const { first, steps, deliveredAt, handledAt, strategies } = episode
  const { redisClusterId, key, ruleId, text, at, kind } = first
  return {
    redisClusterId,
    key,
    ruleId,
    services: [...new Set(steps.flatMap(servicesIn))].sort(),
    isShadow: kind === 'shadow',
    strategies: [...strategies],
    reason: text,
    detectedAt: at,
    deliveredAt,
    handledAt,
    cooledAt,
    end,
    steps,
  }
}

/** True for an event with which an episode begins. */
export function isBeginning({ kind }: HistoryEvent): boolean {
  return beginnings.has(kind)
}

/** How an event ends an episode. Replacing a strategy by another does not end it: `…; now Observe`. */
export function endOf({ kind, text }: HistoryEvent): 'cooled' | 'rollback' | undefined {
  if (kind === 'cooled') return 'cooled'
  return kind === 'rollback' && !/; now \w+$/.test(text) && !text.startsWith('a claim of ') ? 'rollback' : undefined
}

function strategyIn({ kind, text }: HistoryEvent): string | undefined {
  if (kind === 'delivered') return deliveredPattern.exec(text)?.[1]
  if (kind === 'rollback') return /; now (\w+)$/.exec(text)?.[1]
  return kind === 'strategy'
    ? /^(LocalCache|RedundantKeys|RateLimit|Combine|Observe) at level/.exec(text)?.[1]
    : undefined
}

/** What `EpisodeSteps` writes: events contain only text. */
const deliveredPattern = /^(\w+) (?:sent to|left for) \d+ sensors? of (.+)$/

export function deliveredText(strategy: string, sensors: number, services: readonly string[]): string {
  return `${strategy} sent to ${sensors} ${sensors === 1 ? 'sensor' : 'sensors'} of ${services.join(', ')}`
}

function servicesIn({ kind, text }: HistoryEvent): string[] {
  return kind === 'delivered' ? (deliveredPattern.exec(text)?.[2]?.split(', ') ?? []) : []
}
