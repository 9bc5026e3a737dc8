import type { SeedRuns } from '@firebreak/testkit'
import { lockSchedule, playLocks } from '../../packages/locks/src/testing/lock-model.ts'
import { saleModel } from '../../packages/sale/src/testing/sale-model.ts'
import { fleetModel } from './fleet/fleet-model.ts'

export type Model = Omit<SeedRuns, 'seeds'>

/** All that can be played: the fleet, and the rooms that stand by themselves. */
export const models = {
  fleet: fleetModel,
  locks: { schedule: lockSchedule, play: playLocks },
  sale: saleModel(false),
  'sale-lossy': saleModel(true),
} as const satisfies Record<string, Model>

export type ModelName = keyof typeof models

export const modelNames: readonly ModelName[] = Object.keys(models) as ModelName[]
