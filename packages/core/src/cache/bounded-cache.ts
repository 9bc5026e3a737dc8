import { InvalidOptionError } from '../errors/firebreak-error.ts'
import type { ExpireStrategy } from '../strategy/strategy.ts'
import type { EvictionPolicy } from './eviction-policy.ts'
import { LfuPolicy } from './lfu.ts'
import { LruPolicy } from './lru.ts'
import { S3FifoPolicy } from './s3-fifo.ts'
import { SievePolicy } from './sieve.ts'
import { SlotIndex } from './slot-index.ts'
import { none } from './slot-lists.ts'

/** How large a cache may grow, and what it lets go then. */
export interface BoundedCacheOptions<Value> {
  /** Entries at most. */
  readonly maxEntries: number
  /** Bytes at most, as counted by `set`. */
  readonly maxBytes: number
  /** @default 'S3-FIFO' */
  readonly policy?: ExpireStrategy
  /** Called for every entry that was let go to make room; not for deleted ones. */
  readonly onEvict?: (key: string, value: Value) => void
}

const largest = 1 << 24

/** A map that is bounded in entries and bytes; a policy chooses what goes. */
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

  /** The value, and a note for the policy that it was read. */
  get(key: string): Value | undefined {
    const slot = this.#index.find(key)
    if (slot === none) return undefined
    this.#policy.touch(slot)
    return this.#values[slot]
  }

  has(key: string): boolean {
    return this.#index.find(key) !== none
  }

  /** The slot of a key, for callers who read often and keep it: see `touch`. It is valid until the entry goes. */
  slotOf(key: string): number | undefined {
    const slot = this.#index.find(key)
    return slot === none ? undefined : slot
  }

  /** Notes a read of a slot whose value the caller keeps itself. */
  touch(slot: number): void {
    this.#policy.touch(slot)
  }

  /** Takes a value in; false where it alone is larger than the whole cache, and then nothing of the key is kept. */
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
    // A full cache mostly lets one entry go for each that comes: its slot is taken over as it is.
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

  /** Makes room: one entry goes, and its slot is to be used or released. */
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
