import { type Clock, steadyClock, systemTimers, type Timers, wallClock } from './clock.ts'

/**
 * Everything that a room takes from the outside world besides its connections: time, timers, randomness and ids.
 *
 * It is passed down from the composition roots (`protect`, `startProxy`, `startHub`, a command of the CLI). Code that
 * decides or waits reads it only from here, so that a simulation can run a whole fleet on one virtual clock and one
 * seed; `test/house.test.ts` forbids the globals.
 */
export interface Runtime {
  /** The steady clock, for durations, leases and deadlines. It never steps. */
  readonly clock: Clock
  /** The machine's wall clock, for what is shown or compared between hosts. It may step. */
  readonly wallClock: Clock
  readonly timers: Timers
  /** A number from 0 up to, but not including, 1. */
  readonly random: () => number
  /** A unique name: a version 4 UUID. */
  readonly newId: () => string
}

/** The runtime of a real process. */
export const systemRuntime: Runtime = {
  clock: steadyClock,
  wallClock,
  timers: systemTimers,
  random: Math.random,
  newId: () => crypto.randomUUID(),
}
