import { type Clock, steadyClock } from '@firebreak/core'
import type { Redis, RedisSubscriber } from '@firebreak/redis'
import { saleKeys } from '../sale-keys.ts'

/** How a process remembers that a voucher is sold out. */
export interface SoldOutMemoryOptions {
  /** A memory is asked again after this long, whatever was heard. @default 5000 */
  readonly maxAgeMs?: number
  /** Vouchers remembered at once. @default 10000 */
  readonly maxVouchers?: number
  readonly clock?: Clock
}

interface Memory {
  /** Sold out as of this number of restocks; undefined: not known to be. */
  soldOutAt: number | undefined
  soldOutUntil: number
  /** The highest number of restocks heard of. */
  restocks: number
  isListening: boolean
}

/**
 * After the last item the flood goes on, and every request would ask Redis only to hear "sold out". A process that heard
 * it once remembers it, and a refund clears the memory everywhere by a message on the voucher's channel.
 *
 * The order of that message and of a "sold out" reply on another connection is open: a reply that was computed before
 * a refund may arrive after its message. So both carry the number of restocks so far, and a reply that is older than
 * what was heard is not remembered. Nothing is remembered before the subscription is confirmed, and all is forgotten
 * when it was lost.
 */
export class SoldOutMemory {
  readonly #redis: Redis
  readonly #clock: Clock
  readonly #maxAgeMs: number
  readonly #maxVouchers: number
  readonly #memories = new Map<string, Memory>()
  #subscriber: Promise<RedisSubscriber> | undefined
  #isClosed = false

  constructor(redis: Redis, options: SoldOutMemoryOptions = {}) {
    this.#redis = redis
    this.#clock = options.clock ?? steadyClock
    this.#maxAgeMs = options.maxAgeMs ?? 5000
    this.#maxVouchers = options.maxVouchers ?? 10_000
  }

  /** True while the voucher is known to be sold out; no call to Redis. */
  isSoldOut(voucherId: string): boolean {
    const memory = this.#memories.get(voucherId)
    if (memory === undefined || memory.soldOutAt === undefined || !memory.isListening) return false
    return this.#clock.now() < memory.soldOutUntil
  }

  /** Notes that Redis said "sold out" after so many restocks. */
  remember(voucherId: string, restocks: number): void {
    const memory = this.#memory(voucherId)
    if (memory === undefined || restocks < memory.restocks) return
    memory.restocks = restocks
    memory.soldOutAt = restocks
    memory.soldOutUntil = this.#clock.now() + this.#maxAgeMs
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#memories.clear()
    const subscriber = await this.#subscriber?.catch(() => undefined)
    await subscriber?.close()
  }

  #memory(voucherId: string): Memory | undefined {
    const known = this.#memories.get(voucherId)
    if (known !== undefined) return known
    // A full memory only costs calls to Redis: that is better than a growing process.
    if (this.#isClosed || this.#memories.size >= this.#maxVouchers) return undefined
    const memory: Memory = { soldOutAt: undefined, soldOutUntil: 0, restocks: 0, isListening: false }
    this.#memories.set(voucherId, memory)
    this.#listen(voucherId, memory).catch(() => this.#memories.delete(voucherId))
    return memory
  }

  async #listen(voucherId: string, memory: Memory): Promise<void> {
    this.#subscriber ??= this.#subscribe()
    const subscriber = await this.#subscriber
    await subscriber.subscribe(saleKeys(voucherId).channel, (message) => {
      if (!message.startsWith('restock:')) return
      memory.restocks = Math.max(memory.restocks, Number(message.slice('restock:'.length)))
      memory.soldOutAt = undefined
    })
    // What was remembered before the confirmation may have missed a refund.
    memory.soldOutAt = undefined
    memory.isListening = true
  }

  async #subscribe(): Promise<RedisSubscriber> {
    try {
      const subscriber = await this.#redis.subscriber()
      subscriber.onReconnect(() => {
        for (const memory of this.#memories.values()) memory.soldOutAt = undefined
      })
      return subscriber
    } catch (error) {
      this.#subscriber = undefined
      throw error
    }
  }
}
