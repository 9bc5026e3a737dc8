import type { RuleSet } from '@firebreak/core/rules'
import type { AccessTotals } from '../decide/access-totals.ts'
import { CountedClusters } from '../heat/counted-clusters.ts'
import type { NearKey } from '../heat/near-key.ts'
import { NearKeys } from '../heat/near-keys.ts'
import { ThreadedCounts } from '../threads/threaded-counts.ts'
import { ThreadedIntake, type ThreadedIntakeRooms } from '../threads/threaded-intake.ts'
import { LocalIntake, type ReportIntake } from './report-intake.ts'

export interface WindowsOptions {
  readonly ingestThreads: number
  readonly maxTrackedKeys: number
  readonly totals: AccessTotals
  /** The seed of the keys' hashes, so that nobody can choose keys that collide. */
  readonly hashSeed: number
}

/** The hub's windows, and the path of reports into them once a decider exists. */
export interface Windows {
  readonly engine: NearKeys
  openIntake(rooms: Omit<ThreadedIntakeRooms, 'counts'>, rules: RuleSet): ReportIntake
}

/** Counted in this thread, or by ingest threads. */
export function openWindows({
  ingestThreads: count,
  maxTrackedKeys: maxKeys,
  totals,
  hashSeed,
}: WindowsOptions): Windows {
  if (count === 0) {
    const counts = new CountedClusters<NearKey>({ maxKeys, hashSeed })
    return { engine: new NearKeys(counts), openIntake: (rooms, rules) => new LocalIntake(rooms, counts, rules) }
  }
  const counts = new ThreadedCounts({ count, maxKeys, hashSeed, wantsSlots: () => totals.wantsSlots })
  return {
    engine: new NearKeys(counts),
    openIntake: (rooms, rules) => new ThreadedIntake({ ...rooms, counts }, rules),
  }
}
