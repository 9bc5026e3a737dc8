import { InvalidOptionError } from '../errors/firebreak-error.ts'
import type { ExpireStrategy } from '../strategy/strategy.ts'
import type { EvictionPolicy } from './eviction-policy.ts'
import { LfuPolicy } from './lfu.ts'
import { LruPolicy } from './lru.ts'
import { S3FifoPolicy } from './s3-fifo.ts'
import { SievePolicy } from './sieve.ts'
import { SlotIndex } from './slot-index.ts'
import { none } from './slot-lists.ts'

/** How large a cache may grow, and what it evicts when it is full. */
export interface BoundedCacheOptions<Value> {
  /** Maximum number of entries. */
  readonly maxEntries: number
  /** Maximum bytes, as passed to `set`. */
  readonly maxBytes: number
  /** @default 'S3-FIFO' */
  readonly policy?: ExpireStrategy
  /** Called for each entry evicted to make room, not for deleted ones. */
  readonly onEvict?: (key: string, value: Value) => void
}

const largest = 1 << 24

/** A map bounded in entries and bytes; a policy chooses what to evict. */
export class BoundedCache<Value> {
  readonly maxEntries: number
  readonly maxBytes: number
  readonly #index: SlotIndex
  readonly #values: (Value | undefined)[] = []
  readonly #sizes: Float64Array
  readonly #free: number[] = []
  readonly #policy: EvictionPolicy
  readonly #onEvict: ((key: string, value: Value) => void) | undefined
  #bytes = 0

  constructor(options: BoundedCacheOptions<Value>) {
    const { maxEntries, maxBytes, policy = 'S3-FIFO' } = options
    if (!Number.isInteger(maxEntries) || maxEntries < 1 || maxEntries > largest)
      throw new InvalidOptionError('maxEntries', maxEntries, `a whole number from 1 to ${largest}`)
    if (!(maxBytes > 0)) throw new InvalidOptionError('maxBytes', maxBytes, 'a number above 0')
    this.maxEntries = maxEntries
    this.maxBytes = maxBytes
    this.#index = new SlotIndex(maxEntries)
    this.#sizes = new Float64Array(maxEntries)
    this.#policy = makePolicy(policy, maxEntries)
    this.#onEvict = options.onEvict
  }

  get size(): number {
    return this.#index.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Returns the value and records the read with the policy. */
  get(key: string): Value | undefined {
    const slot = this.#index.find(key)
    if (slot === none) return undefined
    this.#policy.touch(slot)
    return this.#values[slot]
  }

  has(key: string): boolean {
    return this.#index.find(key) !== none
  }

  /** The slot of a key, for callers that read often and keep it: see `touch`. Valid until the entry is evicted. */
  slotOf(key: string): number | undefined {
    const slot = this.#index.find(key)
    return slot === none ? undefined : slot
  }

  /** Records a read of a slot whose value the caller holds itself. */
  touch(slot: number): void {
    this.#policy.touch(slot)
  }

  /** Stores a value. Returns false if it alone is larger than the whole cache; then the key is not in the cache. */
  set(key: string, value: Value, bytes: number): boolean {
    if (bytes > this.maxBytes) {
      this.delete(key)
      return false
    }
    const known = this.#index.find(key)
    if (known !== none) {
      this.#bytes += bytes - this.#sizes[known]!
      this.#sizes[known] = bytes
      this.#values[known] = value
      this.#policy.touch(known)
      while (this.#bytes > this.maxBytes) this.#release(this.#letGo())
      return this.#index.find(key) !== none
    }
    // A full cache usually evicts one entry for each new one, whose slot is reused as it is.
    let slot = none
    while (this.#index.size >= this.maxEntries || this.#bytes + bytes > this.maxBytes) {
      if (slot !== none) this.#release(slot)
      slot = this.#letGo()
    }
    if (slot === none) slot = this.#free.pop() ?? this.#values.length
    this.#index.add(key, slot)
    this.#values[slot] = value
    this.#sizes[slot] = bytes
    this.#bytes += bytes
    this.#policy.insert(slot, key)
    return true
  }

  delete(key: string): boolean {
    const slot = this.#index.find(key)
    if (slot === none) return false
    this.#policy.remove(slot)
    this.#forget(slot)
    this.#release(slot)
    return true
  }

  clear(): void {
    this.#index.clear()
    this.#values.length = 0
    this.#free.length = 0
    this.#bytes = 0
    this.#policy.clear()
  }

  keys(): IterableIterator<string> {
    return this.#index.keys()
  }

  /** Makes room: evicts one entry and returns its slot, to be used or released. */
  #letGo(): number {
    const slot = this.#policy.evict()
    const key = this.#index.keyOf(slot)
    this.#forget(slot)
    this.#onEvict?.(key, this.#values[slot] as Value)
    return slot
  }

  #forget(slot: number): void {
    this.#index.remove(slot)
    this.#bytes -= this.#sizes[slot]!
  }

  #release(slot: number): void {
    this.#values[slot] = undefined
    this.#free.push(slot)
  }
}

function makePolicy(name: ExpireStrategy, capacity: number): EvictionPolicy {
  switch (name) {
    case 'LRU':
      return new LruPolicy(capacity)
    case 'LFU':
      return new LfuPolicy(capacity)
    case 'SIEVE':
      return new SievePolicy(capacity)
    case 'S3-FIFO':
      return new S3FifoPolicy(capacity)
    default:
      throw new InvalidOptionError('policy', name, 'LRU, LFU, SIEVE or S3-FIFO')
  }
}
