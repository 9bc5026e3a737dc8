import { type AutopilotView, type HistoryEvent, keyText, type NodeLoad } from '@firebreak/core'
import { isAutoRule, RuleSet, runsBeside } from '@firebreak/core/rules'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import { AutoBeside, isHandled } from './auto-beside.ts'
import { AutoLevels, type LevelNow } from './auto-levels.ts'
import { NodeLoads } from './node-loads.ts'

export interface AutopilotOptions {
  readonly totals: AccessTotals
  readonly fleet: Fleet
  readonly engine: NearKeys
  readonly record: (event: HistoryEvent) => void
}

/** How often the load that strategies keep away from nodes is summed up. */
const savedMs = 500

/**
 * Everything that `auto` rules decide by: the load of nodes, the levels that follow from it, and the rules in shadow
 * mode.
 */
export class Autopilot {
  readonly loads: NodeLoads
  readonly levelNow: LevelNow
  readonly #options: AutopilotOptions
  readonly #beside: AutoBeside
  #isWanted = false
  #saved: { readonly at: number; readonly byNode: ReadonlyMap<string, number> } = {
    at: Number.NEGATIVE_INFINITY,
    byNode: new Map(),
  }

  constructor(options: AutopilotOptions) {
    this.#options = options
    const { totals, fleet, engine, record } = options
    const processCount = (services: ReadonlySet<string>) => fleet.hosts.countOf(services)
    const nodeCount = (redisClusterId: string) => fleet.nodeCount(redisClusterId)
    this.loads = new NodeLoads({ totals, savedOf: (cluster, node, now) => this.#savedOf(cluster, node, now) })
    const levels = new AutoLevels({ loads: this.loads, processCount, nodeCount })
    this.levelNow = levels.at
    this.#beside = new AutoBeside({ engine, levels, processCount, nodeCount, record })
  }

  /** True while node load must be measured because a rule depends on it. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  /** Takes the rules; returns those that keys are matched by, without `auto` rules in shadow mode. */
  setRules(set: RuleSet): RuleSet {
    const { rules } = set
    this.#isWanted = rules.some(isAutoRule)
    this.#beside.setRules(rules)
    if (!rules.some(runsBeside)) return set
    return new RuleSet(rules.filter((rule) => !runsBeside(rule)))
  }

  takeLoad(nodes: readonly NodeLoad[], by: string, now: number): void {
    if (!this.#isWanted) return
    for (const node of nodes) this.loads.take(node, by, now)
  }

  /** Called once a second. */
  tick(now: number): void {
    this.loads.forget(now)
    this.#beside.tick(now)
  }

  view(now: number): AutopilotView {
    const handled = this.#beside.hasRules ? [...this.#options.engine.shown()].filter(isHandled) : []
    return {
      nodes: this.loads.views(now),
      beside: this.#beside.views(),
      onlyHandled: handled
        .filter((near) => !this.#beside.has(near))
        .map((near) => ({ redisClusterId: near.redisClusterId, key: keyText(near.key), reason: reasonOf(near) })),
    }
  }

  #savedOf(redisClusterId: string, nodeId: string, now: number): number | undefined {
    if (now - this.#saved.at >= savedMs || now < this.#saved.at) this.#saved = { at: now, byNode: this.#sumSaved(now) }
    return this.#saved.byNode.get(`${nodeId} ${redisClusterId}`)
  }

  #sumSaved(now: number): Map<string, number> {
    const { engine, fleet } = this.#options
    const byNode = new Map<string, number>()
    for (const near of engine.shown()) {
      if (!isHandled(near)) continue
      const saved = fleet.effects.savedPerSecond(near.redisClusterId, near.key, now)
      const id = `${this.loads.nodeIdOf(near.redisClusterId, near.slot)} ${near.redisClusterId}`
      byNode.set(id, (byNode.get(id) ?? 0) + saved)
    }
    return byNode
  }
}

function reasonOf({ tracks }: NearKey): string {
  for (const { state } of tracks) if (state !== undefined && state.phase !== 'warming') return state.entry.reason
  return ''
}
