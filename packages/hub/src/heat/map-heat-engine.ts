import { keyBytes, keyName, keySlotOfBytes, type Rule, type RuleScope } from '@firebreak/core'
import type { HeatEngine, KeyHeat } from './heat-engine.ts'
import { HeatTrack } from './heat-track.ts'
import { KeyDetail } from './key-detail.ts'

export interface MapHeatEngineOptions {
  /** Keys that are tracked at once. @default 500000 */
  readonly maxTrackedKeys?: number
  /** Keys with a detail beside those that are not cold. @default 200 */
  readonly maxCandidates?: number
}

class MapKeyHeat implements KeyHeat {
  readonly redisClusterId: string
  readonly key: string
  readonly slot: number
  readonly id: string
  /** One, unless services have rules of their own. */
  tracks: HeatTrack[] = []
  generation: number
  detail: KeyDetail | undefined
  lastSeenAt: number

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
/** What a tracked key costs, measured on keys of some 20 bytes with one window; for the view, not for a bound. */
const bytesPerKey = 800

/**
 * The windows on a `Map` per cluster. Keys are looked up by their bytes as Latin-1, which V8 makes without decoding.
 *
 * Bounded: when it is full, a new key takes the place of the coldest of a few others that are cold; a key that is not
 * cold is never forgotten for it. Details go to keys that are not cold and to the hottest of the rest.
 */
export class MapHeatEngine implements HeatEngine {
  readonly #clusters = new Map<string, Map<string, MapKeyHeat>>()
  readonly #candidates = new Set<MapKeyHeat>()
  readonly #maxTrackedKeys: number
  readonly #maxCandidates: number
  #rules: readonly Rule[] = []
  #generation = 0
  #size = 0
  #overflowCount = 0
  /** A cold key needs this rate to become a candidate; 0 while there is room. */
  #candidateLine = 0
  #hand: Iterator<MapKeyHeat> | undefined

  constructor(options: MapHeatEngineOptions = {}) {
    this.#maxTrackedKeys = options.maxTrackedKeys ?? 500_000
    this.#maxCandidates = options.maxCandidates ?? 200
  }

  get size(): number {
    return this.#size
  }

  get memoryBytes(): number {
    return this.#size * bytesPerKey
  }

  get overflowCount(): number {
    return this.#overflowCount
  }

  find(redisClusterId: string, bytes: Uint8Array, start: number, end: number, now: number): MapKeyHeat | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      keys = new Map()
      this.#clusters.set(redisClusterId, keys)
    }
    const id = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
    let heat = keys.get(id)
    if (heat === undefined) {
      if (this.#size >= this.#maxTrackedKeys && !this.#evictOne(now)) {
        this.#overflowCount++
        return undefined
      }
      heat = new MapKeyHeat(redisClusterId, id, keyName(bytes.subarray(start, end)), this.#generation, now)
      keys.set(id, heat)
      this.#size++
    }
    heat.lastSeenAt = now
    return heat
  }

  trackOf(given: KeyHeat, scope: RuleScope): HeatTrack {
    const heat = given as MapKeyHeat
    if (heat.generation !== this.#generation) this.#startGeneration(heat)
    for (const track of heat.tracks) if (track.isOf(scope)) return track
    const index = scope.match(heat.key)
    const rule = index < 0 ? undefined : this.#rules[index]
    let track = heat.tracks.find((candidate) => candidate.fits(rule))
    if (track === undefined) {
      track = new HeatTrack(heat.redisClusterId, heat.key, heat.slot, rule)
      heat.tracks.push(track)
    }
    track.rule = rule
    track.addScope(scope)
    return track
  }

  consider(given: KeyHeat, track: HeatTrack, now: number): void {
    const heat = given as MapKeyHeat
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
  }

  get(redisClusterId: string, key: string): MapKeyHeat | undefined {
    return this.#clusters.get(redisClusterId)?.get(Buffer.from(keyBytes(key)).toString('latin1'))
  }

  candidates(): Iterable<KeyHeat> {
    return this.#candidates
  }

  sweep(now: number): void {
    for (let step = 0; step < sweepStep; step++) {
      const heat = this.#nextOfHand()
      if (heat === undefined) break
      const windowMs = Math.max(0, ...heat.tracks.map((track) => track.windowMs))
      if (heat.isCold && now - heat.lastSeenAt > windowMs + idleMs) this.#forget(heat)
    }
    this.#trimCandidates(now)
  }

  /** Tracks that the new rules still use are found again by rule and window; the others go with the old rules. */
  #startGeneration(heat: MapKeyHeat): void {
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

  #dropDetail(heat: MapKeyHeat): void {
    heat.detail = undefined
    this.#candidates.delete(heat)
  }

  #evictOne(now: number): boolean {
    let coldest: MapKeyHeat | undefined
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

  #forget(heat: MapKeyHeat): void {
    this.#dropDetail(heat)
    const keys = this.#clusters.get(heat.redisClusterId)
    if (keys?.delete(heat.id)) this.#size--
    if (keys?.size === 0) this.#clusters.delete(heat.redisClusterId)
  }

  /** The clock hand: all keys, one after the other, for ever; a Map may change under its iterator. */
  #nextOfHand(): MapKeyHeat | undefined {
    for (let attempt = 0; attempt < 2; attempt++) {
      this.#hand ??= this.#allKeys()
      const next = this.#hand.next()
      if (!next.done) return next.value
      this.#hand = undefined
    }
    return undefined
  }

  *#allKeys(): Iterator<MapKeyHeat> {
    for (const keys of this.#clusters.values()) yield* keys.values()
  }
}

function rateOf(heat: KeyHeat, now: number): number {
  let rate = 0
  for (const track of heat.tracks) rate += (track.heat('accesses', now) * 1000) / track.windowMs
  return rate
}
