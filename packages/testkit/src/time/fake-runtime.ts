import type { Runtime } from '@firebreak/core'
import { FakeClock } from './fake-clock.ts'

/** A runtime that only advances when told: one fake clock for time and timers, randomness and ids from a seed. */
export interface FakeRuntime extends Runtime {
  readonly clock: FakeClock
  readonly wallClock: FakeClock
  readonly timers: FakeClock
}

/** A generator of numbers from 0 to 1 that returns the same sequence for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A fake runtime; equal seeds give equal runs. */
export function fakeRuntime(seed = 1, clock = new FakeClock()): FakeRuntime {
  const random = seededRandom(seed)
  const hex = (digits: number): string =>
    Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('')
  return {
    clock,
    wallClock: clock,
    timers: clock,
    random,
    newId: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
  }
}
