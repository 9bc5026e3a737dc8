import { keyBytes, keyName } from '@firebreak/core'
import { windowSlices } from '@firebreak/core/heat'
import type { Rule, RuleScope } from '@firebreak/core/rules'
import type { KeyCounts } from './counted-clusters.ts'
import { isNearAt, latin1, type NearRow } from './counted-keys.ts'
import { HeatTrack } from './heat-track.ts'
import { LastMinute } from './last-minute.ts'
import { NearKey } from './near-key.ts'
import { NearLines } from './near-lines.ts'

export interface NearKeysOptions {
  /** Cold keys displayed, with their last minute, in addition to all that are not cold. @default 200 */
  readonly maxShownCold?: number
}

/** A key without an access for this long, beyond its rule's window, is forgotten. */
const idleMs = 10_000
/** Keys checked in one sweep, and when a new key finds the table full. */
const sweepStep = 2000
const evictionSample = 16
/** The cost of a near key, measured on keys of about 20 bytes with one window; for display, not for a bound. */
const bytesPerKey = 800
/** Maximum number of near keys; a rule of writes, bytes or shares makes all of its keys near. */
const maxNearKeys = 500_000

/**
 * The keys that may become hot, or are. Every key is *counted* (`KeyCounts`: core's windows, in this thread or in
 * others); a key that comes *near* its threshold, or is among the hottest, gets an object here: a track for each set of
 * rules, with its state, and its hosts and last minute while it is displayed. Earlier counts are carried over slice by
 * slice.
 *
 * Both are bounded: when one is full, a new key replaces the coldest of a few cold ones; a near key that is not cold is
 * never dropped for it.
 */
export class NearKeys {
  readonly #clusters = new Map<string, Map<string, NearKey>>()
  readonly #counts: KeyCounts<NearKey>
  readonly #shown = new Set<NearKey>()
  readonly #maxShownCold: number
  #rules: readonly Rule[] = []
  #hubCount = 1
  #lines = new NearLines([], 1)
  #generation = 0
  #size = 0
  #overflowCount = 0
  #nearRate = 0
  #hand: Iterator<NearKey> | undefined

  constructor(counts: KeyCounts<NearKey>, options: NearKeysOptions = {}) {
    this.#counts = counts
    this.#maxShownCold = options.maxShownCold ?? 200
  }

  /**
   * A cold key needs a higher rate than this to be among the hottest; 0 while there is room. It only falls in `sweep`.
   */
  get nearRate(): number {
    return this.#nearRate
  }

  /** Number of counted keys. */
  get size(): number {
    return this.#counts.size
  }

  get nearSize(): number {
    return this.#size
  }

  /** Estimated bytes. */
  get memoryBytes(): number {
    return this.#size * bytesPerKey + this.#counts.memoryBytes
  }

  /** Keys since the start that found no room. */
  get overflowCount(): number {
    return this.#overflowCount + this.#counts.overflowCount
  }

  /** The key of an entry that may matter according to the counter; undefined if it does not, or there is no room. */
  take(redisClusterId: string, bytes: Uint8Array, row: NearRow<NearKey>, now: number): NearKey | undefined {
    const { keyStart: start, keyEnd: end, heat, windowMs, nearHeat } = row
    let near = row.near ?? this.#clusters.get(redisClusterId)?.get(latin1(bytes, start, end))
    if (near === undefined) {
      if (!isNearAt(heat, windowMs, nearHeat, this.#nearRate)) return undefined
      near = this.find(redisClusterId, bytes, start, end, now)
      if (near?.tracks.length === 0) near.past = { slices: row.past.slice(), sliceMs: windowMs / windowSlices }
    }
    if (near !== undefined) near.lastSeenAt = now
    return near
  }

  /** All near keys. */
  *all(): Generator<NearKey> {
    for (const keys of this.#clusters.values()) yield* keys.values()
  }

  /** The key by its bytes, near from now on whatever its heat; undefined if there is no room. */
  find(redisClusterId: string, bytes: Uint8Array, start: number, end: number, now: number): NearKey | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      keys = new Map()
      this.#clusters.set(redisClusterId, keys)
    }
    const id = latin1(bytes, start, end)
    let near = keys.get(id)
    if (near === undefined) {
      if (this.#size >= maxNearKeys && !this.#evictOne(now)) {
        this.#overflowCount++
        return undefined
      }
      near = new NearKey(redisClusterId, id, keyName(bytes.subarray(start, end)), this.#generation, now)
      keys.set(id, near)
      this.#size++
      this.#counts.addNear(redisClusterId, id, near, now)
    }
    near.lastSeenAt = now
    return near
  }

  /** The track that counts for a service's rules, matched once and remembered with the key. */
  trackOf(near: NearKey, scope: RuleScope): HeatTrack {
    if (near.generation !== this.#generation) this.#startGeneration(near)
    for (const track of near.tracks) if (track.isOf(scope)) return track
    const index = scope.match(near.key)
    const rule = index < 0 ? undefined : this.#rules[index]
    let track = near.tracks.find((candidate) => candidate.fits(rule))
    if (track === undefined) {
      track = new HeatTrack(near.redisClusterId, near.key, near.slot, rule)
      near.tracks.push(track)
      if (near.past !== undefined) track.addPast(near.past.slices, near.past.sliceMs, near.lastSeenAt)
      near.past = undefined
    }
    track.rule = rule
    track.addScope(scope)
    return track
  }

  /** Checks a key after its count changed: the hottest keys and all that are not cold are displayed. */
  consider(near: NearKey, track: HeatTrack, now: number): void {
    if (near.lastMinute !== undefined) return
    const isHotter = (track.heat('accesses', now) * 1000) / track.windowMs > this.#nearRate
    if (track.state === undefined && !isHotter) return
    near.lastMinute = new LastMinute()
    this.#shown.add(near)
    if (this.#shown.size <= this.#maxShownCold * 2) return
    // It may only rise here: other threads use the rate that they were last told.
    this.#nearRate = Math.max(this.#nearRate, this.#trimShown(now))
  }

  /** The rules changed: tracks are matched again when next touched. */
  setRules(rules: readonly Rule[]): void {
    this.#rules = rules
    this.#generation++
    this.#setLines()
  }

  /** How many hubs share the sensors; with many, keys are near from a smaller fraction of their threshold. */
  setHubCount(hubCount: number): void {
    if (hubCount === this.#hubCount) return
    this.#hubCount = hubCount
    this.#setLines()
  }

  /** A key by its name. */
  get(redisClusterId: string, key: string): NearKey | undefined {
    return this.#clusters.get(redisClusterId)?.get(latin1(keyBytes(key)))
  }

  /** The keys with a last minute: the hottest, and all that are not cold. */
  shown(): Iterable<NearKey> {
    return this.#shown
  }

  /** Forgets some idle keys; called often, each time a bounded step. */
  sweep(now: number): void {
    this.#counts.sweep(now)
    for (let step = 0; step < sweepStep; step++) {
      const near = this.#nextOfHand()
      if (near === undefined) break
      const windowMs = Math.max(0, ...near.tracks.map((track) => track.windowMs))
      const isSilent = now - near.lastSeenAt > windowMs + idleMs
      if (near.isCold && isSilent && near.ratePerSecond(now) === 0) this.#forget(near)
    }
    this.#nearRate = this.#trimShown(now)
  }

  /** Tracks that the new rules still use are found by rule and window; the others are dropped with the old rules. */
  #startGeneration(near: NearKey): void {
    near.generation = this.#generation
    near.tracks = near.tracks.filter((track) => {
      track.clearScopes()
      const rule = this.#rules.find(({ id }) => id === track.rule?.id)
      return track.state !== undefined || track.fits(rule)
    })
  }

  #setLines(): void {
    this.#lines = new NearLines(this.#rules, this.#hubCount)
    this.#counts.setRules(this.#rules, this.#hubCount)
  }

  /** Hides all but the hottest cold keys; returns the lowest rate among those, 0 while there is room. */
  #trimShown(now: number): number {
    const cold = [...this.#shown]
      .filter(({ isCold }) => isCold)
      .map((near) => ({ near, rate: near.ratePerSecond(now) }))
    if (cold.length <= this.#maxShownCold) {
      for (const { near, rate } of cold) {
        if (rate === 0 && now - near.lastSeenAt > 60_000) this.#hide(near, rate)
      }
      return 0
    }
    cold.sort((a, b) => b.rate - a.rate || (a.near.key < b.near.key ? -1 : 1))
    for (const { near, rate } of cold.slice(this.#maxShownCold)) this.#hide(near, rate)
    return cold[this.#maxShownCold - 1]!.rate
  }

  /** A key that is neither hot nor among the hottest is no longer near, unless its own rule keeps it so. */
  #hide(near: NearKey, rate: number): void {
    near.lastMinute = undefined
    this.#shown.delete(near)
    const { heat: nearHeat, windowMs } = this.#lines.lineOf(near.redisClusterId, near.key)
    if (rate < (nearHeat * 1000) / windowMs) this.#forget(near)
  }

  #evictOne(now: number): boolean {
    let coldest: NearKey | undefined
    let coldestRate = Number.POSITIVE_INFINITY
    for (let step = 0; step < evictionSample; step++) {
      const near = this.#nextOfHand()
      if (near === undefined) break
      const rate = near.ratePerSecond(now)
      if (near.isCold && rate < coldestRate) {
        coldest = near
        coldestRate = rate
      }
    }
    if (coldest === undefined) return false
    this.#forget(coldest)
    return true
  }

  #forget(near: NearKey): void {
    near.lastMinute = undefined
    this.#shown.delete(near)
    this.#counts.removeNear(near.redisClusterId, near.id)
    const keys = this.#clusters.get(near.redisClusterId)
    if (keys?.delete(near.id)) this.#size--
    if (keys?.size === 0) this.#clusters.delete(near.redisClusterId)
  }

  /** The clock hand: all keys, one after another, forever; a Map may change under its iterator. */
  #nextOfHand(): NearKey | undefined {
    for (let attempt = 0; attempt < 2; attempt++) {
      this.#hand ??= this.all()
      const next = this.#hand.next()
      if (!next.done) return next.value
      this.#hand = undefined
    }
    return undefined
  }
}
