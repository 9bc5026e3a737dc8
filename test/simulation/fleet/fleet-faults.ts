import { type Chance, type FaultChoice, type FaultSchedule, randomSchedule } from '@firebreak/testkit'

export const appNames = ['app-1', 'app-2', 'app-3'] as const
export const hubNames = ['hub-1', 'hub-2'] as const
const processes = [...appNames, 'caller', 'proxy', ...hubNames]
const toRedis = [...appNames, 'proxy'].map((name) => `${name}>redis-1:6379`)
const toWatched = appNames.map((name) => `${name}>redis-1:7379`)
const toHubs = [...appNames, 'proxy'].flatMap((name) => hubNames.map((hub) => `${name}>${hub}:7070`))
const toStore = hubNames.map((hub) => `${hub}>redis-2:6379`)
const links = [...toRedis, ...toWatched, ...toHubs, ...toStore, 'caller>proxy:6380']

/** Everything that can happen to the fleet. */
export const fleetFaults: readonly FaultChoice[] = [
  { kind: 'cut', targets: [...links, ...processes, 'redis-1', 'redis-2'], weight: 3 },
  { kind: 'halfOpen', targets: [...links, ...processes], weight: 2 },
  { kind: 'blackHole', targets: [...links, ...processes, 'redis-1', 'redis-2'], forMs: [50, 4000], weight: 3 },
  // What a shield's lease is for: its own connection is in trouble and the application's is not.
  { kind: 'blackHole', targets: toWatched, forMs: [200, 2500], weight: 2 },
  { kind: 'slow', targets: toWatched, forMs: [500, 4000], amount: [20, 250], weight: 1.5 },
  { kind: 'withoutHubs', targets: appNames.map((name) => `${name}>hubs`), forMs: [2000, 7000] },
  // Long enough for sensors to have to move.
  { kind: 'blackHole', targets: toStore, forMs: [6500, 9000], weight: 0.7 },
  { kind: 'deafTo', targets: [...processes, 'redis-1', 'redis-2'], forMs: [50, 3000] },
  { kind: 'deafFrom', targets: [...processes, 'redis-1', 'redis-2'], forMs: [50, 3000] },
  { kind: 'slow', targets: links, forMs: [100, 4000], amount: [2, 400], weight: 2 },
  { kind: 'slowReader', targets: [...processes], forMs: [200, 3000], amount: [2000, 50_000] },
  { kind: 'refuse', targets: [...links, 'redis-1', 'redis-2'], forMs: [100, 3000] },
  { kind: 'freeze', targets: [...processes, 'redis-1', 'redis-2'], forMs: [20, 3000], weight: 2 },
  { kind: 'kill', targets: [...processes, 'redis-1', 'redis-2'], forMs: [20, 2500], weight: 2 },
  { kind: 'loseWrites', targets: ['redis-1', 'redis-2'], amount: [20, 2000], weight: 1.5 },
  { kind: 'killEmpty', targets: ['redis-1', 'redis-2'], forMs: [20, 1500], weight: 0.5 },
  { kind: 'clockStep', targets: [...processes, 'redis-1', 'redis-2'], amount: [-30_000, 30_000] },
]

/** Faults fall within this time; the fleet gets its rules before. */
export const faultsFromMs = 1000
export const faultsToMs = 12_500

/** The faults of one seed: ten and more. */
export function fleetSchedule(chance: Chance): FaultSchedule {
  const count = 10 + chance.below(9)
  return randomSchedule(chance, fleetFaults, { count, fromMs: faultsFromMs, toMs: faultsToMs })
}
