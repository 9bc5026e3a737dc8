import type { DrillNotes } from './drill-messages.ts'

/** Median, 99th percentile and maximum of some values. */
export interface Spread {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) => round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN)
  return { p50: at(0.5), p99: at(0.99), max: round(sorted.at(-1) ?? Number.NaN) }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

/** The moment when the reads of all clients together first reached `threshold` within `windowMs`; undefined: never. */
export function crossingAt(notes: readonly DrillNotes[], threshold: number, windowMs: number): number | undefined {
  const all = notes.flatMap(({ readsAt }) => readsAt).sort((a, b) => a - b)
  for (let index = threshold - 1; index < all.length; index++) {
    if (all[index]! - all[index - threshold + 1]! <= windowMs) return all[index]
  }
  return undefined
}

/** The most that a single client read within the window. */
export function highestAlone(notes: readonly DrillNotes[], windowMs: number): number {
  let highest = 0
  for (const { readsAt } of notes) {
    let from = 0
    for (let to = 0; to < readsAt.length; to++) {
      while (readsAt[to]! - readsAt[from]! > windowMs) from++
      highest = Math.max(highest, to - from + 1)
    }
  }
  return highest
}

/** A write by a plain client, and when it was acknowledged. */
export interface AcknowledgedWrite {
  readonly version: number
  readonly acknowledgedAt: number
}

/** How soon each client saw each write, and how many reads were stale beyond the lease. */
export function judgeWrites(
  notes: readonly DrillNotes[],
  writes: readonly AcknowledgedWrite[],
  leaseMs: number,
): { seenMs: number[]; staleReads: number } {
  const seenMs: number[] = []
  let staleReads = 0
  for (const { versions } of notes) {
    const byVersion = new Map(versions.map((seen) => [seen.version, seen]))
    for (const [index, { version, acknowledgedAt }] of writes.entries()) {
      // A version that was overwritten before any read counts as seen when a newer one was.
      const newer = writes.slice(index).map((write) => byVersion.get(write.version))
      const seen = newer.find((candidate) => candidate !== undefined)
      if (seen !== undefined) seenMs.push(Math.max(0, seen.firstSeenAt - acknowledgedAt))
      const before = byVersion.get(version - 1)
      if (before !== undefined && before.lastBegunAt > acknowledgedAt + leaseMs) staleReads++
    }
  }
  return { seenMs, staleReads }
}
