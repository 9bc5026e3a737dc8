import type { TrafficPoint } from './hub-api.ts'

/**
 * What "saved" means, everywhere: reads that did not reach Redis at all, because they were answered from memory or refused by
 * a limit. A read of a copy does reach Redis; it is moved to another node.
 */
type Reads = Pick<TrafficPoint, 'redis' | 'local' | 'copies' | 'limited'>

/** Everything that asked to read. */
export function allReads({ redis, local, copies, limited }: Reads): number {
  return redis + local + copies + limited
}

/** Reads that never reached Redis. */
export function savedReads({ local, limited }: Pick<Reads, 'local' | 'limited'>): number {
  return local + limited
}

/** Reads that Redis answered, on whatever node. */
export function readsOfRedis({ redis, copies }: Pick<Reads, 'redis' | 'copies'>): number {
  return redis + copies
}
