/**
 * Decides which entry of a full cache to evict. A policy knows entries by their slot, a small integer below the cache's
 * capacity, so that all of its state is in typed arrays and a hit allocates nothing.
 */
export interface EvictionPolicy {
  /** A slot was filled with a key that was not in the cache. */
  insert(slot: number, key: string): void
  /** The slot was read. */
  touch(slot: number): void
  /** The slot was emptied from outside (deleted, expired), which says nothing about the key's value. */
  remove(slot: number): void
  /** Chooses the slot to evict and forgets it; called only while at least one slot is filled. */
  evict(): number
  clear(): void
}
