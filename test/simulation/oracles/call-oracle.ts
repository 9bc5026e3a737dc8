import type { Fault, SimulatedWorld } from '@firebreak/testkit'
import { watchedRedis } from '../fleet/simulated-app.ts'
import { BrokenLaw } from './laws.ts'

/** How long a bare client may take to recover after a fault: its own deadline plus reconnecting. */
const healMs = 3500
/** How long a call takes at most on a path without faults. */
const promptMs = 25

/** No call waits longer than a lease for the shield; this may be checked only every third of a lease. */
const longestHeldMs = 300 + 100 + 5

/** Calls: one fails, or waits, only if there is a fault between its caller and Redis. */
export class CallOracle {
  readonly #world: SimulatedWorld
  readonly #faults: readonly Fault[]
  readonly #admitted = new Map<string, number[]>()
  calls = 0
  failed = 0

  constructor(world: SimulatedWorld, faults: readonly Fault[]) {
    this.#world = world
    this.#faults = faults
  }

  /** A call ended; `path` names everything it goes through. */
  ended(path: readonly string[], what: string, begunAtMs: number, error?: Error): void {
    this.calls++
    if (error !== undefined) this.failed++
    const tookMs = this.#world.elapsedMs - begunAtMs
    if (error === undefined && tookMs <= promptMs) return
    const felt = this.#faults.filter((fault) => isOn(fault, path) && this.#isFelt(fault, begunAtMs))
    if (felt.some(({ target }) => !target.endsWith(watchedRedis))) return
    // Trouble of the shield's own connection makes a call wait for a lease at most, and fails none.
    if (felt.length > 0 && error === undefined && tookMs <= longestHeldMs + promptMs) return
    const outcome = error === undefined ? `took ${tookMs.toFixed(1)} ms` : `failed (${error.message})`
    const failure = new BrokenLaw('unharmed', `${what} of ${path[0]} ${outcome}, and no fault was on its way`)
    this.#world.fail(failure)
    throw failure
  }

  /** A call waited for the shield, in a process that was not paused meanwhile. */
  held(client: string, heldMs: number, key: string): void {
    if (heldMs <= longestHeldMs) return
    this.#world.fail(
      new BrokenLaw('unharmed', `a read of ${key} by ${client} waited ${heldMs.toFixed(1)} ms for the shield`),
    )
  }

  /** A limit let a call of a process through. */
  admitted(client: string, perWindow: number, windowMs: number): void {
    const now = this.#world.elapsedMs
    const times = this.#admitted.get(client) ?? []
    this.#admitted.set(client, times)
    times.push(now)
    while (times[0]! <= now - windowMs) times.shift()
    // A bucket that was full gives all of it at once, and what it is filled with meanwhile.
    if (times.length <= 2 * perWindow + 1) return
    const what = `${times.length} calls of ${client} within ${windowMs} ms, and its limit is ${perWindow}`
    this.#world.fail(new BrokenLaw('limited', what))
  }

  #isFelt({ atMs, forMs = 0, amount = 0, kind }: Fault, begunAtMs: number): boolean {
    const lastsMs = kind === 'loseWrites' ? amount : forMs
    return atMs <= this.#world.elapsedMs && begunAtMs <= atMs + lastsMs + healMs
  }
}

/** Whether there is a fault on a path: at one of its processes, or on a link between two of them. */
export function isOn({ target }: Fault, path: readonly string[]): boolean {
  const nameOf = (place: string): string => place.split(':')[0]!
  const [from, to] = target.split('>')
  if (to === undefined) return path.includes(nameOf(target))
  return path.includes(from!) && path.includes(nameOf(to))
}
