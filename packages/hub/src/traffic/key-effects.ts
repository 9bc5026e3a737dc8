import { entryId, type KeyEffect, type KeyEffectView, parseKeyText } from '@firebreak/core'
import type { StrategyEffect } from '../decide/strategy-trials.ts'
import { SlidingWindow } from '../heat/sliding-window.ts'

/** Statuses come about once a second: over five of them the numbers stand still. */
const windowMs = 5000
const maxKeys = 10_000

interface EffectOfKey {
  readonly localHits: SlidingWindow
  readonly redisReads: SlidingWindow
  readonly errors: SlidingWindow
  bytesSaved: number
  millisecondsSaved: number
  lastAt: number
}

/** What strategies bring, key by key, from the shields' statuses. */
export class KeyEffects {
  readonly #keys = new Map<string, EffectOfKey>()

  add(effect: KeyEffect, now: number): void {
    const key = parseKeyText(effect.key)
    if (key === undefined) return
    const id = entryId(effect.redisClusterId, key)
    let known = this.#keys.get(id)
    if (known === undefined) {
      if (this.#keys.size >= maxKeys) return
      known = {
        localHits: new SlidingWindow(windowMs),
        redisReads: new SlidingWindow(windowMs),
        errors: new SlidingWindow(windowMs),
        bytesSaved: 0,
        millisecondsSaved: 0,
        lastAt: now,
      }
      this.#keys.set(id, known)
    }
    known.localHits.add(now, effect.localHits)
    known.redisReads.add(now, effect.redisReads)
    known.errors.add(now, effect.errors)
    known.bytesSaved += effect.bytesSaved
    known.millisecondsSaved += effect.localHits * (effect.readMs ?? 0)
    known.lastAt = now
  }

  /** What the strategy did in the last seconds, for its trial. */
  effect(redisClusterId: string, key: string, now: number): StrategyEffect | undefined {
    const known = this.#keys.get(entryId(redisClusterId, key))
    if (known === undefined) return undefined
    const local = known.localHits.sum(now)
    const reads = local + known.redisReads.sum(now)
    return { reads, helpedShare: reads === 0 ? 0 : local / reads, errors: known.errors.sum(now) }
  }

  view(redisClusterId: string, key: string, ratePerSecondBefore: number, now: number): KeyEffectView | null {
    const known = this.#keys.get(entryId(redisClusterId, key))
    if (known === undefined) return null
    const local = known.localHits.sum(now)
    const redis = known.redisReads.sum(now)
    return {
      redisPerSecondBefore: Math.round(ratePerSecondBefore),
      redisPerSecondNow: Number(((redis * 1000) / windowMs).toFixed(1)),
      localHitRate: local + redis === 0 ? 0 : local / (local + redis),
      bytesSaved: known.bytesSaved,
      millisecondsSaved: Math.round(known.millisecondsSaved),
    }
  }

  forget(now: number): void {
    for (const [id, { lastAt }] of this.#keys) if (now - lastAt > 60_000) this.#keys.delete(id)
  }
}
