import type { Rule } from '@firebreak/core/rules'
import { CountedKeys } from './counted-keys.ts'
import { NearLines } from './near-lines.ts'

/** The interface to whatever counts the keys: this thread (`CountedClusters`), or several others (`ThreadedCounts`). */
export interface KeyCounts<Near> {
  /** The key is near from now on: all of its entries are needed. */
  addNear(redisClusterId: string, id: string, near: Near, now: number): void
  /** It is no longer near. */
  removeNear(redisClusterId: string, id: string): void
  setRules(rules: readonly Rule[], hubCount: number): void
  /** Forgets some idle keys, in a bounded step. */
  sweep(now: number): void
  readonly size: number
  readonly memoryBytes: number
  readonly overflowCount: number
}

export interface CountedClustersOptions {
  /** Maximum number of counted keys, over all clusters. */
  readonly maxKeys: number
  readonly hashSeed: number
  /** @default 0 */
  readonly shard?: number
  /** @default 1 */
  readonly shardCount?: number
}

const maxClusters = 1000
const sweepStep = 100_000
/** What a cluster may have even if others have filled the room: a thousand of them take a tenth more. */
const leastPart = 10_000
/** Average memory of a counted key, including its name: many long names get no more than this. */
const bytesPerKey = 128
/** Memory of a cluster's tables before its first key. */
const leastBytes = 8 * 1024 * 1024

/** The counted keys of all clusters; with several shards, those of one shard. */
export class CountedClusters<Near> implements KeyCounts<Near> {
  readonly #options: Required<CountedClustersOptions>
  readonly #clusters = new Map<string, CountedKeys<Near>>()
  #lines = new NearLines([], 1)
  #refusedCount = 0
  /** Keys of all clusters, except those that the current one has added since its turn began. */
  #total = 0
  #totalBytes = 0
  #last: { readonly keys: CountedKeys<Near>; readonly size: number; readonly memoryBytes: number } | undefined

  constructor(options: CountedClustersOptions) {
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

  /** A cluster's keys, created if it is new; undefined if there are too many clusters. */
  keysOf(redisClusterId: string, now: number): CountedKeys<Near> | undefined {
    let keys = this.#clusters.get(redisClusterId)
    if (keys === undefined) {
      if (this.#clusters.size >= maxClusters) {
        this.#refusedCount++
        return undefined
      }
      keys = new CountedKeys({ redisClusterId, lines: this.#lines, now, ...this.#options })
      this.#clusters.set(redisClusterId, keys)
    }
    this.#giveRoom(keys)
    return keys
  }

  addNear(redisClusterId: string, id: string, near: Near, now: number): void {
    this.keysOf(redisClusterId, now)?.addNear(id, near)
  }

  removeNear(redisClusterId: string, id: string): void {
    this.#clusters.get(redisClusterId)?.removeNear(id)
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
    this.#last = undefined
    this.#total = this.size
    this.#totalBytes = this.memoryBytes
  }

  /**
   * The current cluster may use what all others leave, so that all together stay within the bounds of keys and bytes,
   * and a few keys in any case. What the previous one has added is counted now: nothing else has grown since.
   */
  #giveRoom(keys: CountedKeys<Near>): void {
    if (this.#last !== undefined) {
      this.#total += this.#last.keys.size - this.#last.size
      this.#totalBytes += this.#last.keys.memoryBytes - this.#last.memoryBytes
    }
    const { size, memoryBytes } = keys
    this.#last = { keys, size, memoryBytes }
    const { maxKeys } = this.#options
    const least = Math.ceil(maxKeys / leastPart)
    const freeBytes = Math.max(0, maxKeys * bytesPerKey - this.#totalBytes)
    keys.setRoom(
      Math.max(least, size + Math.max(0, maxKeys - this.#total)),
      Math.max(leastBytes, memoryBytes + freeBytes),
    )
  }

  #sum(of: (keys: CountedKeys<Near>) => number): number {
    let sum = 0
    for (const keys of this.#clusters.values()) sum += of(keys)
    return sum
  }
}
