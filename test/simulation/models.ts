import type { SeedRuns } from '@firebreak/testkit'
import { idsSchedule, playIds, quickSeeds as quickIds } from '../../packages/ids/src/testing/ids-model.ts'
import { playSegments, quickSegmentSeeds, segmentsSchedule } from '../../packages/ids/src/testing/segments-model.ts'
import {
  limitsSchedule,
  playLimits,
  quickSeeds as quickLimits,
} from '../../packages/limits/src/testing/limits-model.ts'
import {
  lockSchedule,
  playLocks,
  quickSeeds as quickLocks,
  replicatedSchedule,
} from '../../packages/locks/src/testing/lock-model.ts'
import { quickSeeds as quickSale, saleModel } from '../../packages/sale/src/testing/sale-model.ts'
import { fleetModel, laneModel } from './fleet/fleet-model.ts'

export type Model = Omit<SeedRuns, 'seeds'>

/** Everything that can be played: the fleet, and the packages with their own models. */
export const models = {
  fleet: fleetModel,
  lane: laneModel,
  ids: { schedule: idsSchedule, play: playIds },
  limits: { schedule: limitsSchedule, play: playLimits },
  segments: { schedule: segmentsSchedule, play: playSegments },
  locks: { schedule: lockSchedule, play: playLocks },
  'locks-replicated': { schedule: replicatedSchedule, play: playLocks },
  sale: saleModel(false),
  'sale-lossy': saleModel(true),
} as const satisfies Record<string, Model>

export type ModelName = keyof typeof models

/** The seeds that `npm test` plays of a package: one of them must find each undone fix. */
export const quickSeeds: Readonly<Partial<Record<ModelName, readonly number[]>>> = {
  ids: quickIds,
  limits: quickLimits,
  segments: quickSegmentSeeds,
  locks: quickLocks,
  sale: quickSale(false),
  'sale-lossy': quickSale(true),
}

export const modelNames: readonly ModelName[] = Object.keys(models) as ModelName[]
