import { entryId, type KeyEffect, type KeyEffectView, parseKeyText, savedReads } from '@firebreak/core'
import type { StrategyEffect } from '../decide/strategy-trials.ts'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** Statuses arrive about once a second: over five of them the numbers are steady. */
const windowMs = 5000
/** A key takes one place per this many characters of its name. */
const maxPlaces = 10_000
const charactersPerPlace = 256
const maxTellers = 100
/** What a process that is new to a key may report about it in any case. */
const leastWeight = 10

interface EffectOfKey {
  readonly localHits: SlidingWindow
  readonly redisReads: SlidingWindow
  readonly errors: SlidingWindow
  /** Increments merged into another command; created on the first one. */
  combined: SlidingWindow | undefined
  bytesSaved: number
  millisecondsSaved: number
  /** Reads that never reached Redis since last taken. */
  saved: number
  lastAt: number
  /** Each process' last report, and its time. */
  readonly tellers: Map<string, { weight: number; at: number }>
  /** What the sensors of other hubs report, and until when it counts. */
  others: (StrategyEffect & { readonly until: number }) | undefined
}

const none: StrategyEffect = { reads: 0, helped: 0, errors: 0 }

/** The strategies' effect, key by key, from the shields' statuses. */
export class KeyEffects {
  readonly #keys = new Map<string, EffectOfKey>()
  #takenPlaces = 0

  /**
   * One process counts no more than the others on average: none can make a strategy look useless by itself. What it reports
   * while it cannot follow changes of its Redis, and answers nothing, says nothing about the strategy.
   */
  add(effect: KeyEffect, now: number, instanceId: string, isWatching = true): void {
    const key = parseKeyText(effect.key)
    if (key === undefined) return
    const known = this.#find(effect.redisClusterId, key, now)
    if (known === undefined) return
    const part = partOf(known, effect.localHits + effect.redisReads + effect.errors, now, instanceId)
    if (isWatching || effect.localHits > 0) {
      known.localHits.add(now, effect.localHits * part)
      known.redisReads.add(now, effect.redisReads * part)
      known.errors.add(now, effect.errors * part)
    }
    if (effect.combined !== undefined) (known.combined ??= new SlidingWindow(windowMs)).add(now, effect.combined)
    known.saved += savedReads({ local: effect.localHits, limited: effect.limited ?? 0 }) * part
    known.bytesSaved += effect.bytesSaved
    known.millisecondsSaved += effect.localHits * (effect.readMs ?? 0)
    known.lastAt = now
  }

  /** What the sensors of other hubs report about a key; it counts until the next exchange, or for a while. */
  setOthers(redisClusterId: string, key: string, effect: StrategyEffect, now: number, until: number): void {
    if (effect.reads === 0 && effect.errors === 0 && !this.#keys.has(entryId(redisClusterId, key))) return
    const known = this.#find(redisClusterId, key, now)
    if (known !== undefined) known.others = { ...effect, until }
  }

  /** What the strategy did in the last seconds according to this hub's sensors. */
  own(redisClusterId: string, key: string, now: number): StrategyEffect | undefined {
    const known = this.#keys.get(entryId(redisClusterId, key))
    return known && ownOf(known, now)
  }

  /** Reads per second that the key's strategy keeps from Redis, over all hubs. */
  savedPerSecond(redisClusterId: string, key: string, now: number): number {
    return ((this.effect(redisClusterId, key, now)?.helped ?? 0) * 1000) / windowMs
  }

  /** The same over all hubs, for its trial. */
  effect(redisClusterId: string, key: string, now: number): StrategyEffect | undefined {
    const known = this.#keys.get(entryId(redisClusterId, key))
    return known && wholeOf(known, now)
  }

  view(redisClusterId: string, key: string, ratePerSecondBefore: number, now: number): KeyEffectView | null {
    const known = this.#keys.get(entryId(redisClusterId, key))
    if (known === undefined) return null
    const { reads, helped } = wholeOf(known, now)
    return {
      redisPerSecondBefore: Math.round(ratePerSecondBefore),
      redisPerSecondNow: Number((((reads - helped) * 1000) / windowMs).toFixed(1)),
      localHitRate: reads === 0 ? 0 : helped / reads,
      bytesSaved: known.bytesSaved,
      millisecondsSaved: Math.round(known.millisecondsSaved),
      ...(known.combined !== undefined && { combinedPerSecond: (known.combined.sum(now) * 1000) / windowMs }),
    }
  }

  /** Reads, in whole numbers, that a strategy kept from Redis since the last call. */
  takeSaved(redisClusterId: string, key: string): number {
    const known = this.#keys.get(entryId(redisClusterId, key))
    if (known === undefined) return 0
    const whole = Math.floor(known.saved)
    known.saved -= whole
    return whole
  }

  forget(now: number): void {
    for (const [id, { lastAt }] of this.#keys) {
      if (now - lastAt <= 60_000) continue
      this.#keys.delete(id)
      this.#takenPlaces -= placesOf(id)
    }
  }

  #find(redisClusterId: string, key: string, now: number): EffectOfKey | undefined {
    const id = entryId(redisClusterId, key)
    const known = this.#keys.get(id)
    if (known !== undefined || this.#takenPlaces + placesOf(id) > maxPlaces) return known
    const fresh = {
      localHits: new SlidingWindow(windowMs),
      redisReads: new SlidingWindow(windowMs),
      errors: new SlidingWindow(windowMs),
      combined: undefined,
      bytesSaved: 0,
      millisecondsSaved: 0,
      saved: 0,
      lastAt: now,
      tellers: new Map(),
      others: undefined,
    }
    this.#keys.set(id, fresh)
    this.#takenPlaces += placesOf(id)
    return fresh
  }
}

function placesOf(id: string): number {
  return Math.max(1, Math.ceil(id.length / charactersPerPlace))
}

/** The fraction of a process' report that counts; all of it if no other reports the key. */
function partOf({ tellers }: EffectOfKey, weight: number, now: number, instanceId: string): number {
  let [sum, count] = [0, 0]
  for (const [id, teller] of tellers) {
    if (now - teller.at > windowMs) tellers.delete(id)
    else if (id !== instanceId) {
      sum += teller.weight
      count++
    }
  }
  if (tellers.has(instanceId) || tellers.size < maxTellers) tellers.set(instanceId, { weight, at: now })
  return count === 0 || weight === 0 ? 1 : Math.min(1, Math.max(sum / count, leastWeight) / weight)
}

function ownOf({ localHits, redisReads, errors }: EffectOfKey, now: number): StrategyEffect {
  const helped = localHits.sum(now)
  return { reads: helped + redisReads.sum(now), helped, errors: errors.sum(now) }
}

function wholeOf(known: EffectOfKey, now: number): StrategyEffect {
  const own = ownOf(known, now)
  const others = known.others !== undefined && now <= known.others.until ? known.others : none
  return { reads: own.reads + others.reads, helped: own.helped + others.helped, errors: own.errors + others.errors }
}
