import {
  type Clock,
  type HeatStateName,
  type IngestView,
  type KeyDetail,
  type KeyGroupView,
  type KeyHandling,
  type KeyView,
  keyText,
  type Overview,
  type StrategyName,
} from '@firebreak/core'
import { hotSamplingFactor } from '@firebreak/core/heat'
import { actingLevel, type Rule } from '@firebreak/core/rules'
import type { AlarmDesk } from '../alarms/alarm-desk.ts'
import type { Collector } from '../collect/collector.ts'
import type { NodeOfSlot } from '../decide/access-totals.ts'
import type { HotKeys } from '../decide/hot-keys.ts'
import { trackReason } from '../decide/track-reason.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { KeyCarrier } from '../fleet/host-register.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { HeatHistory } from '../history/heat-history.ts'
import type { HubStore } from '../store/hub-store.ts'
import { compareKeys, groupKeys, isWanted, type KeyQuery } from './key-query.ts'
import { verdictOf } from './verdict.ts'

/** A window longer than this says too little about the present; the key's own seconds are shown instead. */
const longWindowMs = 10_000
const statesHottestFirst: readonly HeatStateName[] = ['hot', 'cooling', 'warming', 'cold']
const overviewKeys = 50

type CarrierOf = (services: ReadonlySet<string>) => KeyCarrier

/** The sources of the views. */
export interface HubViewsOptions {
  readonly hubId: string
  readonly clock: Clock
  readonly store: HubStore
  readonly keys: HotKeys
  readonly nodeOfSlot: NodeOfSlot
  readonly fleet: Fleet
  readonly collector: Collector
  readonly delivery: TableDelivery
  readonly alarms: Pick<AlarmDesk, 'list'>
  /** All rules, in order of precedence. */
  readonly rules: () => readonly Rule[]
  readonly history: Pick<HeatHistory, 'wasHandled'>
}

/** The figures shown to users: API, console and metrics. */
export class HubViews {
  readonly #rooms: HubViewsOptions

  constructor(rooms: HubViewsOptions) {
    this.#rooms = rooms
  }

  /** What is hot now, and whether it is under control. */
  overview(): Overview {
    const { hubId, clock, fleet, delivery, alarms: alarmBoard, rules } = this.#rooms
    const now = clock.now()
    const hottest = this.keys({ limit: Number.POSITIVE_INFINITY })
    const hot = { handled: 0, observed: 0, unhandled: 0 }
    const hotBy = { sensor: 0, table: 0, centre: 0, reports: 0, none: 0 }
    for (const { handling, carrier } of hottest) {
      if (handling != null) hot[handling]++
      if (carrier != null) hotBy[carrier]++
    }
    const all = rules()
    const handlesAny = (rule: Rule) => rule.mode === 'on' && actingLevel(rule) !== undefined
    const ruleCounts = { total: all.length, handling: all.filter(handlesAny).length }
    const alarms = alarmBoard.list()
    const rate = fleet.traffic.latest(now)
    const isExposed = delivery.isOff && delivery.size > 0
    const { safety, verdict } = verdictOf({
      isOff: delivery.isOff,
      hasReporters: fleet.hosts.size > 0,
      hot,
      critical: alarms.find(({ severity }) => severity === 'critical'),
      rate,
      hotBy,
      rules: ruleCounts,
    })
    return {
      hubTime: now,
      hubId,
      isOff: delivery.isOff,
      isSafe: !isExposed && safety !== 'unsafe',
      verdict,
      safety,
      hot,
      hotBy,
      rules: ruleCounts,
      table: { epoch: delivery.epoch, version: delivery.version },
      sensors: fleet.hosts.counts(),
      rate,
      traffic: fleet.traffic.points(now),
      keys: hottest.slice(0, overviewKeys),
      alarms,
      ingest: this.ingest(),
      wasHandled: this.#rooms.history.wasHandled,
    }
  }

  ingest(): IngestView {
    const { collector, clock, keys } = this.#rooms
    const { reportsPerSecond, entriesPerSecond } = collector.governor.rates(clock.now())
    return {
      reportsPerSecond: Math.round(reportsPerSecond),
      entriesPerSecond: Math.round(entriesPerSecond),
      refused: collector.refused,
      trackedKeys: keys.engine.size,
      memoryBytes: keys.engine.memoryBytes,
    }
  }

  /** The requested keys, by default hot ones first, then by rate, ties by key. */
  keys(query: KeyQuery): KeyView[] {
    return this.page(query).keys
  }

  /** One page of them, and the total number. */
  page({ limit, offset = 0, sort = 'heat', ...query }: KeyQuery): { readonly keys: KeyView[]; readonly total: number } {
    const views = this.#shown(query).sort(compareKeys(sort))
    return { keys: views.slice(offset, offset + limit), total: views.length }
  }

  /** Keys by the part before their first separator. */
  keyGroups(query: Omit<KeyQuery, 'limit'>): KeyGroupView[] {
    return groupKeys(this.#shown(query))
  }

  #shown(query: Omit<KeyQuery, 'limit'>): KeyView[] {
    const now = this.#rooms.clock.now()
    const total = this.#rooms.fleet.hosts.ratePerSecond(now)
    const carrierOf = this.#carriers()
    const views = [...this.#rooms.keys.engine.shown()].map((heat) => this.#key(heat, total, now, carrierOf))
    return withRanks(views).filter((view) => isWanted(view, query))
  }

  /** One key with its hosts and its history; undefined if it is not tracked. */
  async key(redisClusterId: string, key: string): Promise<KeyDetail | undefined> {
    const { clock, keys, store } = this.#rooms
    const now = clock.now()
    const heat = keys.engine.get(redisClusterId, key)
    if (heat === undefined) return undefined
    const events = await store.history({ redisClusterId, key: keyText(key), limit: 100 })
    const view = this.#key(heat, this.#rooms.fleet.hosts.ratePerSecond(now), now, this.#carriers())
    return { ...view, topHosts: heat.lastMinute?.topHosts(now, 10) ?? [], events }
  }

  #carriers(): CarrierOf {
    const { fleet, delivery } = this.#rooms
    return fleet.hosts.carriers(delivery.isPublished)
  }

  #key(heat: NearKey, totalPerSecond: number, now: number, carrierOf: CarrierOf): KeyView {
    const { collector, keys, fleet, nodeOfSlot } = this.#rooms
    const sparkline = heat.lastMinute?.sparkline(now) ?? []
    const track = leadingTrack(heat)
    const recent = heat.lastMinute?.recent(now) ?? { accesses: 0, writes: 0, bytes: 0 }
    const ratePerSecond = rateOf(heat, recent.accesses, now)
    const hot = track?.state !== undefined && track.state.phase !== 'warming' ? track.state : undefined
    // A count below the floor f is sent as f or not at all: each host's share of the rate may be off by f an interval.
    const { samplingFloor, intervalMs } = collector.governor.pace
    const factor = hot === undefined ? samplingFloor : hotSamplingFactor(samplingFloor, track!.rule!.levels)
    const hosts = heat.lastMinute?.hostCount ?? 0
    return {
      redisClusterId: heat.redisClusterId,
      key: keyText(heat.key),
      state: track?.state?.phase ?? 'cold',
      ratePerSecond: Math.round(ratePerSecond),
      writesPerSecond: Math.round(recent.writes),
      bytesPerSecond: Math.round(recent.bytes),
      share: totalPerSecond === 0 ? 0 : Math.min(1, ratePerSecond / totalPerSecond),
      sparkline,
      errorPerSecond: Math.round(((factor - 1) * hosts * 1000) / intervalMs),
      hosts,
      services: heat.lastMinute?.services() ?? [],
      slot: heat.slot,
      ruleId: track?.rule?.id ?? null,
      strategy: hot?.entry.strategy ?? null,
      reason: track === undefined ? '' : trackReason(track, keys.totals, now, keys.autopilot.levelNow),
      since: track?.state?.since ?? null,
      effect:
        hot === undefined ? null : fleet.effects.view(heat.redisClusterId, heat.key, hot.ratePerSecondBefore, now),
      ...this.#handling(track, hot?.entry.strategy.strategy, carrierOf),
      rates: ratesOf(sparkline),
      node: nodeOfSlot(heat.redisClusterId, heat.slot),
    }
  }

  #handling(
    track: HeatTrack | undefined,
    strategy: StrategyName | undefined,
    carrierOf: CarrierOf,
  ): { handling: KeyHandling | null; carrier: KeyCarrier | null } {
    if (track === undefined || strategy === undefined) return { handling: null, carrier: null }
    const wantsHandling = strategy !== 'Observe' && track.rule?.mode === 'on'
    const carrier = wantsHandling ? carrierOf(track.services) : null
    if (this.#rooms.delivery.isOff) return { handling: 'unhandled', carrier }
    if (carrier === null || carrier === 'reports') return { handling: 'observed', carrier }
    return { handling: carrier === 'none' ? 'unhandled' : 'handled', carrier }
  }
}

/** Accesses per second over the last full second, ten and sixty seconds. */
function ratesOf(sparkline: readonly number[]): { second: number; tenSeconds: number; minute: number } {
  const mean = (count: number) => {
    const last = sparkline.slice(-count)
    return last.length === 0 ? 0 : Math.round(last.reduce((sum, rate) => sum + rate, 0) / last.length)
  }
  return { second: Math.round(sparkline.at(-1) ?? 0), tenSeconds: mean(10), minute: mean(60) }
}

/**
 * Each key's place in the list as it is without a choice of order, and how many places it rose by accesses of a full second,
 * from ten seconds before to the last one.
 */
function withRanks(given: readonly KeyView[]): KeyView[] {
  const views = given.toSorted(compareKeys('heat'))
  const places = (back: number) => {
    const ranked = views.map(({ sparkline, key }, index) => ({ index, key, rate: sparkline.at(back) ?? 0 }))
    ranked.sort((a, b) => b.rate - a.rate || (a.key < b.key ? -1 : 1))
    const rankOf = new Array<number>(views.length)
    for (const [place, { index }] of ranked.entries()) rankOf[index] = place + 1
    return rankOf
  }
  const [now, before] = [places(-1), places(-11)]
  return views.map((view, index) => ({ ...view, rank: index + 1, rankMove: before[index]! - now[index]! }))
}

/** If services' rules differ, a key has several tracks: the one furthest along is shown. */
function leadingTrack(heat: NearKey): HeatTrack | undefined {
  const rank = (track: HeatTrack) => statesHottestFirst.indexOf(track.state?.phase ?? 'cold')
  return heat.tracks.toSorted((a, b) => rank(a) - rank(b))[0]
}

function rateOf(heat: NearKey, recentPerSecond: number, now: number): number {
  let rate = 0
  for (const track of heat.tracks) {
    if (track.windowMs > longWindowMs && (recentPerSecond > 0 || track.awaitedMs(now) === 0)) return recentPerSecond
    rate += (track.heat('accesses', now) * 1000) / track.windowMs
  }
  return rate
}
