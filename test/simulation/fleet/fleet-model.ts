import type { FaultSchedule, PlayResult, SeedRuns, SimulatedWorld } from '@firebreak/testkit'
import { checkAftermath } from '../oracles/aftermath.ts'
import { checkAgreement } from '../oracles/agreement.ts'
import { Fleet } from './fleet.ts'
import { fleetSchedule, laneSchedule } from './fleet-faults.ts'
import { fleetRules } from './keys.ts'
import { Person } from './person.ts'

/** By then every fault has been undone. */
const calmMs = 14_500

/** One run of the fleet; throws if a promise was broken. */
export async function playFleet(
  world: SimulatedWorld,
  schedule: FaultSchedule,
  guard: 'tracking' | 'lane' = 'tracking',
): Promise<PlayResult> {
  const fleet = new Fleet(world, schedule, guard)
  const person = new Person(fleet)
  person.start(fleetRules)
  await world.run(calmMs)
  fleet.player.undoAll()
  person.stop()
  await checkAgreement(fleet, person)
  fleet.isOver = true
  await checkAftermath(fleet)
  return { calls: fleet.calls.calls, faults: fleet.player.injected }
}

/** The fleet as `runSeeds` plays it. */
export const fleetModel: Omit<SeedRuns, 'seeds'> = { schedule: fleetSchedule, play: playFleet }

/** The same with tracking refused, and the hubs' lane in its place. */
export const laneModel: Omit<SeedRuns, 'seeds'> = {
  schedule: laneSchedule,
  play: (world, schedule) => playFleet(world, schedule, 'lane'),
}
