import type { RuleSet } from '@firebreak/core'
import type { AccessTotals } from '../decide/access-totals.ts'
import { FarTier } from '../heat/far-tier.ts'
import { type NearKey, TieredHeatEngine } from '../heat/tiered-heat-engine.ts'
import { ThreadedFarSide } from '../threads/threaded-far-side.ts'
import { ThreadedIntake, type ThreadedIntakeRooms } from '../threads/threaded-intake.ts'
import { LocalIntake, type ReportIntake } from './report-intake.ts'

export interface WindowsOptions {
  readonly ingestThreads: number
  readonly maxTrackedKeys: number
  readonly totals: AccessTotals
  readonly random: () => number
}

/** The hub's windows, and the way of reports into them once there is somebody to decide. */
export interface Windows {
  readonly engine: TieredHeatEngine
  openIntake(rooms: Omit<ThreadedIntakeRooms, 'far'>, rules: RuleSet): ReportIntake
}

/** In this thread, or with threads that count. */
export function openWindows({
  ingestThreads: count,
  maxTrackedKeys: maxKeys,
  totals,
  random,
}: WindowsOptions): Windows {
  // Against keys that were chosen to collide.
  const hashSeed = Math.floor(random() * 2 ** 31)
  if (count === 0) {
    const far = new FarTier<NearKey>({ maxKeys, hashSeed })
    return { engine: new TieredHeatEngine(far), openIntake: (rooms, rules) => new LocalIntake(rooms, far, rules) }
  }
  const far = new ThreadedFarSide({ count, maxKeys, hashSeed, wantsSlots: () => totals.wantsSlots })
  return {
    engine: new TieredHeatEngine(far),
    openIntake: (rooms, rules) => new ThreadedIntake({ ...rooms, far }, rules),
  }
}
