import type { Rule } from '@firebreak/core'
import { FarKeys } from './far-keys.ts'
import { NearLines } from './near-lines.ts'

/** What the engine needs of whoever counts the far keys: this thread, or several others. */
export interface FarSide<Near> {
  /** The key is near from now on, if it was not: all of its entries are wanted. */
  link(redisClusterId: string, id: string, near: Near, now: number): void
  /** It is far again. */
  unlink(redisClusterId: string, id: string): void
  setRules(rules: readonly Rule[], hubCount: number): void
  /** Forgets some idle keys, in a bounded step. */
  sweep(now: number): void
  readonly size: number
  readonly memoryBytes: number
  readonly overflowCount: number
}

export interface FarTierOptions {
  /** Keys of a cluster that are counted at once. */
  readonly maxKeys: number
  readonly hashSeed: number
  /** @default 0 */
  readonly shard?: number
  /** @default 1 */
  readonly shardCount?: number
}

const maxClusters = 1000
const sweepStep = 100_000

/** The far keys of all clusters; with several shards, those of one of them. */
export class FarTier<Near> implements FarSide<Near> {
  readonly #options: Required<FarTierOptions>
  readonly #clusters = new Map<string, FarKeys<Near>>()
  #lines = new NearLines([], 1)
  #refusedCount = 0

  constructor(options: FarTierOptions) {
    const { maxKeys, hashSeed, shard = 0, shardCount = 1 } = options
    this.#options = { maxKeys: Math.ceil(maxKeys / shardCount), hashSeed, shard, shardCount }
  }

  get size(): number {
    return this.#sum(({ size }) => size)
  }

  get memoryBytes(): number {
    return this.#sum(({ memoryBytes }) => memoryBytes)
  }

  get overflowCount(): number {
    return this.#refusedCount + this.#sum(({ overflowCount }) => overflowCount)
  }

  /** A cluster's keys, made where it is new; undefined where there are too many clusters. */
  keysOf(redisClusterId: string, now: number): FarKeys<Near> | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      if (this.#clusters.size >= maxClusters) {
        this.#refusedCount++
        return undefined
      }
      keys = new FarKeys({ redisClusterId, lines: this.#lines, now, ...this.#options })
      this.#clusters.set(redisClusterId, keys)
    }
    return keys
  }

  link(redisClusterId: string, id: string, near: Near, now: number): void {
    this.keysOf(redisClusterId, now)?.link(id, near)
  }

  unlink(redisClusterId: string, id: string): void {
    this.#clusters.get(redisClusterId)?.unlink(id)
  }

  setRules(rules: readonly Rule[], hubCount: number): void {
    this.#lines = new NearLines(rules, hubCount)
    for (const keys of this.#clusters.values()) keys.setLines(this.#lines)
  }

  sweep(now: number): void {
    for (const [redisClusterId, keys] of this.#clusters) {
      keys.sweep(now, sweepStep)
      if (!keys.isEmpty) continue
      this.#refusedCount += keys.overflowCount
      this.#clusters.delete(redisClusterId)
    }
  }

  #sum(of: (keys: FarKeys<Near>) => number): number {
    let sum = 0
    for (const keys of this.#clusters.values()) sum += of(keys)
    return sum
  }
}
