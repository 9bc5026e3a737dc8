import { ThreadCounts } from './thread-counts.ts'

/** A thread's place in its proxy. */
export interface ThreadPlace {
  readonly index: number
  /** How many there are. */
  readonly count: number
  /** The memory of `ThreadCounts`, the same for all. */
  readonly memory: SharedArrayBuffer
}

/** The place of a proxy's only thread. */
export function alone(): ThreadPlace {
  return { index: 0, count: 1, memory: ThreadCounts.memoryFor(1) }
}
