import type { RuleLevel } from '@firebreak/core/rules'
import type { HeatTrack } from '../heat/heat-track.ts'
import { type Burst, BurstMemory, leastBurst } from './burst-memory.ts'
import { lineOf, type NodeLoads } from './node-loads.ts'
import type { NodeReading } from './node-state.ts'
import { strainedAt } from './strain.ts'
import { bestSaving, type SavingGround, type StrategySaving } from './strategy-saving.ts'

/** A level as it applies to a key at one moment: a plain one as in its rule, an `auto` one with computed figures. */
export type LevelNow = (track: HeatTrack, level: RuleLevel, now: number) => RuleLevel

/** An `auto` level with the figures of the moment, and how they came about, in words. */
export interface MeasuredLevel extends RuleLevel {
  /** Why the key is hot at this level, or why not. */
  readonly grounds: string
}

export interface AutoLevelsOptions {
  readonly loads: NodeLoads
  readonly processCount: (services: ReadonlySet<string>) => number
  readonly nodeCount: (redisClusterId: string) => number
}

/** What is weighed for one key. */
export interface WeighedKey extends SavingGround {
  readonly redisClusterId: string
  readonly slot: number
  readonly strategies: RuleLevel['strategies']
  /** Accesses per second by which it has just grown beyond its rate over the window. */
  readonly growthPerSecond: number
  /** The key as the hub counts it, and whether it is handled; if omitted, bursts are not remembered. */
  readonly track?: HeatTrack
}

/** Whether a key is worth handling for the sake of its node. */
export interface KeyVerdict {
  /** Reads per second from which it would be; more than any key has while the node is calm. */
  readonly enterPerSecond: number
  readonly exitPerSecond: number
  readonly grounds: string
}

/** Stays hot down to this fraction of the rate that makes it hot. */
const exitPart = 0.5
/** While no sensor reports a node's load, keys are hot as under the initial rule of `firebreak up`. */
const unknownEnter = 1000
const unknownExit = 700
const never = Number.MAX_SAFE_INTEGER
/** Growth of a key by less than this fraction of its node's capacity counts as chance. */
const leastGrowth = 0.05
const awaited = 'the load of its node has not been measured yet'

/** Works out the `auto` levels at each moment (see `strain.ts` for the formula). */
export class AutoLevels {
  readonly #options: AutoLevelsOptions
  readonly #bursts = new BurstMemory()

  constructor(options: AutoLevelsOptions) {
    this.#options = options
  }

  /** A level that is not `auto` is returned unchanged. */
  readonly at: LevelNow = (track, level, now) => {
    if (level.auto !== true) return level
    const { redisClusterId, slot, services } = track
    const perSecond = 1000 / track.windowMs
    const { enterPerSecond, exitPerSecond, grounds } = this.judge(
      {
        redisClusterId,
        slot,
        strategies: level.strategies,
        readsPerSecond: track.heat('reads', now) * perSecond,
        writesPerSecond: track.heat('writes', now) * perSecond,
        processCount: this.#options.processCount(services),
        nodeCount: this.#options.nodeCount(redisClusterId),
        growthPerSecond: track.growthPerSecond(now),
        track,
      },
      now,
    )
    const inWindow = (rate: number) => (rate >= never ? never : rate / perSecond)
    const measured: MeasuredLevel = {
      ...level,
      enter: inWindow(enterPerSecond),
      exit: inWindow(exitPerSecond),
      grounds,
    }
    return measured
  }

  judge(key: WeighedKey, now: number): KeyVerdict {
    const { loads } = this.#options
    const found = loads.read(key.redisClusterId, key.slot, now)
    if (found === undefined) {
      if (loads.isAwaited(key.redisClusterId, now)) return { enterPerSecond: never, exitPerSecond: 0, grounds: awaited }
      return unknown(loads.isKnownElsewhere(key.redisClusterId), key)
    }
    const reading = withGrowth(found, key.growthPerSecond)
    const saving = bestSaving(key.strategies, key)
    const burst = this.#burstOf(key, reading, now)
    const name = loads.nodeOf(key.redisClusterId, key.slot)!.name
    const grounds = groundsOf(name, key, saving, reading, burst && { ...burst, agoMs: now - burst.at })
    if (!reading.isStrained) {
      // A key that burst is evaluated again even if nobody reads it, in case the node is strained soon.
      const isWaiting = burst !== undefined && !isHandled(key.track)
      return { enterPerSecond: never, exitPerSecond: isWaiting ? 0 : never, grounds }
    }
    const line = lineOf(reading)
    // In reads, which the windows count: increased by what the strategy itself costs.
    const lost = key.readsPerSecond - saving.savedPerSecond
    // Between bursts a key has no reads to judge it by.
    const [enter, exit] = burst === undefined ? [line + lost, line * exitPart + lost] : [0, 0]
    // Until a strained node is calm again, what is handled stays handled; nothing new is handled for its sake.
    const isBeginning = reading.expected >= strainedAt && !reading.isFalling
    return { enterPerSecond: isBeginning ? enter : never, exitPerSecond: exit, grounds }
  }

  /** The key's last burst, updated by its latest tenth of a second. */
  #burstOf(key: WeighedKey, { isTrusted, capacityPerSecond }: NodeReading, now: number): Burst | undefined {
    const { track, readsPerSecond, writesPerSecond, growthPerSecond } = key
    if (track === undefined || !isTrusted) return undefined
    const least = leastBurst(capacityPerSecond)
    const operations = readsPerSecond + writesPerSecond
    // Growth is counted in accesses; assume the same share of writes among them.
    const rise = operations === 0 ? 1 : 1 + growthPerSecond / operations
    const latest = readsPerSecond * rise
    if (latest < least) return this.#bursts.recent(track, now)
    const ground = { ...key, readsPerSecond: latest, writesPerSecond: writesPerSecond * rise }
    if (bestSaving(key.strategies, ground).savedPerSecond < least) return this.#bursts.recent(track, now)
    return this.#bursts.add(track, { at: now, readsPerSecond: latest })
  }
}

/**
 * For a key that has just become hot, a tenth of the last second is extrapolated: its node will be as loaded as the key
 * implies now, if this continues. A small rise is chance, and waits for the window.
 */
function withGrowth(reading: NodeReading, growthPerSecond: number): NodeReading {
  const { steady, capacityPerSecond, isTrusted } = reading
  const growth = growthPerSecond / capacityPerSecond
  if (!isTrusted || growth < leastGrowth) return reading
  const expected = Math.max(reading.expected, steady + growth)
  return { ...reading, expected, isStrained: reading.isStrained || expected >= strainedAt }
}

function isHandled(track: HeatTrack | undefined): boolean {
  return track?.state !== undefined && track.state.phase !== 'warming'
}

/** True for a level with computed figures. */
export function isMeasured(level: RuleLevel): level is MeasuredLevel {
  return level.auto === true && 'grounds' in level
}

function unknown(isKnownElsewhere: boolean, { readsPerSecond }: WeighedKey): KeyVerdict {
  // Another hub decides: this one makes no key hot and cools none.
  if (isKnownElsewhere)
    return { enterPerSecond: never, exitPerSecond: 0, grounds: 'another hub knows the load of its node' }
  const grounds = `${rate(readsPerSecond)} reads/s; no sensor reports the load of its node, so ${rate(unknownEnter)} reads/s make it hot`
  return { enterPerSecond: unknownEnter, exitPerSecond: unknownExit, grounds }
}

/** "14,200 reads/s are 19 % of what node 10.0.0.1:6379 can do (75,000/s), which would be at 82 %; LocalCache keeps 14,150/s from it" */
function groundsOf(
  name: string,
  key: WeighedKey,
  saving: StrategySaving,
  reading: NodeReading,
  burst: (Burst & { readonly agoMs: number }) | undefined,
): string {
  const { unhandled, expected, isStrained, capacityPerSecond } = reading
  const operations = key.readsPerSecond + key.writesPerSecond
  const part = Number.isFinite(capacityPerSecond)
    ? `are ${percent(operations / capacityPerSecond)} of what node ${name} can do (${rate(capacityPerSecond)}/s)`
    : `on node ${name}, which is almost idle`
  const would =
    expected >= unhandled + 0.01
      ? `which would be at ${percent(unhandled)} and soon at ${percent(expected)}`
      : `which would be at ${percent(unhandled)}`
  const isGrowing = key.growthPerSecond >= leastGrowth * capacityPerSecond
  const latest = operations + key.growthPerSecond
  const growth = isGrowing ? ` (${rate(latest)}/s in the last tenth of a second)` : ''
  const head = `${rate(key.readsPerSecond)} reads/s${growth} and ${rate(key.writesPerSecond)} writes/s ${part}, ${would}`
  if (!isStrained) return `${head}: calm, so nothing is done`
  // During the burst the figures above already say it.
  if (burst !== undefined && burst.agoMs > 0 && burst.readsPerSecond > 2 * key.readsPerSecond) {
    const share = percent(burst.readsPerSecond / capacityPerSecond)
    return `${head}; it burst to ${rate(burst.readsPerSecond)}/s (${share}) ${Math.ceil(burst.agoMs / 1000)} s ago and is held for the next time`
  }
  const cost = saving.costPerSecond > 0 ? ` (less ${rate(saving.costPerSecond)}/s for ${saving.costOf})` : ''
  const worth = `worth it from ${rate(lineOf(reading))}/s`
  return `${head}; ${saving.strategy} keeps ${rate(saving.savedPerSecond)}/s from it${cost}, ${worth}`
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en-US')
}

function percent(part: number): string {
  return `${Number((part * 100).toFixed(part < 0.1 ? 1 : 0))} %`
}
