import { keyBytes, keyName, keySlotOfBytes, type Rule, type RuleScope } from '@firebreak/core'
import { type FarRow, farSlices, isNearAt, latin1 } from './far-keys.ts'
import type { FarSide } from './far-tier.ts'
import type { HeatEngine, KeyHeat } from './heat-engine.ts'
import { HeatTrack } from './heat-track.ts'
import { KeyDetail } from './key-detail.ts'
import { NearLines } from './near-lines.ts'

export interface HeatEngineOptions {
  /** Keys with a detail beside those that are not cold. @default 200 */
  readonly maxCandidates?: number
}

/** A key near its threshold, or among the hottest: an object of its own. */
export class NearKey implements KeyHeat {
  readonly redisClusterId: string
  readonly key: string
  readonly slot: number
  readonly id: string
  /** One, unless services have rules of their own. */
  tracks: HeatTrack[] = []
  generation: number
  detail: KeyDetail | undefined
  lastSeenAt: number
  /** What the key had while it was far, for its first track: slices, newest first, and how long ago the newest began. */
  past: { readonly slices: Float64Array; readonly sliceMs: number } | undefined

  constructor(redisClusterId: string, id: string, key: string, generation: number, now: number) {
    this.redisClusterId = redisClusterId
    this.id = id
    this.key = key
    this.slot = keySlotOfBytes(keyBytes(key))
    this.generation = generation
    this.lastSeenAt = now
  }

  get isCold(): boolean {
    return this.tracks.every(({ state }) => state === undefined)
  }
}

/** A key without an access for this long, beyond its rule's window, is forgotten. */
const idleMs = 10_000
/** Keys looked at in one sweep, and when a new key finds the table full. */
const sweepStep = 2000
const evictionSample = 16
/** What a near key costs, measured on keys of some 20 bytes with one window; for the view, not for a bound. */
const bytesPerKey = 800
/** Near keys at one time; a rule of writes, bytes or shares makes all of its keys near. */
const maxNearKeys = 500_000

/**
 * The hub's windows in two tiers. Far keys, millions of them, are counted by core's windows (`FarTier`), in this thread or
 * in others. A key that comes near its threshold, or is among the hottest, gets an object here: a track for each set of rules, its state, its hosts,
 * its last minute. What it had before is taken over slice by slice.
 *
 * Bounded in both tiers: when one is full, a new key takes the place of the coldest of a few others that are cold; a key
 * that is not cold is never forgotten for it.
 */
export class TieredHeatEngine implements HeatEngine {
  readonly #clusters = new Map<string, Map<string, NearKey>>()
  readonly #far: FarSide<NearKey>
  readonly #candidates = new Set<NearKey>()
  readonly #maxCandidates: number
  #rules: readonly Rule[] = []
  #hubCount = 1
  #lines = new NearLines([], 1)
  #generation = 0
  #size = 0
  #overflowCount = 0
  #candidateLine = 0
  #hand: Iterator<NearKey> | undefined

  constructor(far: FarSide<NearKey>, options: HeatEngineOptions = {}) {
    this.#far = far
    this.#maxCandidates = options.maxCandidates ?? 200
  }

  /** A cold key needs a higher rate than this to become a candidate; 0 while there is room. It falls in `sweep` only. */
  get candidateLine(): number {
    return this.#candidateLine
  }

  get size(): number {
    return this.#far.size
  }

  /** Keys that have an object. */
  get nearSize(): number {
    return this.#size
  }

  get memoryBytes(): number {
    return this.#size * bytesPerKey + this.#far.memoryBytes
  }

  get overflowCount(): number {
    return this.#overflowCount + this.#far.overflowCount
  }

  /** The key of an entry that the far side found to matter; undefined where it does not, or finds no room. */
  take(redisClusterId: string, bytes: Uint8Array, row: FarRow<NearKey>, now: number): NearKey | undefined {
    const { keyStart: start, keyEnd: end, heat, windowMs, nearHeat } = row
    let near = row.near ?? this.#clusters.get(redisClusterId)?.get(latin1(bytes, start, end))
    if (near === undefined) {
      if (!isNearAt(heat, windowMs, nearHeat, this.#candidateLine)) return undefined
      near = this.find(redisClusterId, bytes, start, end, now)
      if (near?.tracks.length === 0) near.past = { slices: row.past.slice(), sliceMs: windowMs / farSlices }
    }
    if (near !== undefined) near.lastSeenAt = now
    return near
  }

  /** All keys that have an object. */
  *near(): Generator<NearKey> {
    for (const keys of this.#clusters.values()) yield* keys.values()
  }

  find(redisClusterId: string, bytes: Uint8Array, start: number, end: number, now: number): NearKey | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      keys = new Map()
      this.#clusters.set(redisClusterId, keys)
    }
    const id = latin1(bytes, start, end)
    let heat = keys.get(id)
    if (heat === undefined) {
      if (this.#size >= maxNearKeys && !this.#evictOne(now)) {
        this.#overflowCount++
        return undefined
      }
      heat = new NearKey(redisClusterId, id, keyName(bytes.subarray(start, end)), this.#generation, now)
      keys.set(id, heat)
      this.#size++
      this.#far.link(redisClusterId, id, heat, now)
    }
    heat.lastSeenAt = now
    return heat
  }

  trackOf(given: KeyHeat, scope: RuleScope): HeatTrack {
    const heat = given as NearKey
    if (heat.generation !== this.#generation) this.#startGeneration(heat)
    for (const track of heat.tracks) if (track.isOf(scope)) return track
    const index = scope.match(heat.key)
    const rule = index < 0 ? undefined : this.#rules[index]
    let track = heat.tracks.find((candidate) => candidate.fits(rule))
    if (track === undefined) {
      track = new HeatTrack(heat.redisClusterId, heat.key, heat.slot, rule)
      heat.tracks.push(track)
      if (heat.past !== undefined) track.addPast(heat.past.slices, heat.past.sliceMs, heat.lastSeenAt)
      heat.past = undefined
    }
    track.rule = rule
    track.addScope(scope)
    return track
  }

  consider(given: KeyHeat, track: HeatTrack, now: number): void {
    const heat = given as NearKey
    if (heat.detail !== undefined) return
    const isHotter = (track.heat('accesses', now) * 1000) / track.windowMs > this.#candidateLine
    if (track.state === undefined && !isHotter) return
    heat.detail = new KeyDetail()
    this.#candidates.add(heat)
    if (this.#candidates.size <= this.#maxCandidates * 2) return
    // It may only rise here: other threads go by the line that they were told.
    this.#candidateLine = Math.max(this.#candidateLine, this.#trimCandidates(now))
  }

  setRules(rules: readonly Rule[]): void {
    this.#rules = rules
    this.#generation++
    this.#setLines()
  }

  /** How many hubs share the sensors; with many, keys are near from a smaller part of their threshold on. */
  setHubCount(hubCount: number): void {
    if (hubCount === this.#hubCount) return
    this.#hubCount = hubCount
    this.#setLines()
  }

  get(redisClusterId: string, key: string): NearKey | undefined {
    return this.#clusters.get(redisClusterId)?.get(latin1(keyBytes(key)))
  }

  candidates(): Iterable<KeyHeat> {
    return this.#candidates
  }

  sweep(now: number): void {
    this.#far.sweep(now)
    for (let step = 0; step < sweepStep; step++) {
      const heat = this.#nextOfHand()
      if (heat === undefined) break
      const windowMs = Math.max(0, ...heat.tracks.map((track) => track.windowMs))
      if (heat.isCold && now - heat.lastSeenAt > windowMs + idleMs) this.#forget(heat)
    }
    this.#candidateLine = this.#trimCandidates(now)
  }

  /** Tracks that the new rules still use are found again by rule and window; the others go with the old rules. */
  #startGeneration(heat: NearKey): void {
    heat.generation = this.#generation
    heat.tracks = heat.tracks.filter((track) => {
      track.clearScopes()
      const rule = this.#rules.find(({ id }) => id === track.rule?.id)
      return track.state !== undefined || track.fits(rule)
    })
  }

  #setLines(): void {
    this.#lines = new NearLines(this.#rules, this.#hubCount)
    this.#far.setRules(this.#rules, this.#hubCount)
  }

  /** Drops the details of all but the hottest cold keys; gives the rate that the last of those has, 0 while there is room. */
  #trimCandidates(now: number): number {
    const cold = [...this.#candidates].filter((heat) => heat.isCold).map((heat) => ({ heat, rate: rateOf(heat, now) }))
    if (cold.length <= this.#maxCandidates) {
      for (const { heat, rate } of cold) {
        if (rate === 0 && now - heat.lastSeenAt > 60_000) this.#dropDetail(heat, rate)
      }
      return 0
    }
    cold.sort((a, b) => b.rate - a.rate || (a.heat.key < b.heat.key ? -1 : 1))
    for (const { heat, rate } of cold.slice(this.#maxCandidates)) this.#dropDetail(heat, rate)
    return cold[this.#maxCandidates - 1]!.rate
  }

  /** A key that is neither hot nor among the hottest is far again, unless its own rule keeps it near. */
  #dropDetail(heat: NearKey, rate: number): void {
    heat.detail = undefined
    this.#candidates.delete(heat)
    const { heat: nearHeat, windowMs } = this.#lines.lineOf(heat.redisClusterId, heat.key)
    if (rate < (nearHeat * 1000) / windowMs) this.#forget(heat)
  }

  #evictOne(now: number): boolean {
    let coldest: NearKey | undefined
    let coldestRate = Number.POSITIVE_INFINITY
    for (let step = 0; step < evictionSample; step++) {
      const heat = this.#nextOfHand()
      if (heat === undefined) break
      const rate = rateOf(heat, now)
      if (heat.isCold && rate < coldestRate) {
        coldest = heat
        coldestRate = rate
      }
    }
    if (coldest === undefined) return false
    this.#forget(coldest)
    return true
  }

  #forget(heat: NearKey): void {
    heat.detail = undefined
    this.#candidates.delete(heat)
    this.#far.unlink(heat.redisClusterId, heat.id)
    const keys = this.#clusters.get(heat.redisClusterId)
    if (keys?.delete(heat.id)) this.#size--
    if (keys?.size === 0) this.#clusters.delete(heat.redisClusterId)
  }

  /** The clock hand: all keys, one after the other, for ever; a Map may change under its iterator. */
  #nextOfHand(): NearKey | undefined {
    for (let attempt = 0; attempt < 2; attempt++) {
      this.#hand ??= this.near()
      const next = this.#hand.next()
      if (!next.done) return next.value
      this.#hand = undefined
    }
    return undefined
  }
}

function rateOf(heat: KeyHeat, now: number): number {
  let rate = 0
  for (const track of heat.tracks) rate += (track.heat('accesses', now) * 1000) / track.windowMs
  return rate
}
