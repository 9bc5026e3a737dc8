import { keyText } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { ClusterShield } from '../cluster-shield.ts'
import { Cadence } from '../counting/cadence.ts'
import type { Crossing } from '../counting/fast-path.ts'
import { ReportSampler } from '../counting/report-sampler.ts'
import { sampledRows } from '../counting/sampled-rows.ts'
import type { ResolvedShieldOptions } from '../shield-options.ts'
import type { FollowedTable } from '../table/followed-table.ts'
import type { HubLink } from './hub-link.ts'
import { type PendingSection, SectionWriter } from './pending-report.ts'

/** A key that one shield found hot before any hub said so. */
export interface Claim {
  readonly redisClusterId: string
  readonly name: string
  readonly crossing: Crossing
}

/** The source of reports, and where they go. */
export interface ReportingOptions {
  readonly runtime: ResolvedShieldOptions['runtime']
  readonly clusters: ReadonlyMap<string, ClusterShield>
  readonly table: Pick<FollowedTable, 'get' | 'getForUs'>
  readonly link: Pick<HubLink, 'report' | 'send'>
  /** Called for each key that this process alone found hot. */
  readonly onClaim: (claim: Claim) => void
}

/** Sends counts to the hub: at the hub's pace, and at once if a key is growing fast. */
export class Reporting {
  readonly #means: ReportingOptions
  readonly #cadence: Cadence
  readonly #sampler: ReportSampler
  readonly #section = new SectionWriter()
  #isBurstPlanned = false

  constructor(means: ReportingOptions) {
    const { clock, random } = means.runtime
    this.#means = means
    this.#cadence = new Cadence(clock.now())
    this.#sampler = new ReportSampler(random)
  }

  setPace(intervalMs: number, samplingFloor: number): void {
    if (intervalMs > 0) this.#cadence.intervalMs = intervalMs
    this.#sampler.setFactor(samplingFloor)
  }

  setRules(rules: readonly Rule[]): void {
    this.#sampler.setRules(rules)
  }

  /** One key is growing fast; `report` soon sends what is due. */
  burst(report: () => void): void {
    this.#cadence.burst()
    if (this.#isBurstPlanned) return
    this.#isBurstPlanned = true
    const { timers, clock } = this.#means.runtime
    timers.setTimeout(
      () => {
        this.#isBurstPlanned = false
        report()
      },
      // A timer may fire slightly early, which would leave the report to the next tick.
      Math.ceil(this.#cadence.burstDelayMs(clock.now())) + 1,
    )
  }

  reportIfDue(): void {
    const { clusters, runtime } = this.#means
    let count = 0
    for (const cluster of clusters.values()) count += cluster.countSoFar
    if (this.#cadence.isDue(runtime.clock.now(), count)) this.report()
  }

  report(isLast = false): void {
    const { clusters, runtime, link } = this.#means
    this.#cadence.reported(runtime.clock.now())
    const sections = [...clusters.values()].map((cluster) => this.#drain(cluster, isLast))
    const counted = sections.filter(({ totalCount }) => totalCount > 0)
    if (counted.length > 0) link.report({ collectTs: runtime.wallClock.now(), sections: counted })
  }

  #drain(cluster: ClusterShield, isLast: boolean): PendingSection {
    const { redisClusterId } = cluster
    const { table, link, onClaim } = this.#means
    const looksForHot = this.#sampler.isSampling && cluster.hasHotKeys
    const entryOf = looksForHot ? (key: string) => table.get(redisClusterId, key) : undefined
    const totalCount = cluster.drain({
      ...sampledRows(this.#section, this.#sampler, entryOf),
      takesPieces: !this.#sampler.isSampling && !isLast,
      onCrossing: (name, outside, crossing) => {
        if (!cluster.claim(name, crossing)) return
        onClaim({ redisClusterId, name, crossing })
        const { ruleId, heat } = crossing
        link.send('claim', { redisClusterId, key: keyText(outside), ruleId, heat })
      },
    })
    cluster.takeNews((outside) => table.getForUs(redisClusterId, outside))
    return this.#section.finish(redisClusterId, totalCount)
  }
}
