import type { NodeLoad, NodeLoadView } from '@firebreak/core'
import type { AccessTotals } from '../decide/access-totals.ts'
import { forgottenMs, type NodeDemand, type NodeReading, NodeState } from './node-state.ts'
import { partWorthHandling } from './strain.ts'

export interface NodeLoadsOptions {
  readonly totals: Pick<AccessTotals, 'ratesOfNode'>
  /** Reads per second that strategies keep from a node; undefined if none of its keys is handled. */
  readonly savedOf: (redisClusterId: string, nodeId: string, now: number) => number | undefined
}

interface ClusterNodes {
  readonly nodes: Map<string, NodeState>
  /** The first slot of each slot's node; -1 if its node is unknown. */
  owners: Int16Array
}

const slotCount = 16_384
const maxClusters = 1000
const maxNodes = 1000
/** Demand is measured over this window. */
export const loadWindowMs = 1000
/** Reads per second below which a key is not worth an entry, however small the node. */
const leastLine = 20
/** How long to wait for a first measurement. */
const awaitedMs = 3000
const sharedPrefix = 'load\u0000'

/**
 * The load of every Redis node that sensors measure (`probe`), and what it would be without strategies.
 *
 * Samples arrive about once a second and show how much a node can do; reports show within a tenth of a second what it
 * is asked to do. Together they tell how full it would be now, long before its CPU time shows it.
 */
export class NodeLoads {
  readonly #options: NodeLoadsOptions
  readonly #clusters = new Map<string, ClusterNodes>()
  readonly #askedAt = new Map<string, number>()
  /** Clusters whose load other hubs know. */
  #knownElsewhere: ReadonlySet<string> = new Set()
  /** One moment's reading, for all keys of a report. */
  #last: { readonly state: NodeState; readonly now: number; readonly reading: NodeReading | undefined } | undefined

  constructor(options: NodeLoadsOptions) {
    this.#options = options
  }

  take(sample: NodeLoad, by: string, now: number): void {
    const cluster = this.#cluster(sample.redisClusterId)
    if (cluster === undefined || !(sample.spanMs > 0)) return
    const slots = sample.slots ?? [[0, slotCount - 1]]
    if (slots.length === 0) return
    const id = String(Math.min(...slots.map(([first]) => first)))
    let state = cluster.nodes.get(id)
    if (state === undefined) {
      if (cluster.nodes.size >= maxNodes) return
      state = new NodeState(sample.redisClusterId, id, sample.node)
      cluster.nodes.set(id, state)
    }
    for (const [first, last] of slots) cluster.owners.fill(Number(id), first, last + 1)
    state.take(sample, this.#demand(state, now), by, now)
    this.#last = undefined
  }

  /** The name of a slot's node; empty if nobody has measured it. */
  nodeIdOf(redisClusterId: string, slot: number): string {
    const owner = this.#clusters.get(redisClusterId)?.owners[slot] ?? -1
    return owner < 0 ? '' : String(owner)
  }

  nodeOf(redisClusterId: string, slot: number): NodeState | undefined {
    return this.#clusters.get(redisClusterId)?.nodes.get(this.nodeIdOf(redisClusterId, slot))
  }

  /** How full a slot's node would be without strategies; undefined if its load is unknown. */
  read(redisClusterId: string, slot: number, now: number): NodeReading | undefined {
    const state = this.nodeOf(redisClusterId, slot)
    return state && this.#read(state, now)
  }

  /**
   * True for the first seconds after a cluster's load was requested, while no sensor has answered yet. Until then
   * nothing is decided for its keys.
   */
  isAwaited(redisClusterId: string, now: number): boolean {
    const since = this.#askedAt.get(redisClusterId)
    if (since === undefined) {
      if (this.#askedAt.size >= maxClusters) this.#askedAt.clear()
      this.#askedAt.set(redisClusterId, now)
      return true
    }
    return now - since < awaitedMs
  }

  /** True if another hub knows the cluster's load and this one does not. */
  isKnownElsewhere(redisClusterId: string): boolean {
    return this.#knownElsewhere.has(redisClusterId) && !this.#isKnown(redisClusterId)
  }

  /** The clusters whose load this hub knows, under separate names among the hub's totals. */
  own(): Record<string, number> {
    const known = [...this.#clusters.keys()].filter((id) => this.#isKnown(id))
    return Object.fromEntries(known.map((id) => [`${sharedPrefix}${id}`, 1]))
  }

  /** The same for the other hubs. */
  setOthers(totals: readonly Readonly<Record<string, number>>[]): void {
    const names = totals.flatMap((hub) => Object.keys(hub)).filter((name) => name.startsWith(sharedPrefix))
    this.#knownElsewhere = new Set(names.map((name) => name.slice(sharedPrefix.length)))
  }

  /** When a cluster was last measured. */
  measuredAt(redisClusterId: string): number {
    const nodes = this.#clusters.get(redisClusterId)?.nodes.values() ?? []
    return Math.max(Number.NEGATIVE_INFINITY, ...[...nodes].map(({ measuredAt }) => measuredAt))
  }

  views(now: number): NodeLoadView[] {
    const states = [...this.#clusters.values()].flatMap(({ nodes }) => [...nodes.values()])
    return states.flatMap((state) => {
      const reading = this.#read(state, now)
      return reading === undefined ? [] : [viewOf(state, reading)]
    })
  }

  /** Called once a second: forgets nodes that nobody has measured for long. */
  forget(now: number): void {
    for (const [redisClusterId, { nodes, owners }] of this.#clusters) {
      for (const [id, state] of nodes) {
        if (now - state.measuredAt <= forgottenMs * 4) continue
        nodes.delete(id)
        owners.forEach((owner, slot) => {
          if (owner === Number(id)) owners[slot] = -1
        })
      }
      if (nodes.size === 0) this.#clusters.delete(redisClusterId)
    }
    this.#last = undefined
  }

  #isKnown(redisClusterId: string): boolean {
    return (this.#clusters.get(redisClusterId)?.nodes.size ?? 0) > 0
  }

  #cluster(redisClusterId: string): ClusterNodes | undefined {
    let cluster = this.#clusters.get(redisClusterId)
    if (cluster === undefined && this.#clusters.size < maxClusters) {
      cluster = { nodes: new Map(), owners: new Int16Array(slotCount).fill(-1) }
      this.#clusters.set(redisClusterId, cluster)
    }
    return cluster
  }

  #read(state: NodeState, now: number): NodeReading | undefined {
    if (this.#last?.state === state && this.#last.now === now) return this.#last.reading
    const reading = state.read(this.#demand(state, now), now)
    this.#last = { state, now, reading }
    return reading
  }

  #demand({ redisClusterId, id }: NodeState, now: number): NodeDemand {
    const { totals, savedOf } = this.#options
    const slot = Number(id)
    const rates = totals.ratesOfNode(redisClusterId, slot, loadWindowMs, now)
    return { ...rates, savedPerSecond: savedOf(redisClusterId, id, now) }
  }
}

/** Reads per second kept from a node from which a key is worth handling. */
export function lineOf({ expected, capacityPerSecond }: NodeReading): number {
  return Math.max(leastLine, partWorthHandling(expected) * capacityPerSecond)
}

function viewOf(state: NodeState, reading: NodeReading): NodeLoadView {
  const { redisClusterId, name, source, measuredBy, measuredAt, utilisation, operationsPerSecond, roundTrips } = state
  const { unhandled, isStrained, demandPerSecond } = reading
  const linePerSecond = isStrained ? Math.round(lineOf(reading)) : null
  const capacityPerSecond = state.capacity.perSecond
  const percent = (part: number) => `${Math.round(part * 100)} %`
  const how = source === 'cpu' ? 'CPU' : 'its response time is that of'
  const would = `it would be at ${percent(unhandled)} if nothing were handled`
  const text = isStrained
    ? `strained: ${how} ${percent(utilisation)}, ${would}; keys are handled from ${linePerSecond!.toLocaleString('en-US')} reads/s`
    : `calm: ${how} ${percent(utilisation)}, ${would}; no key is handled because of it`
  return {
    redisClusterId,
    node: name,
    source,
    measuredBy,
    measuredAt,
    utilisation,
    unhandledUtilisation: unhandled,
    capacityPerSecond: capacityPerSecond === undefined ? null : Math.round(capacityPerSecond),
    operationsPerSecond: Math.round(operationsPerSecond),
    demandPerSecond: Math.round(demandPerSecond),
    roundTripMs: roundTrips.medianMs,
    leastRoundTripMs: roundTrips.leastMs,
    isStrained,
    linePerSecond,
    text,
  }
}
