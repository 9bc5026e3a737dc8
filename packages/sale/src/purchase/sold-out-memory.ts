import { type Clock, InvalidOptionError } from '@firebreak/core'
import type { Redis, RedisSubscriber } from '@firebreak/redis'
import { saleKeys } from '../sale-keys.ts'
import { BuyersFilter } from './buyers-filter.ts'

/** How a process remembers that a voucher is sold out. */
export interface SoldOutMemoryOptions {
  /** Redis is asked again after this long, whatever was heard. @default 5000 */
  readonly maxAgeMs?: number
  /** Vouchers remembered at once; the one whose memory lapsed longest ago makes room for another. @default 10000 */
  readonly maxVouchers?: number
  /**
   * A voucher with more live orders is not remembered, because its buyers must be distinguished from others. @default
   * 1000000
   */
  readonly maxBuyers?: number
}

interface Memory {
  /** Sold out as of this number of restocks; undefined: not known to be sold out. */
  soldOutAt: number | undefined
  soldOutUntil: number
  /** The highest number of restocks heard of. */
  restocks: number
  isListening: boolean
  /** Who holds an order, as of `buyersAt`; undefined: not read yet. */
  buyers: BuyersFilter | undefined
  /** Restocks and live orders for which `buyers` was (or is being) read. */
  buyersAt: string
}

const buyersPerScan = 1000

/**
 * After the last item the flood continues, and every request would ask Redis only to get "sold out". A process that got
 * that answer once remembers it, and a refund clears the memory everywhere by a message on the voucher's channel.
 *
 * The order of that message and of a "sold out" reply on another connection is open: a reply that was computed before a
 * refund may arrive after its message. So both carry the number of restocks so far, and a reply that is older than what
 * was heard is not remembered. Nothing is remembered before the subscription is confirmed, and all is forgotten when it
 * was lost.
 *
 * A buyer who asks again must learn that they have bought. While nothing returns to the stock the set of buyers only
 * shrinks, so it is read once into a filter; for a user who may be in it, Redis is asked.
 */
export class SoldOutMemory {
  readonly #redis: Redis
  readonly #clock: Clock
  readonly #maxAgeMs: number
  readonly #maxVouchers: number
  readonly #maxBuyers: number
  /** In order of when they were last heard of, oldest first. */
  readonly #memories = new Map<string, Memory>()
  #subscriber: Promise<RedisSubscriber> | undefined
  #isClosed = false

  constructor(redis: Redis, clock: Clock, options: SoldOutMemoryOptions = {}) {
    this.#redis = redis
    this.#clock = clock
    this.#maxAgeMs = options.maxAgeMs ?? 5000
    this.#maxVouchers = options.maxVouchers ?? 10_000
    this.#maxBuyers = options.maxBuyers ?? 1_000_000
    const bounds = { maxAgeMs: this.#maxAgeMs, maxVouchers: this.#maxVouchers, maxBuyers: this.#maxBuyers }
    for (const [name, value] of Object.entries(bounds))
      if (typeof value !== 'number' || !(value >= 0))
        throw new InvalidOptionError(`soldOutMemory.${name}`, value, 'a number, 0 or more')
  }

  /** True while the voucher is known to be sold out and the user to hold no order of it; no call to Redis. */
  isSoldOut(voucherId: string, userId: string): boolean {
    const memory = this.#memories.get(voucherId)
    if (memory === undefined || memory.soldOutAt === undefined || !memory.isListening) return false
    if (memory.buyers === undefined || memory.buyers.mayHold(userId)) return false
    return this.#clock.now() < memory.soldOutUntil
  }

  /** Records that Redis said "sold out" after this many restocks, with this many live orders. */
  remember(voucherId: string, restocks: number, sold: number): void {
    const memory = sold > this.#maxBuyers ? undefined : this.#memory(voucherId)
    if (memory === undefined || restocks < memory.restocks) return
    memory.restocks = restocks
    memory.soldOutAt = restocks
    memory.soldOutUntil = this.#clock.now() + this.#maxAgeMs
    const buyersAt = `${restocks}:${sold}`
    if (memory.buyersAt === buyersAt) return
    memory.buyersAt = buyersAt
    memory.buyers = undefined
    this.#readBuyers(voucherId, memory, buyersAt, sold).catch(() => {
      memory.buyersAt = ''
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#memories.clear()
    const subscriber = await this.#subscriber?.catch(() => undefined)
    await subscriber?.close()
  }

  async #readBuyers(voucherId: string, memory: Memory, buyersAt: string, sold: number): Promise<void> {
    const filter = new BuyersFilter(sold)
    let cursor = '0'
    do {
      const scan = ['SSCAN', saleKeys(voucherId).users, cursor, 'COUNT', buyersPerScan] as const
      const [next, users] = (await this.#redis.send(scan)) as [string, string[]]
      for (const userId of users) filter.add(userId)
      cursor = String(next)
    } while (cursor !== '0' && memory.buyersAt === buyersAt)
    if (memory.buyersAt === buyersAt) memory.buyers = filter
  }

  #memory(voucherId: string): Memory | undefined {
    const known = this.#memories.get(voucherId)
    if (known !== undefined) {
      this.#memories.delete(voucherId)
      this.#memories.set(voucherId, known)
      return known
    }
    // A full memory only costs calls to Redis: that is better than a growing process.
    if (this.#isClosed || (this.#memories.size >= this.#maxVouchers && !this.#dropLapsed())) return undefined
    const memory: Memory = {
      soldOutAt: undefined,
      soldOutUntil: 0,
      restocks: 0,
      isListening: false,
      buyers: undefined,
      buyersAt: '',
    }
    this.#memories.set(voucherId, memory)
    this.#listen(voucherId, memory).catch(() => this.#memories.delete(voucherId))
    return memory
  }

  /** Makes room by dropping an entry that no longer saves calls; false if there is none. */
  #dropLapsed(): boolean {
    const [oldest] = this.#memories
    if (oldest === undefined) return false
    const [voucherId, memory] = oldest
    // One that is not listening yet would be subscribed after it was dropped.
    if (!memory.isListening || this.#clock.now() < memory.soldOutUntil) return false
    this.#memories.delete(voucherId)
    memory.buyersAt = ''
    // If the connection is lost, an extra message is heard by nobody.
    this.#subscriber?.then((subscriber) => subscriber.unsubscribe(saleKeys(voucherId).channel)).catch(() => {})
    return true
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
