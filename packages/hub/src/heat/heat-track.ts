import type { HeatMeasure, Rule, RuleScope } from '@firebreak/core/rules'
import type { HotState } from '../decide/hot-state.ts'
import { plainWindowMs } from './near-lines.ts'
import { SlidingWindow } from './sliding-window.ts'

/** Most keys are touched by one service: a million of them share the set that names it. */
const noServices: ReadonlySet<string> = new Set()
const singles = new Map<string, ReadonlySet<string>>()
const maxSingles = 10_000
/** The number of processes remembered per key; with more, it does not depend on any one of them. */
const maxReporters = 64

function onlyService(serviceId: string): ReadonlySet<string> {
  let only = singles.get(serviceId)
  if (only === undefined) {
    if (singles.size >= maxSingles) singles.clear()
    only = new Set([serviceId])
    singles.set(serviceId, only)
  }
  return only
}

/**
 * A process that tells its counts once an interval leaves a gap in the window before each report. Until its next report
 * is due, with this tolerance, the heat right after its last one stands.
 */
const awaitedIntervals = 1.5

interface AwaitedHeat {
  readonly accesses: number
  readonly writes: number
  readonly bytes: number
  readonly until: number
}

/** A track's windows, slice by slice; writes and bytes only where the rule measures them. */
export interface TrackSlices {
  readonly sliceMs: number
  readonly headAgeMs: number
  readonly accesses: readonly number[]
  readonly writes?: readonly number[]
  readonly bytes?: readonly number[]
}

/**
 * One key's heat under one rule: the windows of what the rule measures, and the key's state. Services whose rules for
 * the key differ have a track each; all others share one.
 */
export class HeatTrack {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly slot: number
  rule: Rule | undefined
  /** Services whose accesses are counted here. */
  services: ReadonlySet<string> = noServices
  /** The scope of this track's rules, and further ones that match the key the same way. */
  scope: RuleScope | undefined
  furtherScopes: RuleScope[] | undefined
  /** Undefined: cold. */
  state: HotState | undefined
  /** True while an evaluation is pending. */
  isArmed = false
  /** True after its first evaluation. */
  isSettled = false
  /** Most keys have one process, which needs no set. */
  #reporters: string | Set<string> | undefined
  readonly #accesses: SlidingWindow
  readonly #writes: SlidingWindow | undefined
  readonly #bytes: SlidingWindow | undefined
  #awaited: AwaitedHeat | undefined
  #others: { accesses: number; writes: number; bytes: number; until: number } | undefined

  constructor(redisClusterId: string, key: string, slot: number, rule: Rule | undefined) {
    this.redisClusterId = redisClusterId
    this.key = key
    this.slot = slot
    this.rule = rule
    const windowMs = this.windowMs
    this.#accesses = new SlidingWindow(windowMs)
    const measures = new Set(rule?.levels.map(({ measure }) => measure))
    // Reads are accesses without writes.
    if (measures.has('writes') || measures.has('reads')) this.#writes = new SlidingWindow(windowMs)
    if (measures.has('bytes')) this.#bytes = new SlidingWindow(windowMs)
  }

  addService(serviceId: string): void {
    this.services = this.services.size === 0 ? onlyService(serviceId) : new Set([...this.services, serviceId])
  }

  /** Notes a process that counts the key; true if it is the second, so that the key no longer depends on one. */
  addReporter(instanceId: string): boolean {
    const known = this.#reporters
    if (known === undefined) this.#reporters = instanceId
    else if (typeof known === 'string') {
      if (known === instanceId) return false
      this.#reporters = new Set([known, instanceId])
      return true
    } else if (known.size < maxReporters) known.add(instanceId)
    return false
  }

  hasReporter(instanceId: string): boolean {
    const known = this.#reporters
    return typeof known === 'string'
      ? known === instanceId
      : known !== undefined && (known.has(instanceId) || known.size >= maxReporters)
  }

  /** The only process that has counted the key; '' if none has, undefined if several have. */
  get soleReporter(): string | undefined {
    const known = this.#reporters
    return typeof known === 'object' ? undefined : (known ?? '')
  }

  removeService(serviceId: string): void {
    this.services = new Set([...this.services].filter((service) => service !== serviceId))
  }

  isOf(scope: RuleScope): boolean {
    return this.scope === scope || (this.furtherScopes?.includes(scope) ?? false)
  }

  addScope(scope: RuleScope): void {
    if (this.scope === undefined) this.scope = scope
    else this.furtherScopes = [...(this.furtherScopes ?? []), scope]
  }

  clearScopes(): void {
    this.scope = undefined
    this.furtherScopes = undefined
  }

  get windowMs(): number {
    return this.rule?.windowMs ?? plainWindowMs
  }

  add(at: number, count: number, writes: number, bytes: number): void {
    this.#accesses.add(at, count)
    this.#writes?.add(at, writes)
    this.#bytes?.add(at, bytes)
  }

  /**
   * A process that reports every `intervalMs`, as it says, has just reported the key. Not for a share of all accesses,
   * whose total has the same gaps.
   */
  awaitNext(intervalMs: number, now: number): void {
    if (this.rule?.levels.some(({ enterShare }) => enterShare !== undefined)) return
    this.#awaited = undefined
    const [accesses, writes, bytes] = (['accesses', 'writes', 'bytes'] as const).map((name) => this.ownHeat(name, now))
    const until = now + intervalMs * awaitedIntervals
    this.#awaited = { accesses: accesses!, writes: writes!, bytes: bytes!, until }
  }

  /** How long the heat stands without a further report. */
  awaitedMs(now: number): number {
    return Math.max(0, (this.#awaited?.until ?? 0) - now)
  }

  /** Adds accesses counted elsewhere: slices, newest first, followed by how long ago the newest began. */
  addPast(slices: Float64Array, sliceMs: number, now: number): void {
    const headAgeMs = slices.at(-1)!
    for (let age = 0; age < slices.length - 1; age++) {
      const middleMs = age === 0 ? headAgeMs / 2 : headAgeMs + (age - 0.5) * sliceMs
      this.#accesses.add(now - middleMs, slices[age]!)
    }
  }

  /** The other hubs' counts of the key; they are valid until the next exchange, or for a while. */
  setOthers(accesses: number, writes: number, bytes: number, until: number): void {
    this.#others = { accesses, writes, bytes, until }
  }

  /** The heat in the rule's window, over all hubs. */
  heat(measure: HeatMeasure, now: number): number {
    const own = this.ownHeat(measure, now)
    const others = this.#others
    if (others === undefined || now > others.until) return own
    return own + (measure === 'reads' ? others.accesses - others.writes : others[measure])
  }

  /**
   * Accesses per second by which this hub saw the key grow: the rate of the newest two slices minus that of the window.
   */
  growthPerSecond(now: number): number {
    const latest = this.#accesses.ratePerSecond(now, 0, 2)
    return Math.max(0, latest - (this.#accesses.sum(now) * 1000) / this.windowMs)
  }

  /** The windows slice by slice, newest first, for the other hubs. */
  slices(now: number): TrackSlices {
    const { headAgeMs, counts } = this.#accesses.slices(now)
    const awaited = this.awaitedMs(now) > 0 ? this.#awaited : undefined
    return {
      sliceMs: this.#accesses.sliceMs,
      headAgeMs,
      accesses: filledTo(awaited?.accesses, counts),
      ...(this.#writes && { writes: filledTo(awaited?.writes, this.#writes.slices(now).counts) }),
      ...(this.#bytes && { bytes: filledTo(awaited?.bytes, this.#bytes.slices(now).counts) }),
    }
  }

  /** What this hub itself counted. */
  ownHeat(measure: HeatMeasure, now: number): number {
    const awaited = this.awaitedMs(now) > 0 ? this.#awaited : undefined
    switch (measure) {
      case 'accesses':
        return Math.max(this.#accesses.sum(now), awaited?.accesses ?? 0)
      case 'reads':
        return Math.max(0, this.ownHeat('accesses', now) - this.ownHeat('writes', now))
      case 'writes':
        return Math.max(this.#writes?.sum(now) ?? 0, awaited?.writes ?? 0)
      case 'bytes':
        return Math.max(this.#bytes?.sum(now) ?? 0, awaited?.bytes ?? 0)
    }
  }

  /** True if the windows fit another version of the rule, so that the counts can be kept. */
  fits(rule: Rule | undefined): boolean {
    if (rule?.id !== this.rule?.id || (rule?.windowMs ?? plainWindowMs) !== this.windowMs) return false
    const needs = new Set(rule?.levels.map(({ measure }) => measure))
    if ((needs.has('writes') || needs.has('reads')) && this.#writes === undefined) return false
    return !(needs.has('bytes') && this.#bytes === undefined)
  }
}

/** Slices whose sum is at least this: the missing counts are in the newest. */
function filledTo(sum: number | undefined, counts: readonly number[]): readonly number[] {
  const missing = (sum ?? 0) - counts.reduce((total, count) => total + count, 0)
  return missing <= 0 ? counts : counts.with(0, counts[0]! + missing)
}
