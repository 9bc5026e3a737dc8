import { type DryRunKey, type DryRunView, keyBytes, keyText, type Strategy } from '@firebreak/core'
import { type Rule, RuleSet } from '@firebreak/core/rules'
import { AccessTotals, type NodeOfSlot } from '../decide/access-totals.ts'
import { chooseFirstStrategy } from '../decide/choose-strategy.ts'
import { Decider } from '../decide/decider.ts'
import { bytesText } from '../decide/reason.ts'
import { CountedClusters } from '../heat/counted-clusters.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import { NearKeys } from '../heat/near-keys.ts'
import type { RecordedKey, RecordedPoint } from './recorded-seconds.ts'

/** The number of steps in which a second of records is replayed. */
const partsOfSecond = 10
/** The number of keys reported individually, and of spans for each. */
const maxKeys = 1000
const maxSpans = 100

export interface DryRunRecords {
  readonly points: readonly RecordedPoint[]
  readonly from: number
  readonly to: number
  /** The length of a point. */
  readonly resolutionMs: number
}

type Span = { from: number; to: number; strategy: string }
interface Outcome {
  readonly of: Pick<RecordedKey, 'redisClusterId' | 'key'>
  firings: number
  readonly spans: Span[]
  /** The last of the spans, if it is still open. */
  open: Span | undefined
  reads: number
  savedReads: number
  bytes: number
}

/**
 * Tries a rule on recorded traffic: the same windows and the same decider, driven by the records instead of the clock.
 * A point of ten seconds or a minute is replayed second by second, evenly. A rule for one service is tried on the keys
 * that the service touched, with the accesses of all services. Keys that were not among the hottest are not recorded; a
 * threshold far below those finds too few.
 */
export function dryRun(rule: Rule, records: DryRunRecords, nodeOfSlot: NodeOfSlot): DryRunView {
  const { points, from, to, resolutionMs } = records
  const replay = new Replay(rule, from, nodeOfSlot)
  const seconds = resolutionMs / 1000
  let next = from
  for (const point of points) {
    // Time also passes where nothing was recorded, until everything has cooled.
    for (; next < point.at && replay.isAnythingActive; next += 1000) replay.second(next, undefined, 1)
    for (let second = 0; second < seconds; second++) {
      replay.second(point.at + second * 1000, point, 1 / seconds)
    }
    next = point.at + resolutionMs
  }
  for (; next < to && replay.isAnythingActive; next += 1000) replay.second(next, undefined, 1)
  return replay.view(records)
}

class Replay {
  readonly #rule: Rule
  readonly #set: RuleSet
  readonly #engine: NearKeys
  readonly #totals: AccessTotals
  readonly #decider: Decider
  readonly #outcomes = new Map<HeatTrack, Outcome>()
  #now: number
  #firings = 0
  #reads = 0

  constructor(rule: Rule, from: number, nodeOfSlot: NodeOfSlot) {
    this.#rule = rule
    this.#set = new RuleSet([{ ...rule, mode: 'on', serviceId: '*' }])
    // Recorded keys are looked up by name: all are near.
    this.#engine = new NearKeys(new CountedClusters({ maxKeys: 1, hashSeed: 0 }))
    this.#engine.setRules(this.#set.rules)
    this.#totals = new AccessTotals(nodeOfSlot)
    this.#totals.setRules(this.#set.rules)
    this.#now = from
    this.#decider = new Decider({
      clock: { now: () => this.#now },
      settleMs: 0,
      settleJitterMs: 0,
      entryTtlMs: Number.MAX_SAFE_INTEGER,
      tickMs: 100,
      random: () => 0,
      sink: {
        set: (track, { strategy }) => this.#begin(track, strategy.strategy),
        remove: (track) => this.#end(track),
      },
      totals: this.#totals,
      levelNow: (_track, level) => level,
      chooseStrategy: chooseFirstStrategy,
      processCount: () => 0,
      record: ({ kind }) => {
        if (kind === 'hot') this.#firings++
      },
    })
    this.#decider.setRules(this.#set.rules)
  }

  /** False while every key is cold. */
  get isAnythingActive(): boolean {
    return this.#decider.active()[Symbol.iterator]().next().done === false
  }

  /** One second: the fraction `part` of the point. */
  second(at: number, point: RecordedPoint | undefined, part: number): void {
    const counts = point?.counts ?? []
    const tracks = counts.map(({ of }) => this.#trackOf(of, at))
    for (let step = 0; step < partsOfSecond; step++) {
      // A report arrives at the end of its interval and is dated into it.
      const middle = at + ((step + 0.5) * 1000) / partsOfSecond
      const share = part / partsOfSecond
      this.#now = at + ((step + 1) * 1000) / partsOfSecond
      if (point !== undefined) {
        for (const cluster of new Set(counts.map(({ of }) => of.redisClusterId)))
          this.#totals.addReport(cluster, '', middle, point.total * share)
      }
      counts.forEach(({ of, accesses, writes, bytes }, index) => {
        const track = tracks[index]
        this.#totals.addEntry(of.redisClusterId, of.slot, middle, accesses * share)
        if (track === undefined) return
        track.add(middle, accesses * share, writes * share, bytes * share)
        this.#decider.onHeat(track, this.#now)
        this.#count(track, (accesses - writes) * share, accesses * share, bytes * share)
      })
      this.#decider.tick(this.#now)
    }
    if (point === undefined) return
    const writes = counts.reduce((sum, count) => sum + count.writes, 0)
    this.#reads += Math.max(0, (point.total - writes) * part)
  }

  view({ points, from, to, resolutionMs }: DryRunRecords): DryRunView {
    for (const { open } of this.#outcomes.values()) if (open !== undefined) open.to = Math.max(open.to, this.#now)
    const outcomes = [...this.#outcomes.values()].sort((a, b) => b.reads - a.reads || (a.of.key < b.of.key ? -1 : 1))
    const sum = (field: 'reads' | 'savedReads' | 'bytes') => outcomes.reduce((total, of) => total + of[field], 0)
    const readShare = this.#reads === 0 ? 0 : Math.min(1, sum('reads') / this.#reads)
    const seconds = Math.round((points.length * resolutionMs) / 1000)
    const times = this.#firings === 1 ? 'once' : `${this.#firings} times`
    const bytes = Math.round(sum('bytes'))
    return {
      seconds,
      firings: this.#firings,
      keys: outcomes.length,
      readShare,
      bytes,
      text:
        this.#firings === 0
          ? `would not have fired in the last ${seconds} s`
          : `would have fired ${times} in the last ${seconds} s, ${Math.round(readShare * 100)} % of reads, ${bytesText(bytes)}`,
      from,
      to,
      resolutionMs,
      savedReads: Math.round(sum('savedReads')),
      hot: outcomes.slice(0, maxKeys).map(toKey),
    }
  }

  #trackOf({ redisClusterId, key, services }: RecordedKey, at: number): HeatTrack | undefined {
    const { serviceId } = this.#rule
    if (serviceId !== '*' && !services.includes(serviceId)) return undefined
    const name = keyBytes(key)
    const near = this.#engine.find(redisClusterId, name, 0, name.length, at)
    if (near === undefined) return undefined
    const track = this.#engine.trackOf(near, this.#set.scope(redisClusterId, ''))
    if (track.services.size === 0) track.addService('')
    return track
  }

  /** The key is hot from now on, or its handling changes. */
  #begin(track: HeatTrack, strategy: string): void {
    let outcome = this.#outcomes.get(track)
    if (outcome === undefined) {
      const { redisClusterId, key } = track
      outcome = {
        of: { redisClusterId, key },
        firings: 0,
        spans: [],
        open: undefined,
        reads: 0,
        savedReads: 0,
        bytes: 0,
      }
      this.#outcomes.set(track, outcome)
    }
    if (outcome.open === undefined) outcome.firings++
    else if (outcome.open.strategy === strategy) return
    else outcome.open.to = this.#now
    outcome.open = { from: this.#now, to: this.#now, strategy }
    if (outcome.spans.length < maxSpans) outcome.spans.push(outcome.open)
  }

  #end(track: HeatTrack): void {
    const outcome = this.#outcomes.get(track)
    if (outcome?.open === undefined) return
    outcome.open.to = this.#now
    outcome.open = undefined
  }

  #count(track: HeatTrack, reads: number, accesses: number, bytes: number): void {
    const { state } = track
    const outcome = this.#outcomes.get(track)
    if (outcome === undefined || state === undefined || state.phase === 'warming') return
    outcome.reads += reads
    outcome.savedReads += saved(state.entry.strategy, reads, accesses)
    outcome.bytes += bytes
  }
}

/** Reads that Redis would not have seen: all with a cache, the refused ones with a limit. Copies only move them. */
function saved(strategy: Strategy, reads: number, accesses: number): number {
  switch (strategy.strategy) {
    // It saves writes.
    case 'Combine':
    case 'RedundantKeys':
    case 'Observe':
      return 0
    case 'RateLimit':
      return Math.max(0, Math.min(reads, accesses - (strategy.limit * 1000) / strategy.windowMs / partsOfSecond))
    default:
      return reads
  }
}

function toKey({ of, firings, spans, reads, savedReads, bytes }: Outcome): DryRunKey {
  const { redisClusterId, key } = of
  return {
    redisClusterId,
    key: keyText(key),
    firings,
    spans,
    reads: Math.round(reads),
    savedReads: Math.round(savedReads),
    bytes: Math.round(bytes),
  }
}
