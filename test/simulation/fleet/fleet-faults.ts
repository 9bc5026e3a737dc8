import { type Chance, type FaultChoice, type FaultSchedule, randomSchedule } from '@firebreak/testkit'

export const appNames = ['app-1', 'app-2', 'app-3'] as const
export const hubNames = ['hub-1', 'hub-2'] as const
const processes = [...appNames, 'caller', 'proxy', ...hubNames]
const toRedis = [...appNames, 'proxy'].map((name) => `${name}>redis-1:6379`)
const toWatched = appNames.map((name) => `${name}>redis-1:7379`)
const toHubs = [...appNames, 'proxy'].flatMap((name) => hubNames.map((hub) => `${name}>${hub}:7070`))
const toStore = hubNames.map((hub) => `${hub}>redis-2:6379`)
const toSources = hubNames.map((hub) => `${hub}>redis-1:6379`)
const links = [...toRedis, ...toWatched, ...toHubs, ...toStore, 'caller>proxy:6380']

/** Everything that can happen to the fleet. */
export const fleetFaults: readonly FaultChoice[] = [
  { kind: 'cut', targets: [...links, ...processes, 'redis-1', 'redis-2'], weight: 3 },
  { kind: 'halfOpen', targets: [...links, ...processes], weight: 2 },
  { kind: 'blackHole', targets: [...links, ...processes, 'redis-1', 'redis-2'], forMs: [50, 4000], weight: 3 },
  // The case that leases exist for: the shield's own connection is in trouble and the application's is not.
  { kind: 'blackHole', targets: toWatched, forMs: [200, 2500], weight: 2 },
  { kind: 'slow', targets: toWatched, forMs: [500, 4000], amount: [20, 400], weight: 2 },
  { kind: 'withoutHubs', targets: appNames.map((name) => `${name}>hubs`), forMs: [2000, 7000] },
  // Long enough for a process to withdraw its own claim.
  { kind: 'withoutHubs', targets: appNames.map((name) => `${name}>hubs`), forMs: [7000, 9500] },
  // Long enough for sensors to have to move.
  { kind: 'blackHole', targets: toStore, forMs: [6500, 9000], weight: 1.5 },
  { kind: 'deafTo', targets: [...processes, 'redis-1', 'redis-2'], forMs: [50, 3000] },
  { kind: 'deafFrom', targets: [...processes, 'redis-1', 'redis-2'], forMs: [50, 3000] },
  { kind: 'slow', targets: links, forMs: [100, 4000], amount: [2, 400], weight: 2 },
  { kind: 'slowReader', targets: [...processes], forMs: [200, 3000], amount: [2000, 50_000] },
  { kind: 'refuse', targets: [...links, 'redis-1', 'redis-2'], forMs: [100, 3000] },
  { kind: 'freeze', targets: [...processes, 'redis-1', 'redis-2'], forMs: [20, 3000], weight: 2 },
  { kind: 'kill', targets: [...processes, 'redis-1', 'redis-2'], forMs: [20, 2500], weight: 2 },
  // Long enough for the other hub to forget it.
  { kind: 'kill', targets: hubNames, forMs: [5500, 8000], weight: 0.7 },
  { kind: 'loseWrites', targets: ['redis-1', 'redis-2'], amount: [20, 2000], weight: 1.5 },
  { kind: 'killEmpty', targets: ['redis-1', 'redis-2'], forMs: [20, 1500], weight: 0.5 },
  { kind: 'clockStep', targets: [...processes, 'redis-1', 'redis-2'], amount: [-30_000, 30_000] },
  { kind: 'refuseTracking', targets: ['redis-1'], forMs: [500, 5000], weight: 1.5 },
]

/** Faults happen within this time; the fleet gets its rules before. */
export const faultsFromMs = 1000
export const faultsToMs = 12_500

/** How often to combine faults that hardly ever coincide by chance. */
const togetherProbability = 0.5

/**
 * Tracking is refused, and what shields have left instead dies without a sign; or every load is on its way for longer than some
 * rules let a value be old.
 */
function together(chance: Chance): FaultSchedule {
  const atMs = Math.round(chance.between(faultsFromMs, faultsToMs - 1500))
  const forMs = Math.round(chance.between(2500, 5000))
  const amount = Math.round(chance.between(180, 280))
  const afterMs = Math.round(chance.between(600, 1500))
  if (chance.happens(0.5)) return toWatched.map((target) => ({ atMs, kind: 'slow', target, forMs, amount }))
  const deaths = toWatched.map((target) => ({ atMs: atMs + afterMs, kind: 'halfOpen', target }))
  return [{ atMs, kind: 'refuseTracking', target: 'redis-1', forMs }, ...deaths]
}

/** If tracking is refused from the start, hubs have their own connections to the protected Redis. */
const laneFaults: readonly FaultChoice[] = [
  ...fleetFaults.filter(({ kind }) => kind !== 'refuseTracking'),
  { kind: 'cut', targets: [...toHubs, ...toSources], weight: 4 },
  { kind: 'halfOpen', targets: toSources, weight: 2 },
  { kind: 'blackHole', targets: [...toHubs, ...toSources], forMs: [100, 2500], weight: 3 },
  // Longer than a lease of the lane, which the hub's heartbeats alone must not renew.
  { kind: 'blackHole', targets: toSources, forMs: [3500, 7000], weight: 3 },
]

export function laneSchedule(chance: Chance): FaultSchedule {
  const count = 10 + chance.below(9)
  const faults = randomSchedule(chance, laneFaults, { count, fromMs: faultsFromMs, toMs: faultsToMs })
  return chance.happens(togetherProbability) ? inOrder([...faults, ...deafSources(chance)]) : faults
}

/** Neither hub hears from the protected Redis for longer than a lease of the lane. Sensors hear both hubs, so moving does not help. */
function deafSources(chance: Chance): FaultSchedule {
  const atMs = Math.round(chance.between(faultsFromMs + 2000, faultsToMs - 4500))
  const forMs = Math.round(chance.between(5000, 7000))
  return toSources.map((target) => ({ atMs, kind: 'blackHole', target, forMs }))
}

function inOrder(faults: FaultSchedule): FaultSchedule {
  return faults.toSorted((a, b) => a.atMs - b.atMs)
}

/** The faults of one seed: ten or more. */
export function fleetSchedule(chance: Chance): FaultSchedule {
  const count = 10 + chance.below(9)
  const within = { fromMs: faultsFromMs, toMs: faultsToMs }
  const faults = randomSchedule(chance, fleetFaults, { count, ...within })
  return chance.happens(togetherProbability) ? inOrder([...faults, ...together(chance)]) : faults
}
