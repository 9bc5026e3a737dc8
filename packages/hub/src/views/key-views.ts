import type { HeatStateName, KeyDetail, KeyView } from '@firebreak/core'
import { hotSamplingFactor, keyText } from '@firebreak/core'
import { trackReason } from '../decide/track-reason.ts'
import type { KeyHeat } from '../heat/heat-engine.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { HubCore } from '../hub-core.ts'

/** A window longer than this tells too little of the present; the key's own seconds are shown instead. */
const longWindowMs = 10_000
const statesHottestFirst: readonly HeatStateName[] = ['hot', 'cooling', 'warming', 'cold']

/** Which keys are wanted. */
export interface KeyQuery {
  readonly limit: number
  readonly state?: HeatStateName
}

/** The hottest keys: hot ones first, then by rate, ties by key. */
export function keyViews(core: HubCore, { limit, state }: KeyQuery): KeyView[] {
  const now = core.now()
  const total = totalRate(core, now)
  const views = [...core.engine.candidates()].map((heat) => keyView(core, heat, total, now))
  return views
    .filter((view) => (state === undefined ? view.state !== 'cold' || view.ratePerSecond > 0 : view.state === state))
    .sort(
      (a, b) => Number(isHot(b)) - Number(isHot(a)) || b.ratePerSecond - a.ratePerSecond || (a.key < b.key ? -1 : 1),
    )
    .slice(0, limit)
}

/** One key with its hosts and its history; undefined where it is not tracked and never was hot. */
export async function keyDetail(core: HubCore, redisClusterId: string, key: string): Promise<KeyDetail | undefined> {
  const now = core.now()
  const heat = core.engine.get(redisClusterId, key)
  const events = await core.store.history({ redisClusterId, key: keyText(key), limit: 100 })
  if (heat === undefined) return undefined
  const view = keyView(core, heat, totalRate(core, now), now)
  return { ...view, topHosts: heat.detail?.topHosts(now, 10) ?? [], events }
}

function keyView(core: HubCore, heat: KeyHeat, totalPerSecond: number, now: number): KeyView {
  const track = leadingTrack(heat)
  const recent = heat.detail?.recent(now) ?? { accesses: 0, writes: 0, bytes: 0 }
  const ratePerSecond = rateOf(heat, recent.accesses, now)
  const hot = track?.state !== undefined && track.state.phase !== 'warming' ? track.state : undefined
  // A count below the floor f is sent as f or not at all: each host's share of the rate may be off by f an interval.
  const { samplingFloor, intervalMs } = core.governor.pace
  const factor = hot === undefined ? samplingFloor : hotSamplingFactor(samplingFloor, track!.rule!.levels)
  const hosts = heat.detail?.hostCount ?? 0
  return {
    redisClusterId: heat.redisClusterId,
    key: keyText(heat.key),
    state: track?.state?.phase ?? 'cold',
    ratePerSecond: Math.round(ratePerSecond),
    writesPerSecond: Math.round(recent.writes),
    bytesPerSecond: Math.round(recent.bytes),
    share: totalPerSecond === 0 ? 0 : Math.min(1, ratePerSecond / totalPerSecond),
    sparkline: heat.detail?.sparkline(now) ?? [],
    errorPerSecond: Math.round(((factor - 1) * hosts * 1000) / intervalMs),
    hosts,
    slot: heat.slot,
    ruleId: track?.rule?.id ?? null,
    strategy: hot?.entry.strategy ?? null,
    reason: track === undefined ? '' : trackReason(track, core.totals, now),
    since: track?.state?.since ?? null,
    effect: hot === undefined ? null : core.effects.view(heat.redisClusterId, heat.key, hot.ratePerSecondBefore, now),
  }
}

/** Where services' rules differ a key has several tracks: the one that is furthest along is shown. */
function leadingTrack(heat: KeyHeat): HeatTrack | undefined {
  const rank = (track: HeatTrack) => statesHottestFirst.indexOf(track.state?.phase ?? 'cold')
  return heat.tracks.toSorted((a, b) => rank(a) - rank(b))[0]
}

function rateOf(heat: KeyHeat, recentPerSecond: number, now: number): number {
  let rate = 0
  for (const track of heat.tracks) {
    if (track.windowMs > longWindowMs) return recentPerSecond
    rate += (track.heat('accesses', now) * 1000) / track.windowMs
  }
  return rate
}

function totalRate(core: HubCore, now: number): number {
  let total = 0
  for (const { accesses } of core.hosts.all()) total += accesses.sum(now) / 2
  return total
}

function isHot({ state }: KeyView): boolean {
  return state === 'hot' || state === 'cooling'
}
