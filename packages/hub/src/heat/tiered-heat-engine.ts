import { randomInt } from 'node:crypto'
import { keyBytes, keyName, keySlotOfBytes, type Rule, type RuleScope } from '@firebreak/core'
import { FarKeys } from './far-keys.ts'
import type { HeatEngine, KeyHeat } from './heat-engine.ts'
import { HeatTrack } from './heat-track.ts'
import { KeyDetail } from './key-detail.ts'

export interface HeatEngineOptions {
  /** Keys of a cluster that are counted at once. @default 2000000 */
  readonly maxTrackedKeys?: number
  /** Keys with a detail beside those that are not cold. @default 200 */
  readonly maxCandidates?: number
}

class NearKey implements KeyHeat {
  readonly redisClusterId: string
  readonly key: string
  readonly slot: number
  readonly id: string
  /** One, unless services have rules of their own. */
  tracks: HeatTrack[] = []
  generation: number
  detail: KeyDetail | undefined
  lastSeenAt: number
  /** What the key had while it was far, for its first track: accesses and the window that they lie in. */
  past: { readonly heat: number; readonly windowMs: number } | undefined

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
const farSweepStep = 100_000
const evictionSample = 16
/** What a near key costs, measured on keys of some 20 bytes with one window; for the view, not for a bound. */
const bytesPerKey = 800
/** Near keys at one time; a rule of writes, bytes or shares makes all of its keys near. */
const maxNearKeys = 500_000
const maxClusters = 1000

/**
 * The hub's windows in two tiers. Far keys, millions of them, are counted by core's windows (`FarKeys`). A key that comes
 * near its threshold, or is among the hottest, gets an object here: a track for each set of rules, its state, its hosts,
 * its last minute. What it had before is spread evenly over the window that it lies in.
 *
 * Bounded in both tiers: when one is full, a new key takes the place of the coldest of a few others that are cold; a key
 * that is not cold is never forgotten for it.
 */
export class TieredHeatEngine implements HeatEngine {
  readonly #clusters = new Map<string, Map<string, NearKey>>()
  readonly #far = new Map<string, FarKeys<NearKey>>()
  readonly #candidates = new Set<NearKey>()
  readonly #maxTrackedKeys: number
  readonly #maxCandidates: number
  #rules: readonly Rule[] = []
  #hubCount = 1
  #generation = 0
  #size = 0
  #overflowCount = 0
  /** A cold key needs this rate to become a candidate; 0 while there is room. */
  #candidateLine = 0
  #hand: Iterator<NearKey> | undefined
  readonly #hashSeed = randomInt(2 ** 31)
  lastSlot = -1

  constructor(options: HeatEngineOptions = {}) {
    this.#maxTrackedKeys = options.maxTrackedKeys ?? 2_000_000
    this.#maxCandidates = options.maxCandidates ?? 200
  }

  get size(): number {
    let size = 0
    for (const far of this.#far.values()) size += far.size
    return size
  }

  /** Keys that have an object. */
  get nearSize(): number {
    return this.#size
  }

  get memoryBytes(): number {
    let bytes = this.#size * bytesPerKey
    for (const far of this.#far.values()) bytes += far.memoryBytes
    return bytes
  }

  get overflowCount(): number {
    return this.#overflowCount
  }

  add(
    redisClusterId: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    count: number,
    now: number,
  ): NearKey | undefined {
    const far = this.#farKeys(redisClusterId, now)
    const index = far === undefined ? -1 : far.add(bytes, start, end, count, now)
    if (far === undefined || index < 0) {
      this.#overflowCount++
      this.lastSlot = -1
      return undefined
    }
    this.lastSlot = far.slotOf(index)
    let near = far.near(index)
    if (near === undefined) {
      const heat = far.heatOf(index)
      const windowMs = far.windowMsOf(index)
      const isNear = heat >= far.nearHeatOf(index) || (heat * 1000) / windowMs > this.#candidateLine
      // A key that was forgotten below while it was near above is new to its index.
      if (!isNear && !(far.wasNew && this.#isKnown(redisClusterId, bytes, start, end))) return undefined
      near = this.find(redisClusterId, bytes, start, end, now)
      if (near?.tracks.length === 0) near.past = { heat: heat - count, windowMs }
    }
    if (near !== undefined) near.lastSeenAt = now
    return near
  }

  find(redisClusterId: string, bytes: Uint8Array, start: number, end: number, now: number): NearKey | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      keys = new Map()
      this.#clusters.set(redisClusterId, keys)
    }
    const id = idOf(bytes, start, end)
    let heat = keys.get(id)
    if (heat === undefined) {
      if (this.#size >= maxNearKeys && !this.#evictOne(now)) {
        this.#overflowCount++
        return undefined
      }
      heat = new NearKey(redisClusterId, id, keyName(bytes.subarray(start, end)), this.#generation, now)
      keys.set(id, heat)
      this.#size++
    }
    heat.lastSeenAt = now
    const far = this.#farKeys(redisClusterId, now)
    const index = far?.find(bytes, start, end) ?? -1
    if (index >= 0) far!.link(index, heat)
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
      if (heat.past !== undefined) track.addPast(heat.past.heat, heat.past.windowMs, heat.lastSeenAt)
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
    if (this.#candidates.size > this.#maxCandidates * 2) this.#trimCandidates(now)
  }

  setRules(rules: readonly Rule[]): void {
    this.#rules = rules
    this.#generation++
    for (const far of this.#far.values()) far.setRules(rules, this.#hubCount)
  }

  /** How many hubs share the sensors; with many, keys are near from a smaller part of their threshold on. */
  setHubCount(hubCount: number): void {
    if (hubCount === this.#hubCount) return
    this.#hubCount = hubCount
    for (const far of this.#far.values()) far.setRules(this.#rules, hubCount)
  }

  get(redisClusterId: string, key: string): NearKey | undefined {
    return this.#clusters.get(redisClusterId)?.get(Buffer.from(keyBytes(key)).toString('latin1'))
  }

  candidates(): Iterable<KeyHeat> {
    return this.#candidates
  }

  sweep(now: number): void {
    for (const [redisClusterId, far] of this.#far) {
      far.sweep(now, farSweepStep)
      if (far.size === 0 && !this.#clusters.has(redisClusterId)) this.#far.delete(redisClusterId)
    }
    for (let step = 0; step < sweepStep; step++) {
      const heat = this.#nextOfHand()
      if (heat === undefined) break
      const windowMs = Math.max(0, ...heat.tracks.map((track) => track.windowMs))
      if (heat.isCold && now - heat.lastSeenAt > windowMs + idleMs) this.#forget(heat)
    }
    this.#trimCandidates(now)
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

  #trimCandidates(now: number): void {
    const cold = [...this.#candidates].filter((heat) => heat.isCold).map((heat) => ({ heat, rate: rateOf(heat, now) }))
    if (cold.length <= this.#maxCandidates) {
      this.#candidateLine = 0
      for (const { heat, rate } of cold) if (rate === 0 && now - heat.lastSeenAt > 60_000) this.#dropDetail(heat)
      return
    }
    cold.sort((a, b) => b.rate - a.rate || (a.heat.key < b.heat.key ? -1 : 1))
    this.#candidateLine = cold[this.#maxCandidates - 1]!.rate
    for (const { heat } of cold.slice(this.#maxCandidates)) this.#dropDetail(heat)
  }

  /** A key that is neither hot nor among the hottest is far again, unless its own rule keeps it near. */
  #dropDetail(heat: NearKey): void {
    heat.detail = undefined
    this.#candidates.delete(heat)
    const far = this.#far.get(heat.redisClusterId)
    const index = this.#farIndex(heat)
    if (far === undefined || index < 0 || !heat.isCold) return
    if (far.heatOf(index) < far.nearHeatOf(index)) this.#forget(heat)
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
    const index = this.#farIndex(heat)
    if (index >= 0) this.#far.get(heat.redisClusterId)!.link(index, undefined)
    const keys = this.#clusters.get(heat.redisClusterId)
    if (keys?.delete(heat.id)) this.#size--
    if (keys?.size === 0) this.#clusters.delete(heat.redisClusterId)
  }

  #farIndex(heat: NearKey): number {
    const bytes = Buffer.from(heat.id, 'latin1')
    return this.#far.get(heat.redisClusterId)?.find(bytes, 0, bytes.length) ?? -1
  }

  #farKeys(redisClusterId: string, now: number): FarKeys<NearKey> | undefined {
    let far = this.#far.get(redisClusterId)
    if (far === undefined && this.#far.size < maxClusters) {
      const maxKeys = this.#maxTrackedKeys
      far = new FarKeys({
        redisClusterId,
        rules: this.#rules,
        maxKeys,
        now,
        hashSeed: this.#hashSeed,
        hubCount: this.#hubCount,
      })
      this.#far.set(redisClusterId, far)
    }
    return far
  }

  #isKnown(redisClusterId: string, bytes: Uint8Array, start: number, end: number): boolean {
    return this.#clusters.get(redisClusterId)?.has(idOf(bytes, start, end)) ?? false
  }

  /** The clock hand: all keys, one after the other, for ever; a Map may change under its iterator. */
  #nextOfHand(): NearKey | undefined {
    for (let attempt = 0; attempt < 2; attempt++) {
      this.#hand ??= this.#allKeys()
      const next = this.#hand.next()
      if (!next.done) return next.value
      this.#hand = undefined
    }
    return undefined
  }

  *#allKeys(): Iterator<NearKey> {
    for (const keys of this.#clusters.values()) yield* keys.values()
  }
}

/** A key's bytes as Latin-1, which V8 makes without decoding. */
function idOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}

function rateOf(heat: KeyHeat, now: number): number {
  let rate = 0
  for (const track of heat.tracks) rate += (track.heat('accesses', now) * 1000) / track.windowMs
  return rate
}
