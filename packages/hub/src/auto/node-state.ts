import type { LoadSource, NodeLoad } from '@firebreak/core'
import { NodeCapacity } from './node-capacity.ts'
import { RoundTrips } from './round-trips.ts'
import { calmAt, strainedAt } from './strain.ts'

/** What is known about a node's accesses at a moment. */
export interface NodeDemand {
  /**
   * Accesses per second that sensors report, including those answered by strategies: over the last second, and
   * recently.
   */
  readonly perSecond: number
  readonly latestPerSecond: number
  /**
   * How many of these per second strategies keep from the node, as reported by shields; undefined if none of its keys
   * is handled.
   */
  readonly savedPerSecond: number | undefined
}

/** A node's load at a moment. */
export interface NodeReading {
  /** Utilisation if nothing were handled. */
  readonly unhandled: number
  /** The same, by the last second alone. */
  readonly steady: number
  /** The same a few seconds ahead, if it keeps growing like this. */
  readonly expected: number
  readonly isStrained: boolean
  /** True if demand is already lower than over the last second: nothing new is handled for its sake. */
  readonly isFalling: boolean
  /** False while the node has only been seen so idle that its capacity is a guess. */
  readonly isTrusted: boolean
  readonly capacityPerSecond: number
  readonly demandPerSecond: number
}

/** How far ahead growth is projected, and by how much at most. */
const aheadMs = 3000
const maxRise = 0.1
/** The period over which growth is measured. */
const trendMs = 10_000
/** A node that nobody has measured for this long counts as unknown. */
export const forgottenMs = 15_000
/** A sample this soon after a key began to be handled may mix both states. */
const settleMs = 3000
/** How many samples to average unreported operations over. */
const unreportedFade = 0.7
/** A sample is discarded if demand changes by more than this fraction while it is measured. */
const steadyPart = 0.3
/** Reports still in transit make the latest figures slightly too low. */
const fallingPart = 0.75
/** Answers waiting this many times as long as they take, on a busy CPU: other processes are using it. */
const crowdedUse = 0.75
const crowdedCpu = 0.15
/** While a node has only been seen idle, its projected load is not trusted beyond this. */
const untrustedUse = 0.6

/** One Redis node: its samples, its capacity as learnt, and whether it is strained. */
export class NodeState {
  readonly redisClusterId: string
  /** Identifies it among the cluster's nodes for every observer: its first slot. */
  readonly id: string
  name: string
  measuredBy = ''
  measuredAt = Number.NEGATIVE_INFINITY
  source: LoadSource = 'cpu'
  utilisation = 0
  operationsPerSecond = 0
  readonly capacity = new NodeCapacity()
  readonly roundTrips = new RoundTrips()
  #unreported = 0
  #accessesPerCommand = 1
  #handledAt = Number.NEGATIVE_INFINITY
  #trend = { at: Number.NEGATIVE_INFINITY, perSecond: 0 }
  #isStrained = false

  constructor(redisClusterId: string, id: string, name: string) {
    this.redisClusterId = redisClusterId
    this.id = id
    this.name = name
  }

  take(sample: NodeLoad, demand: NodeDemand, by: string, now: number): void {
    const { node, spanMs, commands, cpuMs, roundTripMs } = sample
    this.name = node
    this.measuredBy = by
    this.measuredAt = now
    this.roundTrips.add(roundTripMs)
    const waiting = this.roundTrips.use
    this.source = cpuMs === undefined ? 'latency' : 'cpu'
    if (cpuMs === undefined) this.utilisation = waiting
    else {
      const cpu = Math.min(1, cpuMs / spanMs)
      // A node that shares its core is saturated before its own CPU time shows it.
      this.utilisation = waiting >= crowdedUse && cpu >= crowdedCpu ? Math.max(cpu, waiting) : cpu
    }
    this.operationsPerSecond = this.#operations(
      commands === undefined ? undefined : (commands * 1000) / spanMs,
      demand,
      now,
    )
    const isSteady = Math.abs(demand.latestPerSecond - demand.perSecond) <= steadyPart * demand.perSecond
    if (isSteady || demand.perSecond === 0) this.capacity.learn(this.operationsPerSecond, this.utilisation)
  }

  /**
   * The work that was done, in accesses as sensors count them, by the commands that the node counted. A command with
   * many keys is many accesses, and some clients report nothing: the ratio of the two can only be seen while no key is
   * handled, since what shields answer themselves is reported and never reaches the node.
   */
  #operations(commands: number | undefined, { perSecond, savedPerSecond }: NodeDemand, now: number): number {
    if (commands === undefined) return Math.max(0, perSecond - (savedPerSecond ?? 0))
    if (savedPerSecond !== undefined) this.#handledAt = now
    if (now - this.#handledAt >= settleMs) {
      const accesses = commands === 0 ? 1 : Math.max(1, perSecond / commands)
      this.#accessesPerCommand += (accesses - this.#accessesPerCommand) * (1 - unreportedFade)
      this.#unreported += (Math.max(0, commands - perSecond) - this.#unreported) * (1 - unreportedFade)
    }
    return commands * this.#accessesPerCommand
  }

  /** Undefined while the node's load is unknown. */
  read(demand: NodeDemand, now: number): NodeReading | undefined {
    const capacityPerSecond = this.capacity.perSecond
    if (now - this.measuredAt > forgottenMs) return undefined
    // It was measured but did too little for its capacity to be known: it is calm.
    if (capacityPerSecond === undefined) return { ...calm, demandPerSecond: demand.perSecond }
    const believed = (use: number) => (this.capacity.isTrusted ? use : Math.min(use, untrustedUse))
    const steady = demand.perSecond + this.#unreported
    const latest = Math.max(demand.perSecond, demand.latestPerSecond) + this.#unreported
    const unhandled = believed(latest / capacityPerSecond)
    const rise = Math.min(maxRise, (this.#growth(steady, now) * aheadMs) / capacityPerSecond)
    const expected = believed(unhandled + Math.max(0, rise))
    this.#isStrained = this.#isStrained ? unhandled >= calmAt : expected >= strainedAt
    return {
      unhandled,
      steady: believed(steady / capacityPerSecond),
      expected,
      isStrained: this.#isStrained,
      isFalling: demand.latestPerSecond < fallingPart * demand.perSecond,
      isTrusted: this.capacity.isTrusted,
      capacityPerSecond,
      demandPerSecond: latest,
    }
  }

  /** Growth of demand per millisecond, in operations per second, over the last ten seconds or so. */
  #growth(perSecond: number, now: number): number {
    const trend = this.#trend
    const passed = now - trend.at
    if (!(passed < trendMs * 3)) {
      trend.at = now
      trend.perSecond = perSecond
      return 0
    }
    trend.perSecond += (perSecond - trend.perSecond) * (1 - Math.exp(-passed / trendMs))
    trend.at = now
    return (perSecond - trend.perSecond) / trendMs
  }
}

const calm: NodeReading = {
  unhandled: 0,
  steady: 0,
  expected: 0,
  isStrained: false,
  isFalling: false,
  isTrusted: false,
  capacityPerSecond: Number.POSITIVE_INFINITY,
  demandPerSecond: 0,
}
